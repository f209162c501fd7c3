"""Measure searches on PostgreSQL by the number of passages in the tables and the number of tenants.

    python -m benchmarks.tenants --data SETS --model WEIGHTS --vectors DIR --folder DIR
        --passages 100000 1000000 --tenants 1 1000 --json tenants.json

There is a database for each pair of numbers, made from a sample of the set (`benchmarks.scale`) and stored in
the folder: the first run loads it, later runs only measure. Each tenant has passages / tenants of the passages.
A single tenant of that size in tables of its own is measured as well. Each question that names an entity is
assigned to a tenant and a copy at random, and runs with the role of applications. The benchmark prints p50 and
p95 of bare hybrid, hybrid and chain, the ratios, the round trips, the processor time of the server for a chain
search, and recall@10 of vector search against an exact scan, for a caller who may see everything and for one
who may see a tenth. `--json` has more, such as bytes per passage. Quality is not measured here.

A page has at most `--facts` facts, so that a million pages fit on a small disk. The index of name vectors is
not built, because none of these searches uses it.
"""

import argparse
import gc
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_persistent_server

from benchmarks.latency import BARE
from benchmarks.tenants.databases import (
    MAX_SAMPLE_PASSAGES,
    SERVER_SETTINGS,
    DatabaseSize,
    ensure_database,
    ensure_reader_role,
    make_sample,
)
from benchmarks.tenants.measure import SEARCHES, Figures, assign_questions, measure_database
from waylore.evaluation.datasets import read_dataset
from waylore.evaluation.index import add_embedder_options, create_embedder


def format_table(results: dict[DatabaseSize, Figures]) -> str:
    """Format a line for each database, and the ratios between databases."""
    head = "ms, p50 (p95)".ljust(34) + "".join(f"{name:>18}" for name in SEARCHES)
    lines = [head + f"{'chain / bare':>14}{'trips':>7}{'cpu ms':>8}{'recall':>8}{'a tenth':>9}"]
    for size, found in results.items():
        times = found["milliseconds"]
        cells = [f"{times[name]['p50']:.1f} ({times[name]['p95']:.1f})" for name in SEARCHES]
        ratio = times["chain"]["p50"] / times[BARE]["p50"]
        recalls = found["recall@10"]
        lines.append(
            f"{size!s:34}"
            + "".join(f"{cell:>18}" for cell in cells)
            + f"{ratio:>13.2f}x{found['round_trips']['chain']:>7.0f}{found['processor']['chain']['server']:>8.1f}"
            + f"{recalls['everything']:>8.3f}{recalls['a tenth']:>9.3f}"
        )
    return "\n".join([*lines, *compare_sizes(results)])


def compare_sizes(results: dict[DatabaseSize, Figures]) -> Iterator[str]:
    """Compare p50 with that of a single tenant with all passages, and with that of one of its tenants alone."""
    for size, found in results.items():
        one = replace(size, tenants=1)
        for against, other in (
            (f"one tenant with {one.passages:,}", one),
            ("one of its tenants alone", size.alone),
        ):
            if size.tenants > 1 and other in results:
                ratios = [
                    f"{name} {found['milliseconds'][name]['p50'] / results[other]['milliseconds'][name]['p50']:.2f}x"
                    for name in SEARCHES
                ]
                yield f"{size}, compared with {against}: {', '.join(ratios)}"


def list_sizes(options: argparse.Namespace) -> list[DatabaseSize]:
    """Return the requested sizes and a single tenant of each; refuse sizes that need parts of copies."""
    pairs = [DatabaseSize(p, t, options.facts) for p in options.passages for t in options.tenants]
    sizes = dict.fromkeys([*(size.alone for size in pairs if size.tenants > 1), *pairs])
    for size in sizes:
        if not size.passages_per_tenant or size.passages_per_tenant % size.sample_passages:
            raise SystemExit(f"{size}: passages per tenant must be at most {MAX_SAMPLE_PASSAGES:,} or a multiple of it")
    return list(sizes)


def main() -> None:
    """Load missing databases, measure all and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--set", default="musique", help="name of the set")
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000, 1_000_000], help="numbers of passages")
    parser.add_argument("--tenants", type=int, nargs="+", default=[1, 1_000], help="numbers of tenants")
    parser.add_argument("--facts", type=int, default=4, help="maximum number of facts of a page")
    parser.add_argument("--questions", type=int, default=200, help="number of questions")
    parser.add_argument("--load-only", action="store_true", help="load the databases without measuring")
    parser.add_argument("--json", type=Path, help="file for the figures")
    add_embedder_options(parser)
    options = parser.parse_args()
    embedder = create_embedder(options)
    dataset = read_dataset(options.data / options.set, sample=options.questions)
    results: dict[DatabaseSize, Figures] = {}
    with (
        TemporaryDirectory() as temporary,
        start_persistent_server(
            find_plain_build(), options.folder or Path(temporary), settings=SERVER_SETTINGS
        ) as server,
    ):
        for size in list_sizes(options):
            sample = make_sample(dataset, size, embedder)
            ensure_database(server, size, sample)
            ensure_reader_role(server)
            if not options.load_only:
                gc.freeze()
                queries = assign_questions(dataset, size, sample, embedder)
                results[size] = measure_database(server, size, queries)
    print(format_table(results))
    if options.json:
        by_database = {size.database: figures for size, figures in results.items()}
        options.json.write_text(json.dumps(by_database, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
