"""LightRAG in its file stores, mode `mix`, each passage a document. A scripted model gives it the set's triples.

Its `ainsert_custom_kg` takes triples directly, but keeps only the last source of an entity, so documents are inserted.
"""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from lightrag import LightRAG, QueryParam
from lightrag.utils import EmbeddingFunc

from benchmarks.peers.adapters.frame import DIMENSION, Peer, PeerPassage, embed, run


class LightRagPeer(Peer):
    """A working folder of LightRAG."""

    def __init__(self, runner: asyncio.Runner, rag: Any) -> None:
        self._runner, self._rag = runner, rag

    def index(self, passages: list[PeerPassage]) -> None:
        """Insert passages as documents."""
        ids = [each.id for each in passages]
        paths = [quote(id_, safe="") for id_ in ids]
        self._runner.run(self._rag.ainsert([each.whole for each in passages], ids=ids, file_paths=paths))

    def search(self, question: str, limit: int) -> list[str]:
        """Return the files of the chunks, in LightRAG's order."""
        param = QueryParam(mode="mix", chunk_top_k=limit, enable_rerank=False)
        found = self._runner.run(self._rag.aquery_data(question, param))
        return [unquote(chunk["file_path"]) for chunk in found.get("data", {}).get("chunks", [])]

    def delete(self, passage: PeerPassage) -> None:
        """Delete the document of a passage."""
        print(self._runner.run(self._rag.adelete_by_doc_id(passage.id)))


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Open the working folder; write it at the end."""

    async def embed_texts(texts: list[str], **_: Any) -> Any:
        return np.array(await asyncio.to_thread(embed, url, texts), dtype=np.float32)

    async def complete(prompt: str, system_prompt: str = "", history_messages: Any = (), **_: Any) -> str:
        messages = [{"role": "system", "content": system_prompt or ""}, *(history_messages or ())]
        return await asyncio.to_thread(ask_model, url, [*messages, {"role": "user", "content": prompt}])

    function = EmbeddingFunc(embedding_dim=DIMENSION, max_token_size=512, func=embed_texts)
    with asyncio.Runner() as runner:
        rag = LightRAG(working_dir=str(folder), embedding_func=function, llm_model_func=complete)
        runner.run(rag.initialize_storages())
        yield LightRagPeer(runner, rag)
        runner.run(rag.finalize_storages())


def ask_model(url: str, messages: list[dict[str, str]]) -> str:
    """Return a completion of the server."""
    body = json.dumps({"model": "scripted", "messages": messages}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


if __name__ == "__main__":
    run(open_peer)
