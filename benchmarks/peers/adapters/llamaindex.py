"""LlamaIndex's property graph index with the set's triples, in its simple stores, searched by `VectorContextRetriever`.

Its other default retriever asks a model for synonyms and is left out.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llama_index.core import PropertyGraphIndex
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import KG_NODES_KEY, KG_RELATIONS_KEY, EntityNode, Relation
from llama_index.core.indices.property_graph import VectorContextRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.schema import BaseNode, TextNode, TransformComponent
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.embeddings.openai_like import OpenAILikeEmbedding

from benchmarks.peers.adapters.frame import MODEL, Peer, PeerPassage, run

TRIPLES = "triples"


class GivenTriples(TransformComponent):
    """An extractor that returns the triples that a node was given."""

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> Sequence[BaseNode]:
        """Turn the triples of each node into entities and relations."""
        for node in nodes:
            told = node.metadata.pop(TRIPLES)
            names = dict.fromkeys(name for s, _, o in told for name in (s, o))
            entities = {name: EntityNode(name=name, label="thing") for name in names}
            node.metadata[KG_NODES_KEY] = list(entities.values())
            node.metadata[KG_RELATIONS_KEY] = [
                Relation(label=p, source_id=entities[s].id, target_id=entities[o].id) for s, p, o in told
            ]
        return nodes


class LlamaIndexPeer(Peer):
    """A graph and a vector store, both in memory, written as JSON."""

    batch = 500

    def __init__(self, folder: Path, url: str) -> None:
        self._graph_file, self._vector_file = folder / "graph.json", folder / "vectors.json"
        graph, vectors = SimplePropertyGraphStore(), SimpleVectorStore()
        if self._graph_file.exists():
            graph = SimplePropertyGraphStore.from_persist_path(str(self._graph_file))
            vectors = SimpleVectorStore.from_persist_path(str(self._vector_file))
        self._embedding = OpenAILikeEmbedding(model_name=MODEL, api_base=url, api_key="none", embed_batch_size=100)
        self._index = PropertyGraphIndex.from_existing(
            graph,
            vector_store=vectors,
            kg_extractors=[GivenTriples()],
            embed_model=self._embedding,
            llm=MockLLM(),
            use_async=False,
        )
        self._graph, self._vectors = graph, vectors

    def index(self, passages: list[PeerPassage]) -> None:
        """Insert passages, and write both stores."""
        nodes = [
            TextNode(
                id_=each.id,
                text=each.whole,
                metadata={TRIPLES: [triple for triple in each.triples if triple[0].strip() and triple[2].strip()]},
            )
            for each in passages
        ]
        self._index.insert_nodes(nodes)
        self._graph.persist(str(self._graph_file))
        self._vectors.persist(str(self._vector_file))

    def search(self, question: str, limit: int) -> list[str]:
        """Return the sources of the triples that were found."""
        retriever = VectorContextRetriever(
            self._graph,
            embed_model=self._embedding,
            vector_store=self._vectors,
            include_text=True,
            similarity_top_k=limit,
        )
        return [found.node.node_id for found in retriever.retrieve(question)]

    def delete(self, passage: PeerPassage) -> None:
        """Delete the node of a passage with its triples, and write both stores."""
        self._graph.delete_llama_nodes(node_ids=[passage.id])
        self._graph.persist(str(self._graph_file))
        self._vectors.persist(str(self._vector_file))


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Open both stores."""
    yield LlamaIndexPeer(folder, url)


if __name__ == "__main__":
    run(open_peer)
