"""Hindsight in this process, on PostgreSQL with pgvector. Each passage is a document; `recall` finds facts of documents.

A scripted model gives it the set's triples as facts, in its default mode of extraction, so a passage without triples is
never found. No weights can be downloaded, so the reranker is `rrf`, which keeps the fused order of its searches by vector,
words, links and dates. Observations are off, as they need a model that writes. All else is Hindsight's default.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_persistent_server

from benchmarks.peers.adapters.frame import DIMENSION, MODEL, Peer, PeerPassage, run

BANK = "peers"


def set_variables(database: str, url: str) -> None:
    """Set what Hindsight reads when it starts."""
    os.environ.update(
        HINDSIGHT_API_DATABASE_URL=database,
        HINDSIGHT_API_LLM_PROVIDER="openai",
        HINDSIGHT_API_LLM_MODEL="scripted",
        HINDSIGHT_API_LLM_API_KEY="none",
        HINDSIGHT_API_LLM_BASE_URL=url,
        HINDSIGHT_API_SKIP_LLM_VERIFICATION="true",
        HINDSIGHT_API_EMBEDDINGS_PROVIDER="openai",
        HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL=MODEL,
        HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY="none",
        HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL=url,
        HINDSIGHT_API_EMBEDDINGS_OPENAI_DIMENSIONS=str(DIMENSION),
        HINDSIGHT_API_RERANKER_PROVIDER="rrf",
        HINDSIGHT_API_ENABLE_OBSERVATIONS="false",
    )


class HindsightPeer(Peer):
    """A bank of memories."""

    def __init__(self, runner: asyncio.Runner, engine: Any, context: Any, database: str) -> None:
        self._runner, self._engine, self._context, self._database = runner, engine, context, database

    def index(self, passages: list[PeerPassage]) -> None:
        """Retain passages as documents. Those without a date are stored as timeless, which its service calls `unset`."""
        contents = [
            {"content": passage.whole, "document_id": passage.id, "event_date": passage.at or None}
            for passage in passages
        ]
        self._runner.run(self._engine.retain_batch_async(BANK, contents, request_context=self._context))

    def search(self, question: str, limit: int) -> list[str]:
        """Return the documents of the recalled facts, in their order; their number is Hindsight's own."""
        found = self._runner.run(self._engine.recall_async(BANK, question, request_context=self._context))
        return list(dict.fromkeys(fact.document_id for fact in found.results))[:limit]

    def delete(self, passage: PeerPassage) -> None:
        """Delete a document with its facts, and let VACUUM remove what is left of its rows."""
        print(self._runner.run(self._engine.delete_document(passage.id, BANK, request_context=self._context)))
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute("VACUUM (FULL)")
            connection.execute("CHECKPOINT")


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Start a server on the data in a folder, and Hindsight on it; its background work is done before a call returns."""
    with start_persistent_server(find_plain_build(), folder) as server, asyncio.Runner() as runner:
        set_variables(server.url, url)
        from hindsight_api import MemoryEngine, RequestContext  # type: ignore[import-not-found]  # noqa: PLC0415
        from hindsight_api.engine.task_backend import (  # type: ignore[import-not-found]  # noqa: PLC0415
            SyncTaskBackend,
        )

        engine = MemoryEngine(task_backend=SyncTaskBackend())
        runner.run(engine.initialize())
        yield HindsightPeer(runner, engine, RequestContext(), server.url)
        runner.run(engine.close())


if __name__ == "__main__":
    run(open_peer)
