"""Graphiti on Kuzu, with nodes and edges saved directly from the set's triples, so that no model is asked.

Each passage is an episode, which its edges name. Graphiti finds facts; the passages are those of the facts, best first, and
those of the episodes that its full-text search finds.
"""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_client import OpenAIClient
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF

from benchmarks.peers.adapters.frame import DIMENSION, MODEL, Peer, PeerPassage, embed, run

GROUP = "peers"


class NoReranker(CrossEncoderClient):  # type: ignore[misc]
    """Keeps the order, since no recipe here asks for a cross-encoder."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:  # noqa: ARG002
        """Return passages as they come."""
        return [(passage, 1.0) for passage in passages]


class GraphitiPeer(Peer):
    """A graph in Kuzu."""

    def __init__(self, runner: asyncio.Runner, graphiti: Any, url: str) -> None:
        self._runner, self._graphiti, self._url = runner, graphiti, url
        self._is_ready = False

    def index(self, passages: list[PeerPassage]) -> None:
        """Save an episode, its nodes and its edges for each passage."""
        self._runner.run(self._save(passages))

    async def _save(self, passages: list[PeerPassage]) -> None:
        driver, now = self._graphiti.driver, datetime.now(UTC)
        names = {name for each in passages for s, _, o in each.triples for name in (s, o)}
        names |= {name for each in passages for name in each.entities}
        told = {f"{s} {p} {o}" for each in passages for s, p, o in each.triples}
        texts = sorted(names | told)
        vectors = dict(zip(texts, embed(self._url, texts), strict=True)) if texts else {}
        for name in sorted(names):
            node = EntityNode(uuid=_make_id("node", name), name=name, group_id=GROUP, name_embedding=vectors[name])
            await node.save(driver)
        for each in passages:
            episode = EpisodicNode(
                uuid=_make_id("episode", each.id),
                name=each.id,
                group_id=GROUP,
                source=EpisodeType.text,
                source_description=each.title,
                content=each.whole,
                valid_at=now,
                created_at=now,
            )
            await episode.save(driver)
            for subject, predicate, object_ in dict.fromkeys(each.triples):
                fact = f"{subject} {predicate} {object_}"
                edge = EntityEdge(
                    uuid=_make_id("edge", each.id, fact),
                    group_id=GROUP,
                    source_node_uuid=_make_id("node", subject),
                    target_node_uuid=_make_id("node", object_),
                    created_at=now,
                    name=predicate,
                    fact=fact,
                    fact_embedding=vectors[fact],
                    episodes=[episode.uuid],
                    attributes={"passage": each.id},
                )
                await edge.save(driver)

    def search(self, question: str, limit: int) -> list[str]:
        """Search facts and episodes with its combined recipe, by reciprocal ranks."""
        if not self._is_ready:
            self._runner.run(make_word_indexes(self._graphiti.driver))
            self._is_ready = True
        return self._runner.run(self._find(question, limit))

    async def _find(self, question: str, limit: int) -> list[str]:
        config = COMBINED_HYBRID_SEARCH_RRF.model_copy(deep=True)
        config.limit = limit
        found = await self._graphiti.search_(question, config=config, group_ids=[GROUP])
        ranked = [str(edge.attributes.get("passage", "")) for edge in found.edges]
        return [id_ for id_ in (*ranked, *(episode.name for episode in found.episodes)) if id_]

    def delete(self, passage: PeerPassage) -> None:
        """Remove the episode with the edges that only it has."""
        self._runner.run(self._graphiti.remove_episode(_make_id("episode", passage.id)))


def _make_id(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(parts)))


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Open the graph."""
    embedder = OpenAIEmbedder(
        OpenAIEmbedderConfig(embedding_model=MODEL, api_key="none", base_url=url, embedding_dim=DIMENSION)
    )
    model = OpenAIClient(LLMConfig(api_key="none", base_url=url, model="scripted"))
    with asyncio.Runner() as runner:
        driver = KuzuDriver(db=str(folder / "graph.kuzu"))
        graphiti = Graphiti(graph_driver=driver, llm_client=model, embedder=embedder, cross_encoder=NoReranker())
        runner.run(graphiti.build_indices_and_constraints())
        yield GraphitiPeer(runner, graphiti, url)
        runner.run(graphiti.close())


async def make_word_indexes(driver: Any) -> None:
    """Make the indexes for full text, which Graphiti does not make on Kuzu. With them, writing is far slower."""
    for statement in ("INSTALL FTS", "LOAD EXTENSION FTS", *get_fulltext_indices(GraphProvider.KUZU)):
        try:
            await driver.execute_query(statement)
        except RuntimeError as error:
            if "already exists" not in str(error):
                raise


if __name__ == "__main__":
    run(open_peer)
