"""Waylore with its defaults, on SQLite. It reads the files of a folder itself; other passages come with their triples."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from benchmarks.peers.adapters.frame import DIMENSION, MODEL, Peer, PeerPassage, run
from waylore.engine.waylore import Waylore
from waylore.evaluation.contexts.measure import choose_counter
from waylore.evaluation.contexts.scoring import list_shown
from waylore.evaluation.conversations.datasets import make_turn
from waylore.evaluation.datasets import make_page
from waylore.evaluation.folders.scoring import normalise_path
from waylore.indexing import pipeline
from waylore.providers.embedders.openai import OpenAIEmbedder
from waylore.recipes import AUTO
from waylore.store.urls import open_store
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument

BUDGET = 1_000


class OurPeer(Peer):
    """A memory in one file."""

    batch = 256

    def __init__(self, folder: Path, url: str, method: str) -> None:
        self._embedder = OpenAIEmbedder(MODEL, base_url=url, dimension=DIMENSION)
        self._store = open_store(str(folder / "memory.waylore"), "default")
        self._memory = Waylore(self._store, self._embedder, method=method, cache=None)
        self._files = folder / "files"  # exists if the memory read files, whose passages have names of their own

    def index(self, passages: list[PeerPassage]) -> None:
        """Write passages with their triples, or read the folder that they come from."""
        for root in {passage.root for passage in passages} - {""}:
            self._files.touch()
            self._memory.add_files(root, root=root)
        stored = self._memory.stats().documents
        pages = [_make_document(number, each) for number, each in enumerate(passages, stored) if not each.root]
        pipeline.write(self._store, self._embedder, pages, author=OWNER)

    def search(self, question: str, limit: int) -> list[str]:
        """Return the passages of the hits."""
        result = self._memory.search(question, top_k=limit, record_use=False)
        return [hit.id if self._files.exists() else hit.uri for hit in result.hits]

    def show(self, question: str) -> list[tuple[str, str, str]]:
        """Return what a context shows of each page."""
        context = self._memory.context(question, max_tokens=BUDGET, count=choose_counter()[0])
        return [(part.page, part.title, part.text) for part in list_shown(context, normalise_path)]

    def delete(self, passage: PeerPassage) -> None:
        """Forget the document of a passage."""
        self._memory.forget(passage.page)

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()
        self._embedder.close()


def _make_document(number: int, passage: PeerPassage) -> IndexedDocument:
    if passage.speaker:
        at = datetime.fromisoformat(passage.at)
        return make_turn(passage.id, number, passage.text, passage.speaker, passage.session, at)
    return make_triples_page(passage)


def make_triples_page(passage: PeerPassage) -> IndexedDocument:
    """Return a passage with its triples as a document of its own."""
    row = {"id": passage.id, "title": passage.title, "text": passage.text}
    return make_page(row, {"triples": [list(each) for each in passage.triples], "entities": [*passage.entities]})


@contextmanager
def open_peer(folder: Path, url: str, method: str = AUTO) -> Iterator[Peer]:
    """Open a memory; close it at the end."""
    peer = OurPeer(folder, url, method)
    try:
        yield peer
    finally:
        peer.close()


if __name__ == "__main__":
    run(open_peer)
