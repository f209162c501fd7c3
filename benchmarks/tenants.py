"""How long searches take on PostgreSQL, by how much is in the tables and how many tenants it belongs to.

    python -m benchmarks.tenants --data SETS --model WEIGHTS --vectors DIR --folder DIR
        --passages 100000 1000000 --tenants 1 1000 --json tenants.json

A database for each pair, made of a sample of the set (`benchmarks.multiplying`) and kept in the folder: the first
run loads, later ones only measure. A tenant has passages / tenants of them; what it would take alone, in tables of its
own, is measured as well. Each question that names something goes to a tenant and a copy by lot, as the role that
applications have. Printed are p50 and p95 of bare hybrid, hybrid and chain, the ratios, the round trips on the wire, the
processor time that the server spends on a chain search, and recall@10 of `dense` against an exact scan, for one who may
see everything and for one who may see a tenth; `--json` has more, also bytes a passage. Quality is not measured here.

A page keeps its first `--facts`, so that a million fit on a small disk. The index of the names' vectors is not
built: none of these searches asks for it.
"""

import argparse
import gc
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.postgres import kept, plain

from benchmarks.latency import BARE
from benchmarks.tenants_databases import SAMPLE, SETTINGS, Size, ensure, ensure_reader, sample
from benchmarks.tenants_measuring import SEARCHES, Figures, asked, measure
from waylore.evaluation.datasets import load
from waylore.evaluation.index import add_embedder_options, chosen_embedder


def table(results: dict[Size, Figures]) -> str:
    """A line for each database, and what the goals are about."""
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
    return "\n".join([*lines, *compared(results)])


def compared(results: dict[Size, Figures]) -> Iterator[str]:
    """p50 with many tenants against that of one: with as many passages, and with as many as each of them has."""
    for size, found in results.items():
        one = replace(size, tenants=1)
        for against, other in ((f"one tenant of {one.passages:,}", one), ("such a tenant alone", size.alone)):
            if size.tenants > 1 and other in results:
                ratios = [
                    f"{name} {found['milliseconds'][name]['p50'] / results[other]['milliseconds'][name]['p50']:.2f}x"
                    for name in SEARCHES
                ]
                yield f"{size}, against {against}: {', '.join(ratios)}"


def wanted(options: argparse.Namespace) -> list[Size]:
    """The sizes asked for, and each tenant of many alone; one that cannot be made of whole copies is refused."""
    pairs = [Size(p, t, options.facts) for p in options.passages for t in options.tenants]
    sizes = dict.fromkeys([*(size.alone for size in pairs if size.tenants > 1), *pairs])
    for size in sizes:
        if not size.each or size.each % size.sampled:
            raise SystemExit(f"{size}: give each tenant up to {SAMPLE:,} passages, or a multiple of that")
    return list(sizes)


def main() -> None:
    """Load what is not there, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="musique")
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--tenants", type=int, nargs="+", default=[1, 1_000])
    parser.add_argument("--facts", type=int, default=4, help="that a page keeps")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--load-only", action="store_true")
    parser.add_argument("--json", type=Path)
    add_embedder_options(parser)
    options = parser.parse_args()
    embedder, dataset = chosen_embedder(options), load(options.data / options.set, sample=options.questions)
    results: dict[Size, Figures] = {}
    with (
        TemporaryDirectory() as passing,
        kept(plain(), options.folder or Path(passing), settings=SETTINGS) as server,
    ):
        for size in wanted(options):
            made_of = sample(dataset, size, embedder)
            ensure(server, size, made_of)
            ensure_reader(server)
            if not options.load_only:
                gc.freeze()
                results[size] = measure(server, size, asked(dataset, size, made_of, embedder))
    print(table(results))
    if options.json:
        told = {size.database: figures for size, figures in results.items()}
        options.json.write_text(json.dumps(told, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
