"""How well questions are answered in a file, on a PostgreSQL server, and in three cells of servers of their own.

    python -m benchmarks.stores --data SETS --sets musique 2wikimultihopqa --model WEIGHTS --vectors DIR

All options are those of `waylore.evaluation`, which is run once for each. Four servers are started and removed again;
the catalogue of cells is on the first, beside the collection that is searched there alone.
"""

import sys
from collections.abc import Sequence

from tools.postgres import plain, servers

from waylore.cells import admin
from waylore.cells.open import open_catalogue
from waylore.evaluation.__main__ import main as evaluate

CELLS = ("east", "north", "west")


def main(arguments: Sequence[str]) -> int:
    with servers(plain(), 1 + len(CELLS)) as (alone, *others):
        catalogue = open_catalogue(alone.url)
        for name, other in zip(CELLS, others, strict=True):
            admin.add(catalogue, name, other.url)
        catalogue.close()
        stores = {
            "a file": [],
            "PostgreSQL": ["--store", alone.url],
            "three cells": ["--store", f"cells+{alone.url}"],
        }
        return max(evaluated(name, [*arguments, *options]) for name, options in stores.items())


def evaluated(name: str, options: list[str]) -> int:
    print(f"\n== {name}", flush=True)
    return evaluate(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
