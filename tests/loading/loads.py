"""A corpus in several formats, and loads of it that are compared by export."""

import json
import re
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from waylore import Waylore
from waylore.engine.waylore import RULES
from waylore.indexing.files.progress import AddReport
from waylore.indexing.files.task import Task
from waylore.indexing.loading.job import LoadJob
from waylore.indexing.loading.load import load_files
from waylore.indexing.loading.machine import MachineRunner
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.settings.sections import EmbeddingSettings, ExtractionSettings
from waylore.store.urls import open_store
from waylore.surfaces.cli.load import make_models
from waylore.types.author import OWNER
from waylore.types.knowledge import Document

NAMES = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Analytical Engine", "London", "Ockham Park"]
VERBS = ["met", "wrote to", "lived near", "worked on", "spoke of"]
THEN = datetime(2024, 5, 1, tzinfo=UTC)
TIME = re.compile('"recorded_at":"[^"]*"')
SMALL = 4_000  # bytes of a unit, so that files of a test have many pieces


def write_corpus(folder: Path, *, notes: int = 30, rows: int = 120, seed: int = 1) -> Path:
    """Write notes, JSON Lines, Parquet and a table, and a file that cannot be read; return the folder."""
    chosen = Random(seed)
    (folder / "notes").mkdir(parents=True)
    for number in range(notes):
        (folder / "notes" / f"{number}.md").write_text(f"# Note {number}\n\n{make_text(chosen)}\n", "utf-8")
    write_rows(folder / "rows.jsonl", chosen, rows)
    table = [{"title": f"Row {n}", "text": make_text(chosen), "year": 1800 + n, "day": THEN} for n in range(rows)]
    pq.write_table(pa.Table.from_pylist(table), folder / "table.parquet", row_group_size=50)
    (folder / "people.csv").write_text("name,city\nAda,London\nMary,Jedburgh\n", "utf-8")
    (folder / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    return folder


def write_rows(path: Path, chosen: Random, rows: int) -> None:
    """Write JSON Lines, with an empty and a broken line among them."""
    lines = [json.dumps({"title": f"Page {n}", "text": make_text(chosen), "number": n}) for n in range(rows)]
    path.write_text("\n".join([*lines[:3], "", *lines[3:], "{broken", ""]), "utf-8")


def make_text(chosen: Random, sentences: int = 4) -> str:
    """Return sentences about a few people and places."""
    words = (f"{chosen.choice(NAMES)} {chosen.choice(VERBS)} {chosen.choice(NAMES)}" for _ in range(sentences))
    return " ".join(f"{each} in {chosen.randrange(1800, 1900)}." for each in words)


def make_job(
    source: Path, url: str, collections: Sequence[str] = ("default",), *, unit_bytes: int = SMALL, cells: int = 1
) -> LoadJob:
    """Return a job with small units, so that few files are many of them."""
    template = Document(id="", source="file", recorded_at=THEN)
    task = Task(source, source if source.is_dir() else source.parent, None, template, OWNER)
    return LoadJob(
        task,
        task.compute_stamp(RULES),
        partial(make_models, EmbeddingSettings(provider="hashing"), ExtractionSettings()),
        partial(open_store, url),
        tuple(collections),
        tuple(number % cells for number in range(len(collections))),
        unit_bytes=unit_bytes,
    )


def load(
    source: Path,
    url: str,
    collections: Sequence[str] = ("default",),
    *,
    workers: int = 2,
    writers: int = 1,
    job: LoadJob | None = None,
) -> AddReport:
    """Load a folder with the processes of this machine."""
    made = job or make_job(source, url, collections)
    with ExitStack() as opened:
        stores = [opened.enter_context(closing(open_store(url, name))) for name in collections]
        start = partial(MachineRunner, workers=workers, writers=writers)
        return load_files(str(source), made, stores, start, lambda _: None)


def add(source: Path, url: str) -> AddReport:
    """Add a folder with one process, as `waylore add` does."""
    with Waylore.open(url, embedder=HashingEmbedder(quiet=True), clock=lambda: THEN) as memory:
        return memory.add_files(source, root=source if source.is_dir() else source.parent)


def export(url: str, collections: Sequence[str] = ("default",)) -> dict[str, str]:
    """Return a hash of each line of an export by its address, without the time of recording."""
    hashes: dict[str, str] = {}
    for name in collections:
        with Waylore.open(url, collection=name) as memory:
            for line in memory.export_lines():
                uri = json.loads(line).get("document", {}).get("uri", "header")
                hashes[uri] = blake2b(TIME.sub("", line).encode(), digest_size=8).hexdigest()
    return hashes
