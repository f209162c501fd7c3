"""Compare what adding files costs with this version and with an older one, in one run.

    python -m benchmarks.writing --data ../shared/data --set musique --pages 3000
    python -m benchmarks.writing --folders ../shared/folders --model .cache/models/bge-small

Both versions add the same files to an empty SQLite file, with names and facts read by rules: the pages of a set as
Markdown, and the files of each folder. Without `--model` nothing is embedded. The older version runs in an environment
of its own, installed from a commit of this repository. A figure is processor time, with that of the processes that
read files: the least of `--rounds` of each, in turn.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.costs import OLD_COMMIT
from benchmarks.ingestion import write_pages
from benchmarks.versions import prepare_old
from waylore.evaluation.folders.questions import FILES, list_folders

# The program that both versions run, under either name.
PROBE = """
import importlib, sys
from pathlib import Path
package, store, model, folder = sys.argv[1:]
module = importlib.import_module(package)
embedder = None
if model:
    try:
        provider = importlib.import_module(f"{package}.providers.embedders.fastembed")
    except ModuleNotFoundError:
        provider = importlib.import_module(f"{package}.providers.fastembed")
    embedder = provider.FastEmbedder(path=Path(model))
with getattr(module, package.capitalize()).open(store, embedder=embedder) as memory:
    if folder:
        memory.add_files(folder, root=folder)
"""


def measure(python: list[str], package: str, model: str, folder: str) -> float:
    """Return the processor seconds of a process that adds a folder, and of its own processes."""
    with tempfile.TemporaryDirectory() as scratch:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*python, "-c", PROBE, package, f"{scratch}/store.db", model, folder], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def list_added(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the place of everything that is added."""
    if options.data:
        pages = scratch / "pages"
        write_pages(options.data / options.set, options.pages, pages)
        yield f"{options.pages} pages of {options.set}", pages
    if options.folders:
        yield from ((folder.name, folder / FILES) for folder in list_folders(options.folders))


def compare(options: argparse.Namespace, scratch: Path) -> None:
    """Add everything with each version in turn, and print its seconds and their ratio."""
    old = [prepare_old(options.old, scratch)] if options.old else []
    versions = [*old, ([sys.executable], "waylore")]
    model = str(options.model.resolve()) if options.model else ""

    def measure_least(name: str, folder: str) -> list[float]:
        rounds = [[measure(*version, model, folder) for version in versions] for _ in range(options.rounds)]
        least = [min(seconds) for seconds in zip(*rounds, strict=True)]
        print_row(name, least)
        return least

    measure_least("start", "")
    rows = [measure_least(name, str(folder)) for name, folder in list_added(options, scratch)]
    print_row("all folders", [sum(seconds) for seconds in zip(*rows, strict=True)])


def print_row(name: str, seconds: list[float]) -> None:
    """Print the seconds of each version and how often the first contains the last."""
    print(
        f"{name:28} {' and '.join(f'{each:7.2f}' for each in seconds)} s: {seconds[0] / seconds[-1]:5.2f}x", flush=True
    )


def main(arguments: list[str] | None = None) -> int:
    """Compare the two versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--set", default="musique")
    parser.add_argument("--pages", type=int, default=3_000, help="number of pages of the set")
    parser.add_argument("--folders", type=Path, help="directory of folders with real files")
    parser.add_argument("--model", type=Path, help="folder of the weights of a fastembed model")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--old", default=OLD_COMMIT, help="commit of the older version; empty: none")
    options = parser.parse_args(arguments)
    if not (options.data or options.folders):
        parser.error("pass --data, --folders or both")
    with tempfile.TemporaryDirectory() as name:
        compare(options, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
