"""Personalised PageRank over the whole graph, as in HippoRAG 2 (see `benchmarks.pagerank`), kept in one pickled file."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import pagerank
from benchmarks.peers.adapters.frame import DIMENSION, MODEL, Peer, PeerPassage, run
from benchmarks.peers.adapters.ours import make_triples_page
from waylore.evaluation.datasets import Dataset
from waylore.providers.embedders.openai import OpenAIEmbedder


class PageRankPeer(Peer):
    """A graph in memory. It has no way to add or delete, so all passages are one batch."""

    batch = 1_000_000

    def __init__(self, file: Path, embedder: OpenAIEmbedder) -> None:
        self._file, self._embedder = file, embedder
        self._graph: pagerank.Graph | None = pickle.loads(file.read_bytes()) if file.exists() else None

    def index(self, passages: list[PeerPassage]) -> None:
        """Build the graph of all passages and write it."""
        pages = tuple(map(make_triples_page, passages))
        self._file.write_bytes(pickle.dumps(pagerank.build_graph(Dataset("peers", pages, ()), self._embedder)))

    def search(self, question: str, limit: int) -> list[str]:
        """Return the passages with the highest rank, at most twenty."""
        if self._graph is None:
            return []
        return pagerank.rank_documents(self._graph, self._embedder.embed_query(question))[:limit]

    def delete(self, passage: PeerPassage) -> None:
        """Refuse: the graph can only be built again."""
        raise NotImplementedError(f"{passage.id} cannot be deleted; the graph is built as a whole")


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Open the graph."""
    with OpenAIEmbedder(MODEL, base_url=url, dimension=DIMENSION) as embedder:
        yield PageRankPeer(folder / "graph.pickle", embedder)


if __name__ == "__main__":
    run(open_peer)
