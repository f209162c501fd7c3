"""Run `waylore eval --context`: print how much of the answers is in contexts, for sets, conversations and folders."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from waylore.errors import ConfigError
from waylore.evaluation.contexts.measure import (
    ContextPlan,
    Measured,
    choose_counter,
    join_measured,
    measure_questions,
    measure_store,
)
from waylore.evaluation.contexts.questions import (
    list_folder_questions,
    list_set_questions,
    list_turn_questions,
    read_answers,
    read_marks,
)
from waylore.evaluation.contexts.report import format_set, list_rows, read_earlier, to_json
from waylore.evaluation.conversations.datasets import SETS, read_conversations
from waylore.evaluation.conversations.measure import open_conversations
from waylore.evaluation.datasets import limit_pages, read_dataset, spread
from waylore.evaluation.folders.index import index_folder, open_cached, open_memory
from waylore.evaluation.folders.measure import BASELINE
from waylore.evaluation.folders.questions import FILES, QUESTIONS, list_folders, read_questions
from waylore.evaluation.folders.scoring import normalise_path
from waylore.evaluation.index import create_embedder, load_embedder, open_indexed
from waylore.evaluation.run import show_progress
from waylore.evaluation.sets import list_versions
from waylore.protocols import Embedder
from waylore.recipes import AUTO
from waylore.retrieval.context.block import LAYOUTS

BUDGETS = (250, 500, 1_000, 2_000, 4_000)
METHODS = (AUTO, BASELINE)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of contexts."""
    parser.add_argument(
        "--context", action="store_true", help="Measure how much of the answers is in contexts, by budget"
    )
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS, metavar="N", help="Tokens of contexts")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS, help="Layouts of contexts")
    parser.add_argument(
        "--passages", type=int, metavar="N", help="Number of pages of each set with --context, all gold among them"
    )


def find_problem(options: argparse.Namespace) -> str:
    """Return the problem with the options of contexts; empty if there is none."""
    if options.context and (options.path or (options.folders and options.sets is not None)):
        return "--context needs --folders DIR without --sets, or --data DIR"
    if options.passages and not (options.context and options.data):
        return "--passages needs --context and --data DIR"
    if min(options.budgets) < 1:
        return "--budgets needs numbers of tokens, at least 1"
    return ""


def run(options: argparse.Namespace) -> None:
    """Measure the contexts of the sets or folders that the options name; print tables and write the JSON."""
    count, counter = choose_counter()
    plan = ContextPlan(options.layouts, options.recipes or METHODS, options.budgets, count)
    beside = {file.stem: read_earlier(file) for file in options.beside}
    figures = []
    for name, measured in _measure_folders(options, plan) if options.folders else _measure_sets(options, plan):
        earlier = {run: sets[name] for run, sets in beside.items() if name in sets}
        rows = list(list_rows(measured, plan, earlier))
        if not rows:
            raise ConfigError(f"no question of {name} has an answer or a quote to look for; ask more of them")
        print(f"{format_set(name, rows, counter)}\n", flush=True)
        figures.append(to_json(name, rows, measured))
    if options.json:
        content = json.dumps({"counter": counter, "sets": figures}, ensure_ascii=False)
        options.json.write_text(content, encoding="utf-8")


def _measure_folders(options: argparse.Namespace, plan: ContextPlan) -> Iterator[tuple[str, Measured]]:
    """Yield the questions about all folders as one set."""
    folders = list_folders(options.folders, options.only)
    name = ", ".join(filter(None, (*(folder.name for folder in folders), options.split)))
    yield name, join_measured([*_measure_each_folder(folders, options, plan)])


def _measure_each_folder(folders: list[Path], options: argparse.Namespace, plan: ContextPlan) -> Iterator[Measured]:
    with open_cached(load_embedder(options.embedder, options.model), options.vectors) as model:
        for folder in folders:
            asked = [q for q in read_questions(folder / QUESTIONS, folder.name) if options.split in ("", q.split)]
            questions = list(spread(list(list_folder_questions(asked)), options.sample))
            with open_memory(folder / FILES, model, options.folder, options.store) as memory:
                index_folder(memory, folder / FILES, model)
                yield measure_questions(memory, questions, plan, show_progress(folder.name), normalise_path)


def _measure_sets(options: argparse.Namespace, plan: ContextPlan) -> Iterator[tuple[str, Measured]]:
    embedder = create_embedder(options)
    for name in options.sets or SETS:
        folder = options.data / name
        yield from (_measure_turns if name in SETS else _measure_set)(folder, embedder, options, plan)


def _measure_set(
    folder: Path, embedder: Embedder, options: argparse.Namespace, plan: ContextPlan
) -> Iterator[tuple[str, Measured]]:
    """Yield the questions of a set, once for each source of facts."""
    dataset = read_dataset(folder, sample=options.sample)
    if options.passages:
        dataset = limit_pages(dataset, options.passages)
    questions = list(list_set_questions(dataset, read_answers(folder), read_marks(folder)))
    for version in list_versions(dataset, options):
        with open_indexed(version, embedder, options.folder, options.store) as store:
            yield version.name, measure_store(store, embedder, questions, plan, show_progress(version.name))


def _measure_turns(
    folder: Path, embedder: Embedder, options: argparse.Namespace, plan: ContextPlan
) -> Iterator[tuple[str, Measured]]:
    dataset = read_conversations(folder, every=options.every)
    sampled = replace(dataset, questions=tuple(spread(dataset.questions, options.sample)))
    questions = list(list_turn_questions(sampled, read_answers(folder)))
    with open_conversations(dataset, embedder, options.folder, options.store) as store:
        yield dataset.name, measure_store(store, embedder, questions, plan, show_progress(dataset.name))
