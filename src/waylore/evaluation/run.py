"""Asks a benchmark set's questions of a store with one recipe after another, and keeps what came back.

The question's embedding is made beforehand and not timed: it is the model's time, not ours. Facts of the sets
bear no dates, so they are asked about as of the day they are recorded at, and none has decayed. An answer that
lacks something is an error: a figure over such answers would be of nothing. Whether answers are good is
`report`'s affair.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from waylore.errors import StoreUnavailable
from waylore.evaluation.datasets import Dataset, Question
from waylore.protocols import Embedder
from waylore.recipes import Recipe
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.types.knowledge import EPOCH
from waylore.types.search import Filter, Found, Query

DEPTH = 20  # hits that are looked at
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question was answered with: pages, best first, how long it took, and why no graph, if none."""

    id: str
    ranked: tuple[str, ...]
    seconds: float
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One recipe's answers to the questions of one set."""

    set: str
    recipe: str
    embedder: str
    answers: tuple[Answer, ...]


def asked(
    store: Store,
    embedder: Embedder,
    dataset: Dataset,
    recipe: Recipe,
    progress: Progress = lambda *_: None,
) -> Run:
    """One recipe's answers to all questions of a set that is in the store."""
    wanted = replace(recipe, top_k=DEPTH)
    answers = []
    for done, question in enumerate(dataset.questions, start=1):
        answers.append(_answer(store, embedder, question, wanted))
        progress(done, len(dataset.questions))
    return Run(dataset.name, recipe.name, embedder.name, tuple(answers))


def _answer(store: Store, embedder: Embedder, question: Question, recipe: Recipe) -> Answer:
    where = Filter(metadata={"scope": question.scope}) if question.scope else Filter()
    query = Query(question.text, embedder.embed_query(question.text), where)
    start = time.perf_counter()
    found = search(store, None, query, recipe, now=EPOCH)
    seconds = time.perf_counter() - start
    if found.missing:
        raise StoreUnavailable(f"{question.id} was answered without {'; '.join(found.missing)}: run it again")
    return Answer(question.id, _pages(found, question), seconds, found.skipped)


def _pages(found: Found, question: Question) -> tuple[str, ...]:
    pages = dict.fromkeys(hit.document.uri for hit in found.hits)
    return tuple(page for page in pages if page != question.without)[:DEPTH]


def as_json(runs: Iterable[Run]) -> dict[str, Any]:
    """Runs as JSON has them."""
    return {"runs": [_as_json(run) for run in runs]}


def _as_json(run: Run) -> dict[str, Any]:
    questions = [
        {"id": a.id, "ranked": a.ranked, "seconds": round(a.seconds, 6), "skipped": a.skipped}
        for a in run.answers
    ]
    return {"set": run.set, "recipe": run.recipe, "embedder": run.embedder, "questions": questions}


def from_json(data: Mapping[str, Any]) -> list[Run]:
    """The inverse of `as_json`; `skipped` may be missing."""
    return [
        Run(
            run["set"],
            run["recipe"],
            run["embedder"],
            tuple(
                Answer(q["id"], tuple(q["ranked"]), q["seconds"], q.get("skipped", ""))
                for q in run["questions"]
            ),
        )
        for run in data["runs"]
    ]
