# The recipes that contributors and CI share. `just` lists them.

default:
    @just --list

# everything CI does, in an environment of its own
ci:
    bash .ci/run

# put code and docs into shape
format:
    ruff format .
    ruff check --fix .

# format and lint, without changing anything
lint:
    ruff format --check .
    ruff check .

# mypy strict over source, tests, benchmarks and tools
types:
    mypy

# who may import whom
layers:
    lint-imports

# the tests; arguments go to pytest
test *arguments:
    pytest -q {{arguments}}

# the weights that tests and benchmarks use
models *names:
    python tools/models.py {{names}}

# act as a new user would, in empty environments
first-minute:
    python tools/first_minute.py

# a small sample of each benchmark, into FOLDER
benchmarks folder:
    python -m benchmarks.store_growth --sizes 500 1000 --questions 20 --folder {{folder}}
    python -m benchmarks.bits --size 20000

# how the store takes to growth (an hour and 14 GB at the full size)
growth *arguments:
    python -m benchmarks.store_growth {{arguments}}
