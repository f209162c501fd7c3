# The recipes that CI and contributors share. `just` lists them.

default:
    @just --list

# everything CI does
ci:
    bash .ci/run

# format, lint, types and layers
check:
    ruff format .
    ruff check .
    mypy
    lint-imports

# the tests; arguments go to pytest
test *arguments:
    pytest -q {{arguments}}

# the weights that tests and benchmarks use
models *names:
    python tools/models.py {{names}}

# how the store takes to growth (an hour and 13 GB at the full size)
growth *arguments:
    python -m benchmarks.store_growth {{arguments}}
