"""Compare what a search and a write cost with this version and with an older one, in one run.

    python -m benchmarks.costs --data ../shared/data --model .cache/models/potion --set musique --sample 200

Both versions write the set's pages with its triples to a SQLite file, then answer the same questions in turn. The
older version runs in an environment of its own, installed from a commit of this repository. The embedding of a
question is left out. A figure is processor time of this version as a share of the older one's: the least of three
rounds of each, so that a busy machine changes it little. Bytes are those of the files.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.versions import prepare_old

OLD_COMMIT = "c7dc3f5"  # before statements and packs (issue 27)
ROUNDS = 3
METHODS = ("hybrid", "chain")
# The program that both versions run, under either name. It prints one line of JSON for each line that it reads.
PROBE = """
import importlib, json, sys, time
from datetime import UTC, datetime
from pathlib import Path
package, data, model, folder, sample = sys.argv[1:]
def find(*names):
    for module, _, name in (each.rpartition(".") for each in names):
        try:
            return getattr(importlib.import_module(f"{package}.{module}"), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise SystemExit(f"none of {names} in {package}")
read_dataset = find("evaluation.datasets.read_dataset", "evaluation.datasets.load")
open_indexed = find("evaluation.index.open_indexed", "evaluation.indexing.indexed")
recipes, search = find("recipes.RECIPES", "config.RECIPES"), find("retrieval.search.search")
Query = find("types.search.Query", "types.Query")
if model == "hashing":
    embedder = find("providers.embedders.hashing.HashingEmbedder", "providers.hashing.HashingEmbedder")(quiet=True)
else:
    load = find("providers.embedders.model2vec.Model2VecEmbedder", "providers.model2vec.Model2VecEmbedder")
    embedder = load(Path(model))
dataset = read_dataset(Path(data))
now = datetime(2026, 1, 1, tzinfo=UTC)
begun = time.process_time()
with open_indexed(dataset, embedder, Path(folder)) as store:
    written = time.process_time() - begun
    queries = [Query(q.text, vector=embedder.embed_query(q.text)) for q in dataset.questions[: int(sample)]]
    [file] = Path(folder).glob(f"*.{package}")
    del dataset
    print(json.dumps({"write": written, "bytes": file.stat().st_size}), flush=True)
    for line in sys.stdin:
        recipe, begun = recipes[line.strip()], time.process_time()
        for query in queries:
            search(store, embedder, query, recipe, now=now)
        print(json.dumps(time.process_time() - begun), flush=True)
"""


def start_probe(python: list[str], package: str, options: argparse.Namespace, folder: Path) -> "subprocess.Popen[str]":
    """Start the program with one version."""
    arguments = [package, options.data / options.set, options.model, folder, options.sample]
    return subprocess.Popen(
        [*python, "-c", PROBE, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def read_answer(probe: "subprocess.Popen[str]") -> dict[str, float] | float:
    """Return the next line that the program prints."""
    assert probe.stdout is not None
    answer: dict[str, float] | float = json.loads(probe.stdout.readline())
    return answer


def time_method(probe: "subprocess.Popen[str]", method: str) -> float:
    """Return the processor seconds of all questions with one method."""
    assert probe.stdin is not None
    probe.stdin.write(f"{method}\n")
    probe.stdin.flush()
    answer = read_answer(probe)
    assert isinstance(answer, float)
    return answer


def compare(options: argparse.Namespace, scratch: Path) -> None:
    """Run both versions in turn and print the figures."""
    old = start_probe(*prepare_old(options.old, scratch), options, scratch / "old")
    before = read_answer(old)
    new = start_probe([sys.executable], "waylore", options, scratch / "new")
    after = read_answer(new)
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    print(f"write   {after['write'] / before['write']:6.2f} of the older version's processor time, embedding included")
    print(f"bytes   {after['bytes'] / before['bytes']:6.2f} of the older version's file")
    for method in METHODS:
        rounds = [(time_method(old, method), time_method(new, method)) for _ in range(ROUNDS)]
        one, other = (min(seconds) / options.sample * 1_000 for seconds in zip(*rounds, strict=True))
        print(f"{method:7} {other / one:6.2f} of the older version's processor time ({one:.1f} and {other:.1f} ms)")
    for probe in (old, new):
        probe.communicate()


def main(arguments: list[str] | None = None) -> int:
    """Compare the two versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--model", default="hashing", help="folder of a model2vec model, or hashing")
    parser.add_argument("--sample", type=int, default=100, help="number of questions")
    parser.add_argument("--old", default=OLD_COMMIT, help="commit of the older version")
    options = parser.parse_args(arguments)
    options.data = options.data.resolve()
    if options.model != "hashing":
        options.model = Path(options.model).resolve()
    with tempfile.TemporaryDirectory() as name:
        compare(options, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
