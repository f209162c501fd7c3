"""Evaluate recipes on folders of files or on benchmark sets; print tables and write JSON.

    python -m waylore.evaluation FOLDER --questions FILE
    python -m waylore.evaluation --folders DIR --model WEIGHTS
    python -m waylore.evaluation --folders DIR --sets
    python -m waylore.evaluation --data SETS --sets musique hotpotqa --recipes hybrid chain --model WEIGHTS
    python -m waylore.evaluation --data SETS --conversations --model WEIGHTS
    python -m waylore.evaluation --context --data SETS --sets musique --model WEIGHTS

A folder is indexed as `waylore add` does it; `docs/how-to/evaluate.md` describes its questions. A set is indexed from
its own triples and, with `--read-by`, also from its text alone. `--vectors` and `--folder` store vectors and indexed
folders and sets for the next run; `--store` stores them on a server or in cells instead. `--sample` limits the number
of questions of a set, `--json` writes figures and rankings, and `--beside` compares with the JSON of other runs.
`--fusions weighted anchored` compares hybrid search with each of these fusions in one run. `--conversations` prints one
table of LoCoMo and LongMemEval. `--folders DIR --sets` asks for sets ("what depends on …") instead of passages, and
prints how complete the answers of `related` are; `--write` writes these questions. `--context` measures the share of
answers in the text that `context` returns, by budget.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn, get_args

from waylore.config import Fusion
from waylore.errors import ArgumentError, WayloreError
from waylore.evaluation import sets
from waylore.evaluation.contexts import command as contexts
from waylore.evaluation.conversations import table
from waylore.evaluation.folders import command, own
from waylore.evaluation.index import add_embedder_options, load_embedder
from waylore.evaluation.relations import command as relations
from waylore.protocols import Embedder
from waylore.recipes import AUTO, RECIPES


class Parser(argparse.ArgumentParser):
    """A parser that raises Waylore's errors."""

    def error(self, message: str) -> NoReturn:
        """Raise an error that names the help."""
        raise ArgumentError(f"{message}; see `{self.prog} --help`")


def main(arguments: list[str] | None = None) -> int:
    """Run the evaluation of the command line. Return 0, or print the error and return its exit code."""
    try:
        run(arguments)
    except WayloreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ArgumentError) else 1
    return 0


def run(
    arguments: list[str] | None,
    *,
    prog: str = "python -m waylore.evaluation",
    create_default: Callable[[], Embedder | None] = lambda: load_embedder(None, None),
) -> None:
    """Run the evaluation of the command line.

    `create_default` creates the embedder for a folder if the command line names none.
    """
    parser = create_parser(prog)
    options = parser.parse_args(arguments)
    if problem := _find_problem(options):
        parser.error(problem)
    if options.context:
        contexts.run(options)
    elif options.path:
        own.run(options, partial(_create_embedder, options, create_default))
    elif options.folders and options.sets is not None:
        relations.run(options)
    elif options.folders:
        command.run(options)
    elif options.conversations:
        table.run(options)
    else:
        sets.run(options)


def _find_problem(options: argparse.Namespace) -> str:
    """Return the problem with the combination of options; empty if there is none."""
    ways = [options.path, options.folders, options.data and options.sets, options.data and options.conversations]
    if sum(map(bool, ways)) != 1:
        return "pass either FOLDER, --folders DIR, or --data DIR with --sets NAME or --conversations"
    asks_sets = options.folders and options.sets is not None
    if options.sets if asks_sets else options.write:
        return "--sets takes no names with --folders; --write needs both"
    if options.questions and not options.path:
        return "--questions needs FOLDER; folders of --folders have their own"
    if (options.only or options.split) and not options.folders:
        return "--only and --split need --folders DIR"
    if options.json and not options.json.parent.is_dir():
        return f"no folder {options.json.parent} for --json; create it first"
    return contexts.find_problem(options)


def _create_embedder(options: argparse.Namespace, create_default: Callable[[], Embedder | None]) -> Embedder | None:
    is_named = options.embedder or options.model
    return load_embedder(options.embedder, options.model, options.name) if is_named else create_default()


def create_parser(prog: str) -> Parser:
    """Create the parser of the command line."""
    parser = Parser(
        prog=prog,
        description="Evaluate recipes on folders of files or on benchmark sets; print tables and write JSON.",
    )
    _add_folder_options(parser)
    _add_set_options(parser)
    contexts.add_options(parser)
    parser.add_argument(
        "--recipes",
        "--methods",
        nargs="*",
        choices=sorted((AUTO, *RECIPES)),
        help="Recipes to run on sets, or on folders beside keyword, vector, hybrid and the default",
    )
    parser.add_argument(
        "--beside", type=Path, nargs="*", default=[], metavar="FILE", help="JSON files of other runs to compare with"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="File for figures and rankings")
    add_embedder_options(parser)
    parser.set_defaults(embedder=None)  # means fastembed; for FOLDER, the embedder of the settings
    return parser


def _add_folder_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", type=Path, metavar="FOLDER", help="Folder of files to measure")
    parser.add_argument(
        "--questions", type=Path, metavar="FILE", help="Your questions about FOLDER; without them, some are made"
    )
    parser.add_argument(
        "--folders", type=Path, metavar="DIR", help="Directory of folders with files/ and questions.jsonl"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="Folders of the directory to measure")
    parser.add_argument("--split", choices=("dev", "test"), default="", help="Split of questions to ask")


def _add_set_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="Directory of benchmark sets")
    parser.add_argument(
        "--sets",
        nargs="*",
        metavar="NAME",
        help="Benchmark sets to measure; without names, questions that ask for sets about --folders",
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="File for the questions that ask for sets")
    parser.add_argument(
        "--fusions", nargs="*", choices=get_args(Fusion), default=[], help="Fusions with which hybrid search is run too"
    )
    parser.add_argument(
        "--read-by",
        nargs="+",
        choices=("triples", "rules", "spacy"),
        default=["triples"],
        help="Source of facts: the set's triples, or its text as an extractor reads it",
    )
    parser.add_argument("--spacy", type=Path, default=Path("en_core_web_sm"), help="Name or path of the spaCy pipeline")
    parser.add_argument(
        "--conversations", action="store_true", help="Measure LoCoMo and LongMemEval by turn, round and session"
    )
    parser.add_argument("--words", action="store_true", help="Use no vectors, with --conversations")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="Use one of N questions of conversations")
    parser.add_argument("--sample", type=int, metavar="N", help="Number of questions of each set, evenly spread")


if __name__ == "__main__":
    raise SystemExit(main())
