"""Load passages by the million, and measure what a search costs: `python -m benchmarks.scale`.

    python -m benchmarks.scale --engine postgres --passages 10000 100000 1000000 --data SETS --model WEIGHTS
        --vectors DIR --folder DIR --json benchmarks/plots/results/scale.json

Real passages of a set are multiplied (`benchmarks.scale.sample`): a copy has ids, rare words and vectors of its own, and
a share of all passages are near-duplicates of others. With `--facts 0` passages have words and vectors only, otherwise
each page has so many facts, with their entities, and `related` and `connect` are measured for the pages that answer a
question. The engines are PostgreSQL, three cells with a PostgreSQL server each, PostgreSQL with an index on Qdrant, and
SQLite.

The bytes are printed before anything is loaded, and nothing is loaded if less than a fifth of the disk would stay free.
A load is made of pieces of minutes; one that was interrupted continues when the same command runs again. Each store is
measured and deleted before the next one is loaded. Where a file for the figures exists, rows of the same engine, number
of passages and facts are replaced. Quality is not measured here.
"""

import argparse
import math
import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import Matrix
from benchmarks.plots.results import read_rows, replace_rows, write_rows
from benchmarks.scale.disk import DiskTooSmall, check_disk, measure_folder
from benchmarks.scale.engines import CELLS, LOADS, Loaded
from benchmarks.scale.measure import make_questions, measure_store
from benchmarks.scale.multiply import COPY, INDEX, VECTORS, WRITE
from benchmarks.scale.sample import Sample, drop_graph, repeat_page, thin_page
from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.evaluation.index import add_embedder_options, create_embedder
from waylore.indexing.pipeline import embed_documents
from waylore.protocols import Embedder
from waylore.store.urls import open_store
from waylore.types.knowledge import Embeddable, IndexedDocument

SAMPLE_PASSAGES = 2_000  # real ones that are multiplied; smaller sets give all of theirs
KEY = "engine", "facts", "passages"  # of a row
POOL_FACTS = 4  # of each page, whose vectors are mixed with those of passages, also where pages have no facts
KINDS = {WRITE: "write", COPY: "copy", INDEX: "indexes", VECTORS: "vector index"}


def make_samples(
    dataset: Dataset, passages: int, facts: int, near_duplicates: float, embedder: Embedder, cells: int
) -> list[Sample]:
    """Return a sample for each cell, with the copies that make about so many passages together."""
    each = passages // cells
    copies = math.ceil(each / min(SAMPLE_PASSAGES, len(dataset.pages)))
    size = each // copies
    repeats = int(near_duplicates * size)
    pages = embed_documents(select_pages(dataset, size, facts or POOL_FACTS, repeats), embedder)
    kept, pool = pages if facts else [drop_graph(page) for page in pages], collect_vectors(pages)
    return [Sample(kept, embedder.name, copies, pool=pool, repeats=repeats, place=place) for place in range(cells)]


def collect_vectors(pages: Sequence[IndexedDocument]) -> Matrix:
    """Return the vectors of passages and statements."""
    parts: list[Embeddable] = []
    for page in pages:
        parts += [*page.passages, *page.facts]
    return np.stack([part.vector for part in parts if part.vector is not None])


def select_pages(dataset: Dataset, size: int, facts: int, repeats: int) -> list[IndexedDocument]:
    """Select pages, those with answers first; the last `repeats` are near-duplicates of the first."""
    answers = dict.fromkeys(uri for question in dataset.questions for uri in sorted(question.gold))
    order = {uri: place for place, uri in enumerate(answers)}
    pages = sorted(dataset.pages, key=lambda c: order.get(c.document.uri, len(order)))[:size]
    kept = [thin_page(page, facts) for page in pages]
    return [*kept[: size - repeats], *map(repeat_page, kept[:repeats], kept[size - repeats :])]


def measure(options: argparse.Namespace, dataset: Dataset, embedder: Embedder, passages: int) -> dict[str, Any]:
    """Load a store, measure it, delete it, and return the figures."""
    folder = options.folder / f"{options.engine}-{passages}-{options.facts}"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = check_disk(folder, options.engine, passages, options.facts)
    cells = len(CELLS) if options.engine == "cells" else 1
    samples = make_samples(dataset, passages, options.facts, options.near_duplicates, embedder, cells)
    questions = make_questions(dataset, samples, embedder)
    with LOADS[options.engine](folder, samples) as loaded:
        with closing(open_store(loaded.url, loaded.collections)) as store:
            figures = measure_store(store, questions, samples, loaded.servers)
        on_disk = measure_folder(folder)
    shutil.rmtree(folder)
    return {
        "engine": options.engine,
        "passages": sum(sample.passages for sample in samples),
        "facts": options.facts,
        "near_duplicates": options.near_duplicates,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "load": describe_load(loaded),
        "bytes": {"predicted": wanted, "folder": on_disk, **describe_tables(loaded, samples)},
        **figures,
    }


def describe_load(loaded: Loaded) -> dict[str, dict[str, float]]:
    """Return the time of each kind of step, and its passages by the second."""
    return {
        KINDS[kind]: {
            "seconds": seconds,
            "processor": processor,
            **({"per_second": n / seconds, "per_processor_second": n / max(processor, 1e-9)} if n else {}),
        }
        for kind, (seconds, processor, n) in loaded.steps.items()
        if kind in KINDS
    }


def describe_tables(loaded: Loaded, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the bytes of a passage: in all, and in each table with its indexes."""
    passages = sum(sample.passages for sample in samples)
    tables = {table: size / passages for table, size in loaded.tables.items() if size / passages >= 1}
    return {"per_passage": sum(loaded.tables.values()) / passages, "tables": tables}


def format_row(row: dict[str, Any]) -> str:
    """Format the figures of a store as lines."""
    times, processor, load = row["milliseconds"], row["processor"], row["load"]
    lines = [f"{row['engine']}, {row['passages']:,} passages, at most {row['facts']} facts each:"]
    lines += [
        f"  {name:12} {step['seconds']:8,.0f} s, {step['processor']:8,.0f} s of processors"
        + (f", {step['per_second']:,.0f} passages a second" if "per_second" in step else "")
        for name, step in load.items()
    ]
    lines += [
        f"  {name:12} p50 {times[name]['p50']:7.1f} ms, p95 {times[name]['p95']:7.1f} ms; "
        f"processor {processor[name]['client']:6.1f} ms here, {processor[name]['server']:6.1f} ms on servers"
        for name in times
    ]
    size = row["bytes"]["per_passage"]
    lines.append(
        f"  recall@10 {row['recall@10']:.3f}, {size:,.0f} bytes a passage, {row['memory'] / 1e6:,.0f} MB resident"
    )
    return "\n".join(lines)


def keep_row(file: Path, row: dict[str, Any]) -> None:
    """Write a row to a file, in place of one of the same store."""
    rows = replace_rows(read_rows(file) if file.exists() else (), [row], *KEY)
    write_rows(file, sorted(rows, key=itemgetter(*KEY)))


def round_figures(given: Any) -> Any:
    """Return figures with four digits."""
    if isinstance(given, dict):
        return {name: round_figures(each) for name, each in given.items()}
    return float(f"{given:.4g}") if isinstance(given, float | np.floating) else given


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each number of passages, one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=list(LOADS), default="postgres")
    parser.add_argument("--passages", type=int, nargs="+", default=[10_000, 100_000], help="numbers of passages")
    parser.add_argument("--facts", type=int, default=0, help="maximum number of facts of a page; 0: no graph at all")
    parser.add_argument("--near-duplicates", type=float, default=0.05, help="share of passages that resemble another")
    parser.add_argument("--questions", type=int, default=100, help="number of questions")
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--set", default="musique", help="name of the set")
    parser.add_argument("--json", type=Path, help="file for the figures")
    add_embedder_options(parser)
    options = parser.parse_args(arguments)
    options.folder = options.folder or Path("scale")
    embedder = create_embedder(options)
    dataset = read_dataset(options.data / options.set, sample=options.questions)
    for passages in sorted(options.passages):
        try:
            row = measure(options, dataset, embedder, passages)
        except DiskTooSmall as error:
            print(error, file=sys.stderr)
            return 1
        print(format_row(row), flush=True)
        if options.json:
            keep_row(options.json, round_figures(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
