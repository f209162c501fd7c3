"""python -m waylore.evaluation: how well recipes answer benchmark sets, as a table and as JSON.

    python -m waylore.evaluation --data SETS --sets musique hotpotqa --recipes hybrid chain --model WEIGHTS

A set is indexed from its own triples, and with `--read-by` from its text alone as well. `--vectors` and
`--folder` keep vectors and indexed sets for the next run, `--store` keeps the sets on a server or in cells
instead, `--sample` asks that many questions only, `--json` writes figures and rankings, and `--beside` puts
runs from another program's JSON into the same table.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from waylore.errors import WayloreError
from waylore.evaluation import report
from waylore.evaluation.datasets import Dataset, load
from waylore.evaluation.index import add_embedder_options, chosen_embedder, from_text, indexed
from waylore.evaluation.run import Progress, Run, as_json, asked, from_json
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Embedder
from waylore.providers.extractors.spacy import SpacyExtractor
from waylore.recipes import RECIPES, Recipe
from waylore.store.protocol import Store


def main(arguments: list[str] | None = None, *, prog: str = "python -m waylore.evaluation") -> int:
    """Evaluate as the command line says; 0, or 1 with the reason."""
    options = parser_of(prog).parse_args(arguments)
    try:
        embedder = chosen_embedder(options)
        beside = [run for path in options.beside for run in from_json(json.loads(path.read_text("utf-8")))]
        sets = (load(options.data / name, sample=options.sample) for name in options.sets)
        read = (version for dataset in sets for version in _versions(dataset, options))
        results = [_evaluated(dataset, embedder, beside, options) for dataset in read]
    except WayloreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows = [row for of_set, _, _ in results for row in of_set]
    sentences = [sentence for _, of_set, _ in results for sentence in of_set]
    print("\n".join([report.table(rows), "", *sentences]))
    if options.json:
        runs = as_json(run for _, _, of_set in results for run in of_set)
        told = {"rows": [report.as_json(row) for row in rows], "sentences": sentences}
        options.json.write_text(json.dumps({**told, **runs}, ensure_ascii=False), encoding="utf-8")
    return 0


def _versions(dataset: Dataset, options: argparse.Namespace) -> Iterator[Dataset]:
    """The set with its own triples, or read from its text by each of the extractors asked for."""
    for reader in options.read_by:
        if reader == "triples":
            yield dataset
        else:
            yield from_text(dataset, RuleExtractor() if reader == "rules" else SpacyExtractor(options.spacy))


def _evaluated(
    dataset: Dataset, embedder: Embedder, beside: Sequence[Run], options: argparse.Namespace
) -> tuple[list[report.Row], list[str], list[Run]]:
    """The rows of one set, what is to be said of them, and the runs behind them."""
    gold = {q.id: q.gold for q in dataset.questions}
    recipes = [RECIPES[name] for name in options.recipes]
    with indexed(dataset, embedder, options.folder, options.store) as store:
        runs = {r.name: asked(store, embedder, dataset, r, _progress(dataset, r)) for r in recipes}
        gates = list(_gates(store, embedder, dataset, runs, gold))
    others = [_answers_to(gold, run) for run in beside if run.set == dataset.name]
    every = [*others, *runs.values()]
    first = runs.get("chain", every[-1])
    compared = [report.sentence(first, run, report.versus(first, run, gold)) for run in every if run != first]
    return [report.row(run, gold) for run in every], [*compared, *gates], list(runs.values())


def _gates(
    store: Store, embedder: Embedder, dataset: Dataset, runs: Mapping[str, Run], gold: report.Gold
) -> Iterator[str]:
    """For each recipe with a graph how often its gate was wrong: the graph let loose, against hybrid."""
    for recipe in (RECIPES[name] for name in runs if RECIPES[name].graph and "hybrid" in runs):
        run, ungated = runs[recipe.name], runs[recipe.name]
        if any(answer.skipped for answer in run.answers):
            ungated = asked(store, embedder, dataset, _without_gate(recipe), _progress(dataset, recipe))
        yield report.gate_sentence(run, report.gate_errors(run, ungated, runs["hybrid"], gold))


def _without_gate(recipe: Recipe) -> Recipe:
    return replace(recipe, gate=replace(recipe.gate, min_confidence=0.0))


def _answers_to(gold: report.Gold, run: Run) -> Run:
    """A run over the questions that are asked here, which may be a sample."""
    return replace(run, answers=tuple(answer for answer in run.answers if answer.id in gold))


def _progress(dataset: Dataset, recipe: Recipe) -> Progress:
    """A line on the terminal, if there is one."""

    def show(done: int, of: int) -> None:
        if sys.stderr.isatty() and (done % 10 == 0 or done == of):
            end = "\n" if done == of else ""
            print(f"\r{dataset.name} {recipe.name} {done}/{of}", end=end, file=sys.stderr, flush=True)

    return show


def parser_of(prog: str) -> argparse.ArgumentParser:
    """Its options."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="How well recipes answer benchmark sets, as a table and as JSON.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--recipes", nargs="+", choices=sorted(RECIPES), default=["hybrid", "chain"])
    parser.add_argument(
        "--read-by",
        nargs="+",
        choices=("triples", "rules", "spacy"),
        default=["triples"],
        help="what facts come from: the set's triples, or its text as an extractor reads it",
    )
    parser.add_argument("--spacy", type=Path, default=Path("en_core_web_sm"), help="spaCy's pipeline")
    parser.add_argument("--sample", type=int, help="ask this many questions of each set, evenly spread")
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="JSON of runs to print with ours")
    parser.add_argument("--json", type=Path, help="write figures and rankings to this file")
    add_embedder_options(parser)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
