"""HippoRAG 2 with the set's triples as the cache of its extraction. Its filter of facts asks a script that keeps all of them.

It pins versions of torch and vLLM for a GPU. Here vLLM is an empty module, because only its offline mode uses it.
"""

import hashlib
import json
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.adapters.frame import Peer, PeerPassage, read_lines, run

MODEL = "text-embedding-bge-small"  # the name says which client is used
NAMES = "names.jsonl"


class HippoRagPeer(Peer):
    """A working folder of HippoRAG, which is indexed as a whole."""

    batch = 1_500

    def __init__(self, folder: Path, rag: Any) -> None:
        self._folder, self._rag = folder, rag
        self._names = {row["text"]: row["id"] for row in read_lines(folder / NAMES)}

    def index(self, passages: list[PeerPassage]) -> None:
        """Write the triples of passages to the cache of extraction, and index them."""
        file = Path(self._rag.openie_results_path)
        known = json.loads(file.read_text("utf-8"))["docs"] if file.exists() else []
        docs = [*known, *map(make_row, passages)]
        file.write_text(json.dumps({"docs": docs, "avg_ent_chars": 0, "avg_ent_words": 0}), encoding="utf-8")
        self._rag.index([passage.whole for passage in passages])
        with (self._folder / NAMES).open("a", encoding="utf-8") as names:
            names.writelines(json.dumps({"id": p.id, "text": make_key(p.whole)}) + "\n" for p in passages)

    def search(self, question: str, limit: int) -> list[str]:
        """Return the passages with the highest rank."""
        [found] = self._rag.retrieve([question], num_to_retrieve=limit)
        return [self._names[make_key(text)] for text in found.docs if make_key(text) in self._names]

    def delete(self, passage: PeerPassage) -> None:
        """Delete a passage."""
        self._rag.delete([passage.whole])


def make_row(passage: PeerPassage) -> dict[str, Any]:
    """Return a passage as an entry of the cache of extraction."""
    triples = [list(triple) for triple in passage.triples]
    names = dict.fromkeys([*(name for s, _, o in triples for name in (s, o)), *passage.entities])
    return {"idx": "", "passage": passage.whole, "extracted_entities": [*names], "extracted_triples": triples}


def make_key(text: str) -> str:
    """Return a digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Open the working folder."""
    stub = types.ModuleType("vllm")
    vars(stub).update(SamplingParams=None, LLM=None)
    sys.modules["vllm"] = stub
    from hipporag import HippoRAG  # noqa: PLC0415

    yield HippoRagPeer(
        folder,
        HippoRAG(
            save_dir=str(folder),
            llm_model_name="scripted",
            llm_base_url=url,
            embedding_model_name=MODEL,
            embedding_base_url=url,
        ),
    )


if __name__ == "__main__":
    run(open_peer)
