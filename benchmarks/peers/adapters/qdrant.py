"""Qdrant's server with dense and sparse vectors (BM25 of fastembed, IDF by the server), fused by reciprocal ranks.

PEER_PROGRAM is the server. A stranger packed it, so it runs on loopback as an unprivileged user.
"""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastembed import SparseTextEmbedding
from qdrant_client import QdrantClient, models

from benchmarks.peers.adapters.frame import DIMENSION, Peer, PeerPassage, embed, run

NAME = "peers"
CANDIDATES = 100
TIMEOUT_SECONDS = 60.0
STOP_WORDS = frozenset(
    "a an and are as at be by did do for from had has he her his in is it its of on or she that the "
    "their they this to was were what when where which who whose will with".split()
)
UNPRIVILEGED = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


class QdrantPeer(Peer):
    """One collection."""

    batch = 256

    def __init__(self, client: QdrantClient, words: SparseTextEmbedding, url: str) -> None:
        self._client, self._words, self._url = client, words, url
        if not client.collection_exists(NAME):
            client.create_collection(
                NAME,
                vectors_config={"dense": models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)},
                sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
            )

    def index(self, passages: list[PeerPassage]) -> None:
        """Write passages, and wait until they are stored."""
        texts = [passage.whole for passage in passages]
        sparse = self._words.embed(texts)
        points = [
            models.PointStruct(
                id=_make_id(passage),
                vector={"dense": dense, "words": models.SparseVector(**worded.as_object())},
                payload={"passage": passage.id, "text": passage.whole},
            )
            for passage, dense, worded in zip(passages, embed(self._url, texts), sparse, strict=True)
        ]
        self._client.upsert(NAME, points, wait=True)

    def search(self, question: str, limit: int) -> list[str]:
        """Search by both vectors."""
        [dense] = embed(self._url, [question])
        [worded] = self._words.query_embed(question)
        near = models.Prefetch(query=dense, using="dense", limit=CANDIDATES)
        words = models.Prefetch(query=models.SparseVector(**worded.as_object()), using="words", limit=CANDIDATES)
        fusion = models.FusionQuery(fusion=models.Fusion.RRF)
        found = self._client.query_points(NAME, prefetch=[near, words], query=fusion, limit=limit, with_payload=True)
        return [str((point.payload or {})["passage"]) for point in found.points]

    def delete(self, passage: PeerPassage) -> None:
        """Delete a point."""
        self._client.delete(NAME, models.PointIdsList(points=[_make_id(passage)]), wait=True)


def _make_id(passage: PeerPassage) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, passage.id))


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Start the server on the data in a folder; stop it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    is_root = os.geteuid() == 0
    config = {"service": {"host": "127.0.0.1", "http_port": port, "grpc_port": None}, "log_level": "WARN"}
    places = {"storage_path": str(folder / "storage"), "snapshots_path": str(folder / "snapshots")}
    file = folder / "config.yaml"
    file.write_text(json.dumps({**config, "storage": places}))
    if is_root:
        shutil.chown(folder, "nobody", "nogroup")
    program = [os.environ["PEER_PROGRAM"], "--config-path", str(file), "--disable-telemetry"]
    process = subprocess.Popen([*UNPRIVILEGED, *program] if is_root else program, cwd=folder)
    try:
        wait_for(f"http://127.0.0.1:{port}/readyz")
        words = SparseTextEmbedding("Qdrant/bm25", specific_model_path=str(folder), stopwords=set(STOP_WORDS))
        yield QdrantPeer(QdrantClient(port=port, host="127.0.0.1", check_compatibility=False, timeout=60), words, url)
    finally:
        process.terminate()
        process.wait()


def wait_for(address: str) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            urllib.request.urlopen(address).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    run(open_peer)
