"""Run `waylore eval --folders DIR`: measure folders that have questions, and print tables."""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.evaluation.folders.ask import ask_questions, ask_without_gate
from waylore.evaluation.folders.index import index_folder, open_cached, open_memory, read_stored
from waylore.evaluation.folders.labels import read_pages
from waylore.evaluation.folders.measure import BASELINE, Measurement, to_json
from waylore.evaluation.folders.questions import FILES, QUESTIONS, FolderQuestion, list_folders, read_questions
from waylore.evaluation.folders.report import format_report
from waylore.evaluation.folders.scoring import QuestionScores, Scored
from waylore.evaluation.index import load_embedder
from waylore.evaluation.run import make_fusion, show_progress
from waylore.recipes import AUTO, CHAIN, RECIPES, Recipe

METHODS = ("keyword", "vector", BASELINE, CHAIN.name, AUTO)  # the last one is the default of `search`


def run(options: argparse.Namespace) -> None:
    """Measure the folders that the options name; print the tables and write the JSON."""
    methods: list[str | Recipe] = [*choose_methods(options.recipes or ()), *map(make_fusion, options.fusions)]
    folders = list_folders(options.folders, options.only)
    with open_cached(load_embedder(options.embedder, options.model, options.name), options.vectors) as model:
        measurement = Measurement(model.name, earlier={file.stem: read_earlier(file) for file in options.beside})
        for folder in folders:
            questions = [q for q in read_questions(folder / QUESTIONS, folder.name) if options.split in ("", q.split)]
            with open_memory(folder / FILES, model, options.folder, options.store) as memory:
                measurement.costs[folder.name] = index_folder(memory, folder / FILES, model)
                pages = [page for page in read_pages(options.folders, folder.name) if options.split in ("", page.split)]
                measurement.pages += [(page, read_stored(memory, page)) for page in pages]
                ask(measurement, memory, questions, methods)
    if options.json:
        options.json.write_text(json.dumps(to_json(measurement), ensure_ascii=False), encoding="utf-8")
    print(format_report(measurement))


def choose_methods(names: Iterable[str], without: Sequence[str] = ()) -> list[str]:
    """Return the methods that are always compared, and others by name."""
    return [name for name in dict.fromkeys((*METHODS, *names)) if name not in without]


def ask(
    measurement: Measurement, memory: Waylore, questions: Sequence[FolderQuestion], methods: Iterable[str | Recipe]
) -> None:
    """Ask questions about an indexed folder with each method, and again without the gate if its recipe has one."""
    measurement.questions += questions
    for method in methods:
        name = method.name if isinstance(method, Recipe) else method
        answers = ask_questions(memory, questions, method, show_progress(name))
        measurement.answers.setdefault(name, {}).update(answers)
        recipe = RECIPES.get(name)
        if recipe and recipe.graph and recipe.has_hybrid:
            ungated = ask_without_gate(memory, questions, recipe, answers)
            measurement.ungated.setdefault(name, {}).update(ungated)


def read_earlier(file: Path) -> dict[str, Scored]:
    """Return the scores by method that an earlier run wrote as JSON."""
    try:
        methods = json.loads(file.read_text("utf-8"))["scores"]
        return {
            method: {id_: QuestionScores(**row) for id_, row in scores.items()} for method, scores in methods.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{file} has no scores ({error!r}); pass a file that --json wrote for folders") from error
