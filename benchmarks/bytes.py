"""Print the bytes that a passage takes on PostgreSQL, by table, and as a share of an older version's.

    python -m benchmarks.bytes --data ../shared/data --set musique --pages 3000 --facts rules

Both versions write the same pages to databases of their own, with vectors of 384 dimensions. Tables and indexes are
then written anew (VACUUM FULL), so that no page has room that writes have left. The older version runs in an
environment of its own, installed from a commit of this repository; `--old ""` leaves it out.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, start_servers

from benchmarks.costs import OLD_COMMIT
from benchmarks.versions import install_old

# The program that both versions run.
PROBE = """
import sys
from dataclasses import replace
from pathlib import Path
from waylore.evaluation.datasets import read_dataset
from waylore.evaluation.index import extract_from_text, open_indexed
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.providers.embedders.hashing import HashingEmbedder
data, url, pages, facts = sys.argv[1:]
dataset = read_dataset(Path(data))
dataset = replace(dataset, pages=dataset.pages[: int(pages)])
dataset = extract_from_text(dataset, RuleExtractor()) if facts == "rules" else dataset
with open_indexed(dataset, HashingEmbedder(quiet=True), url=url) as store:
    print(store.statistics().passages)
"""
SIZES = """SELECT relname, reltuples, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r' AND reltuples > 0"""
Sizes = dict[str, tuple[float, ...]]  # by table: its rows, their bytes and the bytes of its indexes, per passage


def measure_sizes(server: Server, database: str, python: list[str], options: argparse.Namespace) -> Sizes:
    """Fill a database with the version that a Python has, and return the sizes of its tables."""
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {database}")
    url = server.build_url(database)
    arguments = [options.data / options.set, url, options.pages, options.facts]
    command = [*python, "-c", PROBE, *map(str, arguments)]
    passages = int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM FULL ANALYZE")
        return {table: tuple(size / passages for size in sizes) for table, *sizes in db.execute(SIZES)}


def compute_total(sizes: Sizes) -> float:
    """Return the bytes per passage of all tables with their indexes."""
    return sum(rows + indexes for _, rows, indexes in sizes.values())


def print_sizes(sizes: Sizes) -> None:
    """Print rows, their bytes and those of indexes, the largest table first."""
    for table, (count, rows, indexes) in sorted(sizes.items(), key=lambda item: -sum(item[1][1:])):
        print(f"{table:20} {count:5.1f} {rows:8,.0f} + {indexes:6,.0f}")
    print(f"{'all':20} {sum(count for count, *_ in sizes.values()):5.1f} {compute_total(sizes):8,.0f}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure this version, and the older one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument(
        "--facts", choices=("rules", "triples"), default="rules", help="read by rules, or the set's own"
    )
    parser.add_argument("--old", default=OLD_COMMIT, help="commit of the older version")
    options = parser.parse_args(arguments)
    options.data = options.data.resolve()
    with start_servers(find_plain_build()) as (server,), tempfile.TemporaryDirectory() as scratch:
        sizes = measure_sizes(server, "new", [sys.executable], options)
        print_sizes(sizes)
        if options.old:
            python = install_old(options.old, Path(scratch))
            before = measure_sizes(server, "old", [str(python), "-I"], options)  # without PYTHONPATH
            print_sizes(before)
            print(f"{compute_total(sizes) / compute_total(before):.3f} of the older version's bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
