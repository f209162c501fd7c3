"""Evaluate the same questions on a file, on a PostgreSQL server, and on three cells with a server each.

    python -m benchmarks.stores --data SETS --sets musique 2wikimultihopqa --model WEIGHTS --vectors DIR

All options are those of `waylore.evaluation`, which is run once for each store. Four servers are started and
removed at the end. The catalogue of the cells is on the first server, beside the collection that is searched
there alone.
"""

import sys
from collections.abc import Sequence

from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_servers

from waylore.cells import admin
from waylore.cells.open import create_catalogue
from waylore.evaluation.__main__ import main as evaluate

CELLS = ("east", "north", "west")


def main(arguments: Sequence[str]) -> int:
    with start_servers(find_plain_build(), 1 + len(CELLS)) as (alone, *others):
        catalogue = create_catalogue(alone.url)
        for name, other in zip(CELLS, others, strict=True):
            admin.add_cell(catalogue, name, other.url)
        catalogue.close()
        stores = {
            "a file": [],
            "PostgreSQL": ["--store", alone.url],
            "three cells": ["--store", f"cells+{alone.url}"],
        }
        return max(evaluate_store(name, [*arguments, *options]) for name, options in stores.items())


def evaluate_store(name: str, options: list[str]) -> int:
    print(f"\n== {name}", flush=True)
    return evaluate(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
