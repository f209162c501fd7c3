"""Run `waylore eval FOLDER`: compare methods in a user's folder, with the user's questions or generated ones."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.evaluation.datasets import spread
from waylore.evaluation.folders.command import ask, choose_methods
from waylore.evaluation.folders.index import index_folder, list_documents, open_cached, open_memory
from waylore.evaluation.folders.known_items import make_questions
from waylore.evaluation.folders.measure import ALL, BASELINE, Measurement, compare_methods, to_json
from waylore.evaluation.folders.questions import EXAMPLE, FolderQuestion, read_questions
from waylore.evaluation.folders.scoring import SignTest, make_row, normalise_path
from waylore.evaluation.tables import format_columns
from waylore.indexing.files.progress import Progress
from waylore.protocols import Embedder
from waylore.recipes import AUTO

MAX_READ = 500  # maximum number of documents that questions are made from
MAX_SHOWN = 3  # skipped files, and paths that do not exist
SIGNIFICANT = 0.05
MADE = (
    "The questions are made from the pages and repeat their words, so they favour keyword search.\n"
    "For a fair comparison write your own and pass them with --questions FILE, one a line:\n"
    f"{EXAMPLE}"
)


def run(options: argparse.Namespace, create_embedder: Callable[[], Embedder | None]) -> None:
    """Index the folder, ask the questions, print a table and write the JSON."""
    folder = options.path
    questions = read_questions(options.questions, folder.name) if options.questions else ()
    with open_cached(create_embedder(), options.vectors) as model:
        measurement = Measurement(model.name)
        with open_memory(folder, model, options.folder, options.store) as memory:
            measurement.costs[folder.name] = index_folder(memory, folder, model, _show_progress)
            asked = questions or _make_questions(memory, folder)
            _check_paths(asked, memory, folder)
            methods = choose_methods(options.recipes or (), without=() if model.embedder else ("vector",))
            ask(measurement, memory, asked, methods)
    if options.json:
        options.json.write_text(json.dumps(to_json(measurement), ensure_ascii=False), encoding="utf-8")
    print("\n\n".join(_list_parts(measurement, is_made=not questions)))


def _make_questions(memory: Waylore, folder: Path) -> tuple[FolderQuestion, ...]:
    documents = list(list_documents(memory))
    if not documents:
        raise ConfigError(f"no file in {folder} could be indexed; pass a folder with text, Markdown, HTML or PDF files")
    made = make_questions([memory.get(document.id) for document in spread(documents, MAX_READ)])
    if not made:
        raise ConfigError(f"{folder} has too few sentences to make questions; write some and pass --questions FILE")
    return made


def _check_paths(questions: Sequence[FolderQuestion], memory: Waylore, folder: Path) -> None:
    """Raise an error if a question needs a file that is not indexed, or if there is no answer to find."""
    if not any(question.has_answer for question in questions):
        raise ConfigError("no question has an answer in gold; add the path of a file that answers one")
    known = {normalise_path(document.uri) for document in list_documents(memory)}
    needed = {(q.id, place.path) for q in questions for places in q.gold for place in places}
    missing = sorted((id_, path) for id_, path in needed if normalise_path(path) not in known)
    if missing:
        shown = "; ".join(f"question {id_} needs {path}" for id_, path in missing[:MAX_SHOWN])
        raise ConfigError(f"{shown}, which is not indexed; write paths relative to {folder}")


def _show_progress(progress: Progress) -> None:
    if sys.stderr.isatty():
        end = "\n" if progress.files == progress.of_files else ""
        print(f"\r{progress}", end=end, file=sys.stderr, flush=True)


# -- the table -----------------------------------------------------------------------------------------


def _list_parts(measurement: Measurement, *, is_made: bool) -> Iterator[str]:
    [costs] = measurement.costs.values()
    counts = f"{costs.files:,} files, {costs.passages:,} passages, {costs.entities:,} names, {costs.facts:,} facts"
    unanswered = sum(not question.has_answer for question in measurement.questions)
    left_out = f", {unanswered:,} of them without an answer and not in the table" if unanswered else ""
    yield f"{counts}; {measurement.embedder}\n{len(measurement.questions):,} questions{left_out}"
    yield _format_table(measurement)
    if verdict := compare_methods(measurement, ALL).get(AUTO):
        yield _describe(verdict)
    if is_made:
        yield MADE
    if costs.skipped:
        shown = "\n".join(f"  {one}" for one in costs.skipped[:MAX_SHOWN])
        yield f"{len(costs.skipped):,} files or parts were skipped, such as\n{shown}"


def _format_table(measurement: Measurement) -> str:
    rows = []
    for method in measurement.methods:
        row = make_row(measurement.score(method).values())
        shares = [f"{100 * share:.0f} %" for share in (row.recall.mean, row.all_gold, row.first)]
        span = f"{100 * row.recall.low:.0f}–{100 * row.recall.high:.0f}"
        name = f"{method} (default)" if method == AUTO else method
        rows.append([name, shares[0], span, *shares[1:], f"{row.reciprocal_rank:.2f}"])
    return format_columns(["method", "found", "95 %", "all found", "first", "MRR"], rows)


def _describe(test: SignTest) -> str:
    counts = f"better on {test.better}, worse on {test.worse} (p = {test.p:.2f})"
    verdict = "The difference is hardly chance." if test.p < SIGNIFICANT else "The difference may be chance."
    return f"{AUTO} against {BASELINE}, question by question: {counts}. {verdict}"
