"""Compare this version with an older one, in one run: equal rankings, equal R@5, and no document twice.

    python -m benchmarks.versions --data ../shared/data --folders ../shared/folders --model .cache/models/bge-small

Both versions index the pages of a benchmark set and a folder from text, and answer the same questions by `hybrid` and
`chain`. The older version runs in an environment of its own, installed from a commit of this repository. At the end
this version adds the folder again to the store that the older version made: it must add no document.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from waylore import Waylore, legacy
from waylore.evaluation.datasets import read_dataset

ROOT = Path(__file__).parents[1]
OLD_COMMIT = "c59522a"
METHODS = ("hybrid", "chain")
# The program that both versions run: the same calls under either name.
PROBE = """
import gzip, importlib, json, sys
from pathlib import Path
package, store, model, corpus, folder, asked, out = sys.argv[1:]
module = importlib.import_module(package)
def find(*names):
    for name in names:
        try:
            return importlib.import_module(f"{package}.providers.{name}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(package):
                raise
embedder = (find("embedders.hashing", "hashing").HashingEmbedder(quiet=True) if model == "hashing"
            else find("embedders.fastembed", "fastembed").FastEmbedder(path=Path(model)))
questions, answers = json.loads(Path(asked).read_text("utf-8")), {}
def answer(memory, name):
    for id_, question in questions[name].items():
        for method in ("hybrid", "chain"):
            hits = memory.search(question, method=method).hits
            answers[f"{name} {method} {id_}"] = [
                [hit.document.uri, hit.passage.text, repr(hit.score)] for hit in hits]
opened = getattr(module, package.capitalize()).open
with opened(store + ".pages", embedder=embedder) as memory:
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            memory.add(row["text"], title=row["title"], uri=row["id"])
    answer(memory, "set")
with opened(store, embedder=embedder) as memory:
    memory.add_files(folder, root=folder)
    answer(memory, "folder")
Path(out).write_text(json.dumps(answers), "utf-8")
"""


def run_probe(python: str | Path, package: str, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Run the program with one version and return its answers."""
    out = scratch / f"{package}.json"
    corpus = options.data / options.set / "corpus.jsonl.gz"
    places = (scratch / f"{package}.db", options.model, corpus, options.folders / options.folder / "files")
    command = [python, "-c", PROBE, package, *places, scratch / "questions.json", out]
    subprocess.run([str(part) for part in command], check=True)
    answers: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return answers


def install_old(commit: str, scratch: Path) -> Path:
    """Install an older commit into an environment of its own; return its Python."""
    source = scratch / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    venv.create(scratch / "environment", with_pip=True)
    python = scratch / "environment" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{source}[local,model2vec,files,postgres]"], check=True)
    return python


def prepare_old(commit: str, scratch: Path) -> tuple[list[str], str]:
    """Install an older commit; return the command of its Python, without PYTHONPATH, and the name of its package."""
    python = install_old(commit, scratch)
    package = legacy.NAME if (scratch / "source" / "src" / legacy.NAME).exists() else "waylore"
    return [str(python), "-I"], package


def load_questions(options: argparse.Namespace) -> tuple[Any, list[dict[str, Any]]]:
    """Return the set, and the folder's questions."""
    dataset = read_dataset(options.data / options.set, sample=options.sample)
    lines = (options.folders / options.folder / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [row for row in map(json.loads, filter(str.strip, lines)) if row["type"] != "none"]
    return dataset, asked[: options.sample]


def measure(answers: Mapping[str, Any], dataset: Any, asked: list[dict[str, Any]], score: Any) -> dict[str, float]:
    """Return R@5 of each method on the set and on the folder."""
    figures = {}
    for method in METHODS:
        recalls = []
        for question in dataset.questions:
            found = list(dict.fromkeys(uri for uri, _, _ in answers[f"set {method} {question.id}"]))[:5]
            recalls.append(len(question.gold & set(found)) / len(question.gold))
        figures[f"set {method}"] = sum(recalls) / len(recalls)
        rankings = {row["id"]: _to_ranking(answers[f"folder {method} {row['id']}"]) for row in asked}
        recalls = [score.judged(row, rankings[row["id"]])["recall"] for row in asked]
        figures[f"folder {method}"] = sum(recalls) / len(recalls)
    return figures


def _to_ranking(hits: list[list[str]]) -> dict[str, Any]:
    return {"hits": [{"path": uri, "text": text} for uri, text, _ in hits], "is_relevant": True}


def load_score(folders: Path) -> Any:
    """Load the scorer that lies beside the folders."""
    spec = spec_from_file_location("score", folders / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str] | None = None) -> int:
    """Compare the two versions and print the figures of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folders", type=Path, required=True)
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--folder", default="proposals")
    parser.add_argument("--model", default="hashing", help="folder of a fastembed model, or hashing")
    parser.add_argument("--sample", type=int, help="number of questions; all if absent")
    parser.add_argument("--old", default=OLD_COMMIT, help="commit of the older version")
    options = parser.parse_args(arguments)
    options.data, options.folders = options.data.resolve(), options.folders.resolve()
    dataset, asked = load_questions(options)
    score = load_score(options.folders)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        questions = {
            "set": {q.id: q.text for q in dataset.questions},
            "folder": {q["id"]: q["question"] for q in asked},
        }
        (scratch / "questions.json").write_text(json.dumps(questions), "utf-8")
        old = run_probe(install_old(options.old, scratch), legacy.NAME, options, scratch)
        new = run_probe(sys.executable, "waylore", options, scratch)
        before, after = (measure(answers, dataset, asked, score) for answers in (old, new))
        for figure in before:
            print(f"R@5 {figure:15} {before[figure]!r:>22} {after[figure]!r:>22}")
        differing = [key for key in old if old[key] != new[key]]
        print(f"rankings that differ: {len(differing)} of {len(old)} {differing[:5]}")
        added = _add_again(scratch / f"{legacy.NAME}.db", options)
        print(f"documents added again to the older store: {added}")
    return int(bool(differing) or before != after or added != 0)


def _add_again(store: Path, options: argparse.Namespace) -> int:
    files = options.folders / options.folder / "files"
    with Waylore.open(store) as memory:
        before = memory.stats().documents
        memory.add_files(files, root=files)
        return memory.stats().documents - before


if __name__ == "__main__":
    sys.exit(main())
