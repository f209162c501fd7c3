"""Run `waylore eval --data DIR --sets NAME`: score recipes on benchmark sets, and compare them."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from waylore.evaluation import report
from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.evaluation.index import create_embedder, extract_from_text, open_indexed
from waylore.evaluation.run import (
    Progress,
    Run,
    from_json,
    make_fusion,
    open_gate,
    run_auto,
    run_questions,
    show_progress,
    to_json,
)
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Embedder
from waylore.providers.extractors.spacy import SpacyExtractor
from waylore.recipes import AUTO, CHAIN, RECIPES, Recipe
from waylore.store.protocol import Store


def run(options: argparse.Namespace) -> None:
    """Evaluate the sets; print the table and write the JSON."""
    embedder = create_embedder(options)
    beside = [run for path in options.beside for run in from_json(json.loads(path.read_text("utf-8")))]
    sets = (read_dataset(options.data / name, sample=options.sample) for name in options.sets)
    read = (version for dataset in sets for version in list_versions(dataset, options))
    results = [_evaluate(dataset, embedder, beside, options) for dataset in read]
    rows = [row for of_set, _, _ in results for row in of_set]
    sentences = [sentence for _, of_set, _ in results for sentence in of_set]
    print("\n".join([report.format_table(rows), "", *sentences]))
    if options.json:
        runs = to_json(run for _, _, of_set in results for run in of_set)
        figures = {"rows": [report.to_json(row) for row in rows], "sentences": sentences}
        options.json.write_text(json.dumps({**figures, **runs}, ensure_ascii=False), encoding="utf-8")


def list_versions(dataset: Dataset, options: argparse.Namespace) -> Iterator[Dataset]:
    """Yield the set with its own triples, or read from its text by each requested extractor."""
    for reader in options.read_by:
        if reader == "triples":
            yield dataset
        else:
            yield extract_from_text(dataset, RuleExtractor() if reader == "rules" else SpacyExtractor(options.spacy))


def _evaluate(
    dataset: Dataset, embedder: Embedder, beside: Sequence[Run], options: argparse.Namespace
) -> tuple[list[report.ReportRow], list[str], list[Run]]:
    """Return the rows of one set, sentences about them, and their runs."""
    gold = {q.id: q.gold for q in dataset.questions}
    names = _list_methods(options)
    recipes = [*(RECIPES[name] for name in names if name != AUTO), *map(make_fusion, options.fusions)]
    with open_indexed(dataset, embedder, options.folder, options.store) as store:
        runs = {r.name: run_questions(store, embedder, dataset, r, _create_progress(dataset, r)) for r in recipes}
        if AUTO in names:
            runs[AUTO] = run_auto(store, embedder, dataset, runs)
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
    """Yield a sentence with the gate's error rates for each recipe with a graph.

    A run without the gate is compared with hybrid search.
    """
    for recipe in (RECIPES[name] for name in runs if name in RECIPES and RECIPES[name].graph and "hybrid" in runs):
        run, ungated = runs[recipe.name], runs[recipe.name]
        if any(answer.skip_reason for answer in run.answers):
            ungated = run_questions(store, embedder, dataset, open_gate(recipe), _create_progress(dataset, recipe))
        yield report.format_gate_errors(run, report.measure_gate_errors(run, ungated, runs["hybrid"], gold))


def _list_methods(options: argparse.Namespace) -> Sequence[str]:
    """Return the methods of the options; none if only fusions are compared."""
    return ("hybrid", CHAIN.name, AUTO) if options.recipes is None else options.recipes


def _select_answers(gold: report.Gold, run: Run) -> Run:
    """Return a run with only the answers to the questions of this evaluation, which may be a sample."""
    return replace(run, answers=tuple(answer for answer in run.answers if answer.id in gold))


def _create_progress(dataset: Dataset, recipe: Recipe) -> Progress:
    return show_progress(f"{dataset.name} {recipe.name}")
