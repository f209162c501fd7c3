"""mem0 with texts stored as they are (`infer=False`), on Qdrant in its local mode, with BM25 and spaCy's entities.

It takes no triples. Its two models are given as files, because it downloads them at the first use: spaCy's small English
model from WAYLORE_MODELS, and spaCy's stop words instead of the list of `Qdrant/bm25`.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any

from benchmarks.peers.adapters.frame import DIMENSION, MODEL, Peer, PeerPassage, run

OWNER = "peers"
PACKAGE = """from spacy.util import load_model_from_path
from pathlib import Path

def load(**options):
    return load_model_from_path(Path({weights!r}), **options)
"""


def offer_models(folder: Path) -> None:
    """Let mem0 find its models without a download."""
    import fastembed  # noqa: PLC0415
    from spacy.lang.en.stop_words import STOP_WORDS  # noqa: PLC0415

    for name in ("en_core_web_sm", "en_core_web_sm-3.8.0.dist-info", "bm25"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    weights = str(Path(os.environ["WAYLORE_MODELS"]) / "spacy-sm")
    (folder / "en_core_web_sm" / "__init__.py").write_text(PACKAGE.format(weights=weights))
    about = "Metadata-Version: 2.1\nName: en_core_web_sm\nVersion: 3.8.0\n"
    (folder / "en_core_web_sm-3.8.0.dist-info" / "METADATA").write_text(about)
    (folder / "bm25" / "english.txt").write_text("\n".join(sorted(STOP_WORDS)))
    sys.path.insert(0, str(folder))
    given = partialmethod(fastembed.SparseTextEmbedding.__init__, specific_model_path=str(folder / "bm25"))
    setattr(fastembed.SparseTextEmbedding, "__init__", given)  # noqa: B010


class Mem0Peer(Peer):
    """A memory of one user."""

    batch = 10

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def index(self, passages: list[PeerPassage]) -> None:
        """Add each passage as a memory."""
        for passage in passages:
            self._memory.add(passage.whole, user_id=OWNER, metadata={"passage": passage.id}, infer=False)

    def search(self, question: str, limit: int) -> list[str]:
        """Search without a threshold."""
        found = self._memory.search(question, top_k=limit, filters={"user_id": OWNER}, threshold=0.0)
        return [row["metadata"]["passage"] for row in found["results"]]

    def delete(self, passage: PeerPassage) -> None:
        """Delete the memories of a passage."""
        known = self._memory.get_all(filters={"user_id": OWNER, "passage": passage.id})
        for row in known["results"]:
            self._memory.delete(row["id"])


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Open the memory."""
    offer_models(folder.parent / "models")
    from mem0 import Memory  # noqa: PLC0415

    endpoint = {"api_key": "none", "openai_base_url": url}
    store = {
        "path": str(folder / "qdrant"),
        "collection_name": OWNER,
        "embedding_model_dims": DIMENSION,
        "on_disk": True,
    }
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "openai", "config": {"model": MODEL, "embedding_dims": DIMENSION, **endpoint}},
            "llm": {"provider": "openai", "config": {"model": "scripted", **endpoint}},
            "history_db_path": str(folder / "history.db"),
        }
    )
    yield Mem0Peer(memory)


if __name__ == "__main__":
    run(open_peer)
