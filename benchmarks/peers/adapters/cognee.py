"""cognee with its default stores and its default search (`HYBRID_COMPLETION`), whose context is read instead of an answer.

A scripted model gives it the set's triples as graphs, and the beginning of a text as its summary.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from benchmarks.peers.adapters.frame import DIMENSION, MODEL, Peer, PeerPassage, read_lines, run

DATASET = "peers"
NAMES = "names.jsonl"


def set_variables(folder: Path, url: str) -> None:
    """Set what cognee reads when it is imported."""
    os.environ.update(
        LLM_PROVIDER="custom",
        LLM_MODEL="openai/scripted",
        LLM_ENDPOINT=url,
        LLM_API_KEY="none",
        EMBEDDING_PROVIDER="openai_compatible",
        EMBEDDING_MODEL=MODEL,
        EMBEDDING_ENDPOINT=url,
        EMBEDDING_API_KEY="none",
        EMBEDDING_DIMENSIONS=str(DIMENSION),
        DATA_ROOT_DIRECTORY=str(folder / "data"),
        SYSTEM_ROOT_DIRECTORY=str(folder / "system"),
        COGNEE_LOGS_DIR=str(folder / "logs"),
        TELEMETRY_DISABLED="true",
        ENABLE_BACKEND_ACCESS_CONTROL="false",
        COGNEE_SKIP_CONNECTION_TEST="true",
        CACHING="false",
    )


class CogneePeer(Peer):
    """One dataset."""

    def __init__(self, runner: asyncio.Runner, cognee: Any, folder: Path, set_folder: Path) -> None:
        self._runner, self._cognee, self._folder = runner, cognee, folder
        self._texts = {row["text"]: row["id"] for row in read_lines(set_folder / "passages.jsonl")}

    def index(self, passages: list[PeerPassage]) -> None:
        """Add passages as documents, and make their graph."""
        self._runner.run(self._cognee.add([passage.whole for passage in passages], dataset_name=DATASET))
        self._runner.run(self._cognee.cognify(datasets=[DATASET]))

    def search(self, question: str, limit: int) -> list[str]:
        """Return the passages in the context, in their order."""
        kind = self._cognee.SearchType.HYBRID_COMPLETION
        found = self._runner.run(
            self._cognee.search(question, query_type=kind, top_k=limit, only_context=True, datasets=[DATASET])
        )
        context = str(found)
        places = {id_: context.find(text[:100]) for text, id_ in self._texts.items()}
        return [id_ for id_, place in sorted(places.items(), key=lambda pair: pair[1]) if place >= 0]

    def delete(self, passage: PeerPassage) -> None:
        """Delete the document whose file has the text of a passage."""
        self._runner.run(self._delete(passage.whole))

    async def _delete(self, text: str) -> None:
        datasets = self._cognee.datasets
        [dataset] = [each for each in await datasets.list_datasets() if each.name == DATASET]
        for stored in await datasets.list_data(dataset.id):
            file = Path(unquote(urlsplit(stored.raw_data_location).path))
            if file.read_text("utf-8") == text:
                await datasets.delete_data(dataset.id, stored.id)


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Open the dataset."""
    set_variables(folder, url)
    import sys  # noqa: PLC0415

    import cognee  # noqa: PLC0415

    with asyncio.Runner() as runner:
        yield CogneePeer(runner, cognee, folder, Path(sys.argv[2]))


if __name__ == "__main__":
    run(open_peer)
