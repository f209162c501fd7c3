"""Score the names and relations that are read of labelled pages, without a model.

    python -m benchmarks.pages                       the pages of this directory, half of them `dev` and half `held`
    python -m benchmarks.pages ../shared/folders     labelled pages of other folders
    python -m benchmarks.pages --misses              also what was missed and wrong on `dev` pages
    python -m benchmarks.pages ../shared/folders --judged benchmarks/judged_relations.jsonl

Pages are in `FOLDER/files`, labels in `pages/*.json`. Rules may be changed by what `dev` pages show. Pages of the other
splits are scored only, so `--misses` does not show them. Facts that only say `mentions` are not counted as relations.
With `--judged`, relations that every reader calls true are right too (`benchmarks.pages.judgements`).
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.pages.judgements import Pages, complete_labels, count_judgements, read_judgements, write_said
from waylore.evaluation.folders.index import index_folder, open_cached, open_memory, read_stored
from waylore.evaluation.folders.labels import LabelledPage, StoredPage, list_misses, read_pages, score_pages
from waylore.evaluation.folders.questions import FILES
from waylore.evaluation.folders.report import format_pages

DIRECTORY = Path(__file__).parent
DEV = "dev"


def read_directory(directory: Path) -> Iterator[tuple[LabelledPage, StoredPage]]:
    """Index the folders of a directory that have labelled pages, and yield these pages with what is stored of each."""
    for files in sorted(directory.glob(f"*/{FILES}")):
        if pages := read_pages(directory, files.parent.name):
            with open_cached(None, None) as model, open_memory(files, model, None, None) as memory:
                index_folder(memory, files, model)
                yield from ((page, read_stored(memory, page)) for page in pages)


def format_misses(pages: Iterable[tuple[LabelledPage, StoredPage]]) -> Iterator[str]:
    """Yield lines with what was missed and what was wrong on each `dev` page."""
    for page, stored in pages:
        if page.split == DEV:
            yield f"\n## {page.folder}/{page.path}\n"
            for kind, found in list_misses(page, stored).items():
                yield from (f"- {kind}: {one}" for one in found)


def format_scores(pages: Pages) -> str:
    """Return the scores as a table."""
    scores = score_pages(pages)
    return format_pages(scores, sorted(scores))


def main() -> None:
    """Print the scores of a directory."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description="Score names and relations.")
    parser.add_argument("directory", nargs="?", type=Path, default=DIRECTORY, help="Directory with labelled pages")
    parser.add_argument("--misses", action="store_true", help="Print what was missed and wrong on dev pages")
    parser.add_argument("--said", type=Path, help="File for all relations, to be judged")
    parser.add_argument("--judged", type=Path, help="File with judgements of relations")
    options = parser.parse_args()
    pages = list(read_directory(options.directory))
    print(format_scores(pages))
    if options.said:
        write_said(pages, options.said)
    if options.judged:
        judged = read_judgements(options.judged)
        print(f"\n{count_judgements(pages, judged)}\n\nWith the labels completed by what all readers call true:\n")
        print(format_scores(complete_labels(pages, judged.values())))
    if options.misses:
        print("\n".join(format_misses(pages)))


if __name__ == "__main__":
    main()
