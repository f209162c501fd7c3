"""Run the figures from the command line: `python -m tools.figures`. The package says how each is defined."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.figures.pages import measure_pages
from tools.figures.report import LISTS, find_broken_limits, format_table
from tools.figures.survey import compute_figures, survey_tree


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.figures", description="Measure how a source tree reads.")
    parser.add_argument("tree", type=Path, help="folder of the package")
    parser.add_argument("--tests", type=Path, nargs="*", default=[], help="folders of its tests")
    parser.add_argument("--twins", default="", metavar="MODULE", help="module of JSON models that repeat types")
    parser.add_argument("--docs", type=Path, default=Path(), help="folder with README.md and docs, default: here")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is broken, and name it")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--list", choices=[*LISTS, "pages"], help="print the names behind a figure")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; return 1 if `--check` finds a broken limit."""
    options = build_parser().parse_args(arguments)
    survey = survey_tree(options.tree, options.tests, options.twins)
    values, pages = compute_figures(survey), measure_pages(options.docs)
    if options.list:
        places = [place for page in pages for place in page.riddles]
        print("\n".join(places if options.list == "pages" else LISTS[options.list](survey)))
    elif options.json:
        prose = {one.name: {"words": one.words, "riddles_per_1000": one.per_1000} for one in pages}
        print(json.dumps({"source": values, "prose": prose}, indent=2))
    else:
        print(format_table(values, pages))
    broken = find_broken_limits(survey) if options.check else []
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader of a pipe, such as `head`, may close it early
        sys.stderr.close()
