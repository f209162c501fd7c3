"""Run `waylore eval --context`: print the share of answers in contexts, for sets, conversations and folders."""

import argparse
import json
from collections.abc import Iterable, Iterator

from waylore.errors import ConfigError
from waylore.evaluation.contexts.measure import ContextPlan, Measured, choose_counter, join_measured, measure_source
from waylore.evaluation.contexts.report import format_set, list_rows, read_earlier, to_json
from waylore.evaluation.contexts.sources import ContextSource, open_folders, open_sets
from waylore.evaluation.folders.measure import BASELINE
from waylore.evaluation.run import show_progress
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
    for name, measured in (
        _measure_folders(options, plan) if options.folders else _measure_each(open_sets(options), plan)
    ):
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
    measured = dict(_measure_each(open_folders(options), plan))
    yield ", ".join(filter(None, (*measured, options.split))), join_measured(measured.values())


def _measure_each(sources: Iterable[ContextSource], plan: ContextPlan) -> Iterator[tuple[str, Measured]]:
    for source in sources:
        yield source.name, measure_source(source, plan, show_progress(source.name))
