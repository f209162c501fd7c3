"""Measure how fast `waylore load` writes to PostgreSQL, beside adding with one process and beside the bare embedder.

    python -m benchmarks.load --data SETS --set musique --pages 1000 --model .cache/models/bge-small --workers 1 2
    python -m benchmarks.load --data SETS --set musique --pages 1000 --model .cache/models/bge-small --cluster 3

Pages of a set are written as one file of JSON Lines. `add` is one process with one thread for each processor in the
embedder, `bare` the same embedder alone on the texts that `add` embedded. Every other row is a run of the command, with
the time that it reports: it includes the start of its processes and models. `--cluster N` starts a Ray cluster of N
nodes with one processor each on this machine; it needs `waylore[ray]`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, start_server

from benchmarks.ingestion import RecordingEmbedder, measure_seconds
from waylore import Waylore
from waylore.evaluation.datasets import read_dataset
from waylore.protocols import Embedder
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder

COMMAND = [sys.executable, "-m", "waylore.surfaces.cli"]
FILE_ROWS = 500
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 200_000_000}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
for _ in range(int(sys.argv[1]) - 1):
    cluster.add_node(**node)
cluster.wait_for_nodes()
print("address", cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


def write_pages(data: Path, set_: str, pages: int, folder: Path) -> None:
    """Write pages of a set as files of JSON Lines."""
    rows = [
        json.dumps({"title": page.document.title, "text": "\n\n".join(p.text for p in page.passages)})
        for page in read_dataset(data / set_).pages[:pages]
    ]
    for start in range(0, len(rows), FILE_ROWS):
        path = folder / f"{start:08}.jsonl"
        path.write_text("\n".join(rows[start : start + FILE_ROWS]) + "\n", encoding="utf-8")


def measure_add(server: Server, folder: Path, embedder: Embedder) -> list[dict[str, Any]]:
    """Measure one process, and its embedder alone on the same texts."""
    embedder.embed_passages(["warm up"])
    recording = RecordingEmbedder(embedder)
    with Waylore.open(create_database(server, "added"), embedder=recording) as memory:
        adding = measure_seconds(lambda: memory.add_files(folder, root=folder))
        passages = memory.stats().passages
    bare = measure_seconds(lambda: [embedder.embed_passages(batch) for batch in recording.batches])
    texts = sum(map(len, recording.batches))
    return [
        {"run": f"the bare embedder ({texts:,} texts)", "seconds": bare, "passages": passages},
        {"run": "add, one process", "seconds": adding, "passages": passages},
    ]


def measure_load(server: Server, folder: Path, model: Path | None, name: str, options: Sequence[str]) -> dict[str, Any]:
    """Measure a run of the command."""
    embedding = {"PROVIDER": "fastembed", "PATH": str(model)} if model else {"PROVIDER": "hashing"}
    settings = {f"WAYLORE_EMBEDDING_{key}": value for key, value in embedding.items()}
    url = create_database(server, "".join(filter(str.isalnum, name)).lower())
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as here:
        done = subprocess.run(
            [*COMMAND, "load", str(folder), "--root", str(folder), "--store", url, "--json", *options],
            cwd=here,
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            check=True,
        )
    report = json.loads(done.stdout)
    seconds = {"seconds": report["seconds"], "with_start": time.perf_counter() - began}
    return {"run": name, "passages": report["passages"], **seconds}


def create_database(server: Server, name: str) -> str:
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return server.build_url(name)


@contextmanager
def start_cluster(nodes: int) -> Iterator[str]:
    """Start a Ray cluster on this machine, and return its address."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER, str(nodes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield next(line.split()[1] for line in process.stdout if line.startswith("address"))
        process.stdin.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--set", default="musique", help="name of the set")
    parser.add_argument("--pages", type=int, default=1_000, help="number of pages")
    parser.add_argument("--model", type=Path, help="folder with the weights of bge-small; without it, texts are hashed")
    parser.add_argument("--workers", type=int, nargs="*", default=[], help="numbers of processes on this machine")
    parser.add_argument("--writers", type=int, default=2, help="most writers")
    parser.add_argument("--cluster", type=int, default=0, help="number of Ray nodes on this machine")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    embedder: Embedder = FastEmbedder(path=options.model) if options.model else HashingEmbedder(quiet=True)
    writers = ["--writers", str(options.writers)]
    with tempfile.TemporaryDirectory() as name, start_server(find_plain_build()) as server:
        folder = Path(name)
        write_pages(options.data, options.set, options.pages, folder)
        rows = measure_add(server, folder, embedder)
        for workers in options.workers:
            chosen = ["--workers", str(workers), *writers]
            rows.append(measure_load(server, folder, options.model, f"load, {workers} processes", chosen))
        if options.cluster:
            with start_cluster(options.cluster) as address:
                chosen = ["--cluster", address, *writers]
                rows.append(measure_load(server, folder, options.model, f"load, {options.cluster} Ray nodes", chosen))
    bare = rows[0]["seconds"]
    for row in rows:
        rate = row["passages"] / row["seconds"]
        print(
            f"{row['run']:40} {row['seconds']:8.1f} s {rate:8.1f} passages/s {bare / row['seconds']:6.0%} of the bare embedder"
        )
    if options.json:
        options.json.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
