"""Evaluate recipes on benchmark sets and print the figures as a table and as JSON.

    python -m waylore.evaluation --data SETS --sets musique hotpotqa --recipes hybrid chain --model WEIGHTS

A set is indexed from its own triples and, with `--read-by`, also from its text alone. `--vectors` and
`--folder` store vectors and indexed sets for the next run; `--store` stores the sets on a server or in cells
instead. `--sample` limits the number of questions, `--json` writes figures and rankings, and `--beside` adds
runs from the JSON of another program to the table. `--fusions weighted anchored` compares hybrid search with each
of these fusions in one run.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from waylore.config import Fusion
from waylore.errors import WayloreError
from waylore.evaluation import report
from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.evaluation.folders import command, own
from waylore.evaluation.index import (
    add_embedder_options,
    create_embedder,
    extract_from_text,
    load_embedder,
    open_indexed,
)
from waylore.evaluation.run import Progress, Run, from_json, open_gate, run_questions, to_json
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Embedder
from waylore.providers.extractors.spacy import SpacyExtractor
from waylore.recipes import CHAIN, HYBRID, RECIPES, Recipe
from waylore.store.protocol import Store


def main(
    arguments: list[str] | None = None,
    *,
    prog: str = "python -m waylore.evaluation",
    create_default: Callable[[], Embedder | None] = lambda: load_embedder(None, None),
) -> int:
    """Run the evaluation that the command line describes. Return 0, or print the reason and return 1.

    `create_default` creates the embedder for a folder if the command line names none.
    """
    parser = create_parser(prog)
    options = parser.parse_args(arguments)
    ways = [options.path, options.folders, options.data and options.sets]
    if sum(map(bool, ways)) != 1:
        parser.error("pass either FOLDER, --folders DIR, or --data DIR with --sets NAME")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"no folder {options.json.parent} for --json; create it first")
    try:
        if options.path:
            own.run(options, partial(_create_embedder, options, create_default))
        elif options.folders:
            command.run(options)
        else:
            _run_sets(options)
    except WayloreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _create_embedder(options: argparse.Namespace, create_default: Callable[[], Embedder | None]) -> Embedder | None:
    is_named = options.embedder or options.model
    return load_embedder(options.embedder, options.model) if is_named else create_default()


def _run_sets(options: argparse.Namespace) -> None:
    """Evaluate the sets; print the table and write the JSON."""
    embedder = create_embedder(options)
    beside = [run for path in options.beside for run in from_json(json.loads(path.read_text("utf-8")))]
    sets = (read_dataset(options.data / name, sample=options.sample) for name in options.sets)
    read = (version for dataset in sets for version in _list_versions(dataset, options))
    results = [_evaluate(dataset, embedder, beside, options) for dataset in read]
    rows = [row for of_set, _, _ in results for row in of_set]
    sentences = [sentence for _, of_set, _ in results for sentence in of_set]
    print("\n".join([report.format_table(rows), "", *sentences]))
    if options.json:
        runs = to_json(run for _, _, of_set in results for run in of_set)
        figures = {"rows": [report.to_json(row) for row in rows], "sentences": sentences}
        options.json.write_text(json.dumps({**figures, **runs}, ensure_ascii=False), encoding="utf-8")


def _list_versions(dataset: Dataset, options: argparse.Namespace) -> Iterator[Dataset]:
    """Yield the set with its own triples, or read from its text by each requested extractor."""
    for reader in options.read_by:
        if reader == "triples":
            yield dataset
        else:
            yield extract_from_text(dataset, RuleExtractor() if reader == "rules" else SpacyExtractor(options.spacy))


def _evaluate(
    dataset: Dataset, embedder: Embedder, beside: Sequence[Run], options: argparse.Namespace
) -> tuple[list[report.ReportRow], list[str], list[Run]]:
    """Return the rows of one set, the sentences about them, and the runs behind them."""
    gold = {q.id: q.gold for q in dataset.questions}
    recipes = [*(RECIPES[name] for name in _list_recipes(options)), *map(_make_fusion, options.fusions)]
    with open_indexed(dataset, embedder, options.folder, options.store) as store:
        runs = {r.name: run_questions(store, embedder, dataset, r, _create_progress(dataset, r)) for r in recipes}
        gates = list(_measure_gates(store, embedder, dataset, runs, gold))
    others = [_select_answers(gold, run) for run in beside if run.set == dataset.name]
    all_runs = [*others, *runs.values()]
    first = runs.get("chain", all_runs[-1])
    compared = [
        report.format_comparison(first, run, report.compare(first, run, gold)) for run in all_runs if run != first
    ]
    return [report.make_row(run, gold) for run in all_runs], [*compared, *gates], list(runs.values())


def _measure_gates(
    store: Store, embedder: Embedder, dataset: Dataset, runs: Mapping[str, Run], gold: report.Gold
) -> Iterator[str]:
    """Yield a sentence for each recipe with a graph: how often its gate was wrong.

    A run without the gate is compared with hybrid search.
    """
    for recipe in (RECIPES[name] for name in runs if name in RECIPES and RECIPES[name].graph and "hybrid" in runs):
        run, ungated = runs[recipe.name], runs[recipe.name]
        if any(answer.skip_reason for answer in run.answers):
            ungated = run_questions(store, embedder, dataset, open_gate(recipe), _create_progress(dataset, recipe))
        yield report.format_gate_errors(run, report.measure_gate_errors(run, ungated, runs["hybrid"], gold))


def _make_fusion(fusion: Fusion) -> Recipe:
    """Return hybrid search with another fusion."""
    return replace(HYBRID, name=f"hybrid, {fusion}", hybrid=replace(HYBRID.hybrid, fusion=fusion))


def _list_recipes(options: argparse.Namespace) -> Sequence[str]:
    """Return the recipes of the options. None at all are wanted if only fusions are compared."""
    return ("hybrid", CHAIN.name) if options.recipes is None else options.recipes


def _select_answers(gold: report.Gold, run: Run) -> Run:
    """Return a run with only the answers to the questions of this evaluation, which may be a sample."""
    return replace(run, answers=tuple(answer for answer in run.answers if answer.id in gold))


def _create_progress(dataset: Dataset, recipe: Recipe) -> Progress:
    """Return a function that prints progress if stderr is a terminal."""

    def show(done: int, of: int) -> None:
        if sys.stderr.isatty() and (done % 10 == 0 or done == of):
            end = "\n" if done == of else ""
            print(f"\r{dataset.name} {recipe.name} {done}/{of}", end=end, file=sys.stderr, flush=True)

    return show


def create_parser(prog: str) -> argparse.ArgumentParser:
    """Create the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Evaluate recipes on folders of files or on benchmark sets; print tables and write JSON.",
    )
    parser.add_argument("path", nargs="?", type=Path, metavar="FOLDER", help="Folder of files to measure")
    parser.add_argument(
        "--questions", type=Path, metavar="FILE", help="Your questions about FOLDER; without them, some are made"
    )
    parser.add_argument(
        "--folders", type=Path, metavar="DIR", help="Directory of folders with files/ and questions.jsonl"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="Folders of the directory to measure")
    parser.add_argument("--split", choices=("dev", "test"), default="", help="Split of questions to ask")
    parser.add_argument("--data", type=Path, metavar="DIR", help="Directory of benchmark sets")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="Benchmark sets to measure")
    parser.add_argument(
        "--recipes",
        nargs="*",
        choices=sorted(RECIPES),
        help="Recipes to run on sets, or on folders beside keyword, vector, hybrid and the default",
    )
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
    parser.add_argument("--sample", type=int, help="Number of questions of each set, evenly spread")
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="JSON files of earlier runs to compare")
    parser.add_argument("--json", type=Path, help="File for figures and rankings")
    add_embedder_options(parser)
    parser.set_defaults(embedder=None)  # fastembed; for FOLDER, the embedder of the settings
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
