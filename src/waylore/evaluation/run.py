"""Run the questions of a benchmark set with one recipe and collect the results.

The question is embedded beforehand, so the time of the model is not measured. The facts of the sets have no
dates, so the search uses the day of their recording as the current day, and no fact has decayed. An incomplete answer
raises an error, because figures over such answers would be wrong. `report` scores the results.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from waylore.config import Fusion
from waylore.errors import StoreUnavailable
from waylore.evaluation.datasets import Dataset, EvaluationQuestion
from waylore.protocols import Embedder
from waylore.recipes import AUTO, HYBRID, Recipe, choose_recipe
from waylore.retrieval.scale import get_scale
from waylore.retrieval.search import find_turns, search
from waylore.store.protocol import Store
from waylore.types.knowledge import EPOCH
from waylore.types.search import Filter, Query, SearchResult

HITS_PER_QUESTION = 20
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The result of a question: pages, best first, the time, and the reason for skipping the graph."""

    id: str
    ranked: tuple[str, ...]
    seconds: float
    skip_reason: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """The results of one recipe for the questions of one set."""

    set: str
    recipe: str
    embedder: str
    answers: tuple[QuestionResult, ...]


def run_questions(
    store: Store,
    embedder: Embedder,
    dataset: Dataset,
    recipe: Recipe,
    progress: Progress = lambda *_: None,
) -> Run:
    """Run all questions of a set that is in the store with one recipe."""
    wanted = replace(recipe, top_k=HITS_PER_QUESTION)
    answers = []
    for done, question in enumerate(dataset.questions, start=1):
        answers.append(_run_question(store, embedder, question, wanted))
        progress(done, len(dataset.questions))
    return Run(dataset.name, recipe.name, embedder.name, tuple(answers))


def run_auto(store: Store, embedder: Embedder, dataset: Dataset, runs: Mapping[str, Run]) -> Run:
    """Run all questions with the recipe that `auto` chooses for each. Answers in `runs` are reused."""
    known = {name: {answer.id: answer for answer in run.answers} for name, run in runs.items()}
    answers = []
    for question in dataset.questions:
        recipe, _ = choose_recipe(AUTO, question.text, partial(find_turns, store, make_filter(question)))
        answer = known.get(recipe.name, {}).get(question.id)
        answers.append(answer or _run_question(store, embedder, question, replace(recipe, top_k=HITS_PER_QUESTION)))
    return Run(dataset.name, AUTO, embedder.name, tuple(answers))


def show_progress(label: str) -> Progress:
    """Return a function that prints progress if stderr is a terminal."""

    def show(done: int, of: int) -> None:
        if sys.stderr.isatty() and (done % 10 == 0 or done == of):
            end = "\n" if done == of else ""
            print(f"\r{label} {done}/{of}", end=end, file=sys.stderr, flush=True)

    return show


def make_fusion(fusion: Fusion) -> Recipe:
    """Return hybrid search with another fusion."""
    return replace(HYBRID, name=f"hybrid, {fusion}", hybrid=replace(HYBRID.hybrid, fusion=fusion))


def open_gate(recipe: Recipe) -> Recipe:
    """Return a recipe whose gate stays open at low confidence."""
    return replace(recipe, gate=replace(recipe.gate, min_confidence=0.0))


def _run_question(store: Store, embedder: Embedder, question: EvaluationQuestion, recipe: Recipe) -> QuestionResult:
    vector, scale = embedder.embed_query(question.text), get_scale(embedder)
    query = Query(question.text, vector, make_filter(question), scale=scale)
    start = time.perf_counter()
    result = search(store, embedder, query, recipe, now=EPOCH)
    seconds = time.perf_counter() - start
    if result.missing:
        raise StoreUnavailable(f"{question.id} has an incomplete answer ({'; '.join(result.missing)}); run it again")
    return QuestionResult(question.id, _list_pages(result, question), seconds, result.skip_reason)


def make_filter(question: EvaluationQuestion) -> Filter:
    """Return the filter of the scope of a question."""
    return Filter(metadata={"scope": question.scope}) if question.scope else Filter()


def _list_pages(result: SearchResult, question: EvaluationQuestion) -> tuple[str, ...]:
    pages = dict.fromkeys(hit.document.uri for hit in result.hits)
    return tuple(page for page in pages if page != question.without)[:HITS_PER_QUESTION]


def to_json(runs: Iterable[Run]) -> dict[str, Any]:
    """Return runs as JSON."""
    return {"runs": [_run_to_json(run) for run in runs]}


def _run_to_json(run: Run) -> dict[str, Any]:
    questions = [
        {"id": a.id, "ranked": a.ranked, "seconds": round(a.seconds, 6), "skipped": a.skip_reason} for a in run.answers
    ]
    return {"set": run.set, "recipe": run.recipe, "embedder": run.embedder, "questions": questions}


def from_json(data: Mapping[str, Any]) -> list[Run]:
    """Return runs from JSON, the inverse of `to_json`. `skipped` may be missing."""
    return [
        Run(
            run["set"],
            run["recipe"],
            run["embedder"],
            tuple(
                QuestionResult(q["id"], tuple(q["ranked"]), q["seconds"], q.get("skipped", ""))
                for q in run["questions"]
            ),
        )
        for run in data["runs"]
    ]
