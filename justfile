# Commands that contributors and CI share. `just` lists them.

set positional-arguments

sets := "../shared/data"
folders := "../shared/folders"
hashed := "--embedder hashing"
small := "2wiki-fastgraphrag-51"  # 421 pages, for samples in CI

default:
    @just --list

# Run all steps of CI in a new environment
ci:
    bash .ci/run

# Format the code and fix lint errors
format:
    ruff format .
    ruff check --fix .

# Check format and lint without changing files
lint:
    ruff format --check .
    ruff check .

# Check types of source, tests, benchmarks and tools (mypy, strict)
types:
    mypy

# Build the TypeScript client, and with it the explorer's page into the package; needs Node 20.19 or newer
explorer: client
    cd explorer && npm ci --no-audit --no-fund && npm run build

# Check the import contracts
layers:
    lint-imports

# Measure how source and docs read; `--check` fails if a limit is broken, `--list riddles` prints the places
figures *arguments:
    python -m tools.figures src/waylore --tests tests --twins surfaces.wire {{arguments}}

# Check the code (bandit), its dependencies (pip-audit) and pins, and look for secrets in the repository
security:
    bandit -q -c pyproject.toml -r src
    python -m tools.audit
    python -m tools.supply.pins --check
    python -m tools.supply.leaks

# Look for secrets in everything that was ever committed
secrets-history:
    python -m tools.supply.leaks --history

# Write the pins of pins/; `--upgrade` takes the newest versions, `--check` writes nothing
pins *arguments:
    python -m tools.supply.pins {{arguments}}

# Write the digests of the images that deploy/ names, as the registry at this address has them
pin-images registry:
    python -m tools.supply.images --registry {{registry}}

# Print SBOM, licences, pins, images and what was audited; `--release` fails if anything is missing
audit-supply-chain *arguments:
    python -m tools.supply {{arguments}}

# Build a release twice, compare, install by hash, list and sign it; publishes nothing. `--rehearse` goes on where a release is refused
release *arguments:
    python -m tools.supply.release {{arguments}}

# Run the tests; arguments are passed to pytest (`-n 2` runs two files at a time)
test *arguments:
    pytest -q "$@"

# The quick loop: lint, types and unit tests, under a minute with a warm mypy cache
quick:
    ruff format --check .
    ruff check .
    mypy
    pytest -q -n 2 -m "not slow" --hypothesis-profile=quick tests/unit

# Run the tests and measure coverage; fails below the floor in pyproject.toml
coverage *arguments:
    pytest -q --cov --cov-report=term:skip-covered "$@"

# Run the suite once beside a load that keeps all cores busy; adds a line to tools/busy.jsonl
test-busy *arguments:
    python -m tools.busy "$@"

# Install on Python 3.12 and 3.13, and get a first answer
smoke:
    python -m tools.smoke

# Everything that CI does, and what takes too long for it
full:
    bash .ci/run
    just coverage -n 2 --dist loadfile -m "not full"
    just test -m full
    just site-check --all-pages
    python -m tools.website --with mkdocs-material
    just test --hypothesis-profile=full tests/retrieval tests/cells tests/engine
    just test-busy -m "not full"

# Download the model weights that tests and benchmarks use
models *names:
    python tools/models.py {{names}}

# Install PostgreSQL with pg_textsearch for tests and benchmarks; needs root, once
textsearch:
    bash tools/postgres/textsearch.sh

# Download the Qdrant server that tests and benchmarks run
qdrant:
    python -m tools.qdrant

# Install PgBouncer for tests; needs root, once
pgbouncer:
    command -v pgbouncer > /dev/null || (apt-get -qq update && apt-get -qq install --yes pgbouncer > /dev/null)

# Write the pages of docs/reference and the command output in the docs; `--check` writes nothing
reference *arguments:
    python -m tools.reference {{arguments}}
    python -m tools.transcripts docs/how-to/command-line.md {{arguments}}

# Build the site of the docs into build/site
site:
    python -m tools.website

# Build the site and check links, pictures, requests and accessibility; needs Chromium and the packages of `just explorer`
site-check *arguments:
    python -m tools.website --check {{arguments}}

# Run the recipes for agents with real packages, each in an environment of its own, and a scripted model
recipes *names:
    python -m tools.recipes {{names}}

# Draw the plots of the docs from the results in benchmarks/plots/results; `--check` writes nothing
plots *arguments:
    python -m benchmarks.plots {{arguments}}

# Generate the TypeScript client from the OpenAPI document and compile it
client:
    python -m tools.client

# Install and run Waylore as a new user does, in empty environments
first-minute:
    python -m tools.first_minute

# Run a small sample of each benchmark; files go to FOLDER
benchmarks folder:
    python -m benchmarks.store_growth --sizes 500 1000 --questions 20 --folder {{folder}}
    python -m benchmarks.bits --size 20000
    python -m benchmarks.pages
    python -m benchmarks.hub --sizes 1000 10000 --runs 10 --folder {{folder}}
    python -m benchmarks.latency --data {{sets}} --set {{small}} --questions 10 {{hashed}} --folder {{folder}}
    python -m benchmarks.telemetry --data {{sets}} --set {{small}} --questions 10 --rounds 3 {{hashed}} --folder {{folder}}
    python -m benchmarks.pagerank --data {{sets}} --sets {{small}} --sample 5 {{hashed}}
    python -m benchmarks.ingestion throughput --data {{sets}} --pages 50 --potion .cache/models/potion
    python -m benchmarks.ingestion growth --size 2000 --documents 10 --folder {{folder}}
    python -m benchmarks.load --data {{sets}} --set {{small}} --pages 50 --workers 2
    python -m benchmarks.writing --data {{sets}} --set {{small}} --pages 20 --rounds 1 --old ""
    python -m benchmarks.bm25 --data {{sets}} --set {{small}} --beside locomo --questions 20
    python -m benchmarks.faults --sample killed threads
    python -m benchmarks.kills --kills 20 --folder {{folder}}
    python -m benchmarks.upload --megabytes 0.5 --format md --quiet --hasty
    python -m benchmarks.tenants --data {{sets}} --set {{small}} --passages 400 --tenants 1 4 --questions 5 {{hashed}}
    python -m benchmarks.scale --engine postgres --passages 400 --facts 2 --data {{sets}} --set {{small}} --questions 10 {{hashed}} --folder {{folder}}
    python -m benchmarks.scale --engine sqlite --passages 800 --data {{sets}} --set {{small}} --questions 10 {{hashed}} --folder {{folder}}
    python -m benchmarks.users --data {{sets}} --users 4 --turns 10 --growth 10 20 --questions 2 {{hashed}}
    python -m benchmarks.bytes --data {{sets}} --set {{small}} --pages 100 --old ""
    python -m benchmarks.qdrant --passages 300 --questions 5
    python -m benchmarks.partial_indexes --large 0 5 --passages 100 --times 3
    python -m benchmarks.serving --data {{sets}} --set {{small}} --rates 5 --seconds 4 --collections 1 --workers 2
    python -m waylore.evaluation.fit --data {{sets}} --sets hotpotqa-train100 {{hashed}} --folder {{folder}}
    python -m waylore.evaluation.deep --data {{sets}} --sets {{small}} {{hashed}} --folder {{folder}}
    python -m waylore.evaluation --data {{sets}} --sets {{small}} locomo --sample 10 {{hashed}} --folder {{folder}} \
      --recipes hybrid vector keyword neighbourhood guided activation citations chain deep --json {{folder}}/evaluation.json
    python -m waylore.evaluation --data {{sets}} --sets {{small}} --sample 5 {{hashed}} --read-by rules
    python -m benchmarks.stores --data {{sets}} --sets {{small}} --sample 5 {{hashed}}
    python -m waylore.evaluation --folders {{folders}} --only notes --sets --json {{folder}}/set_answers.json
    python -m waylore.evaluation --context --data {{sets}} --sets {{small}} --sample 5 {{hashed}} --folder {{folder}}
    python -m waylore.evaluation --context --folders {{folders}} --only manual --sample 5 --budgets 250 1000 {{hashed}}

# Compute the table of docs/benchmarks.md; the first run embeds for more than an hour
evaluation *arguments:
    python -m benchmarks.pagerank --data {{sets}} --model .cache/models/bge-small --vectors .cache/vectors --json .cache/pagerank.json
    python -m waylore.evaluation --data {{sets}} --model .cache/models/bge-small --vectors .cache/vectors --folder .cache/sets \
      --sets 2wikimultihopqa musique hotpotqa locomo longmemeval-oracle peerread-citations \
      --beside .cache/pagerank.json {{arguments}}

# Measure the store while it grows (an hour and 14 GB at the full size)
growth *arguments:
    python -m benchmarks.store_growth {{arguments}}
