"""Evaluate recipes on conversations: LoCoMo by turn, LongMemEval by round and by session.

    python -m waylore.evaluation.conversations.measure --data SETS --model WEIGHTS --vectors CACHE --folder STORES

With `--words` no vectors are used. Processor time is that of the searches, without the embedding of questions.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from waylore.evaluation.conversations.datasets import (
    HISTORY,
    SETS,
    ConversationQuestion,
    ConversationSet,
    get_session,
    read_conversations,
)
from waylore.evaluation.index import PAGES_PER_TRANSACTION, add_embedder_options, choose_store, create_embedder
from waylore.evaluation.metrics import compute_interval, compute_recall
from waylore.indexing import pipeline
from waylore.protocols import Embedder
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.scale import get_scale
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.store.urls import open_store
from waylore.types.author import OWNER
from waylore.types.search import Filter, Query

HITS = 50  # enough for ten sessions among the hits
DEPTHS = (1, 5, 10)
WORDS = "words"  # stands for no embedder


@contextmanager
def open_conversations(
    dataset: ConversationSet, embedder: Embedder | None, folder: Path | None = None, url: str | None = None
) -> Iterator[Store]:
    """Open a store with the turns of a set: at `url` or in `folder`, which is reused, or a temporary one."""
    with (
        choose_store(f"{dataset.name}-turns", embedder, folder, url) as (address, name),
        closing(open_store(address, name)) as store,
    ):
        for few in pipeline.split_into_batches(dataset.turns, PAGES_PER_TRANSACTION):
            pipeline.write(store, embedder, few, author=OWNER)
        yield store


@dataclass(frozen=True, slots=True)
class ConversationRun:
    """The found turns of each question by its id, best first, and the processor time of all searches."""

    ranked: Mapping[str, Sequence[str]]
    seconds: float


def run_questions(
    store: Store,
    embedder: Embedder | None,
    questions: Iterable[ConversationQuestion],
    choose: Callable[[ConversationQuestion], Recipe],
    *,
    top_k: int = HITS,
    in_history: bool = False,
) -> ConversationRun:
    """Search each question with the recipe that `choose` returns for it, everywhere or in its own history."""
    ranked: dict[str, Sequence[str]] = {}
    seconds = 0.0
    for question in questions:
        query, recipe = make_query(question, embedder, in_history=in_history), replace(choose(question), top_k=top_k)
        start = time.process_time()
        result = search(store, None, query, recipe, now=question.at)
        seconds += time.process_time() - start
        ranked[question.id] = [hit.uri for hit in result.hits]
    return ConversationRun(ranked, seconds)


def make_query(question: ConversationQuestion, embedder: Embedder | None, *, in_history: bool = False) -> Query:
    """Return the question as a query in the scope of its user, or in its own history, with its vector."""
    where = make_filter(question, in_history=in_history)
    if embedder is None:
        return Query(question.text, where=where)
    return Query(question.text, embedder.embed_query(question.text), where, scale=get_scale(embedder))


def make_filter(question: ConversationQuestion, *, in_history: bool) -> Filter:
    """Return the scope of the user of a question, or its own history."""
    return Filter(user=question.user, metadata={HISTORY: question.id} if in_history else {})


def format_recall(name: str, questions: Sequence[ConversationQuestion], run: ConversationRun) -> list[str]:
    """Return a line with the recall by turn and, if the set has gold sessions, a line by session."""
    lines = [_format_line(f"{name}, by turn", [(run.ranked[q.id], q.turns) for q in questions if q.turns])]
    if any(question.sessions for question in questions):
        by_session = [
            (list(dict.fromkeys(map(get_session, run.ranked[q.id]))), q.sessions) for q in questions if q.sessions
        ]
        lines.append(_format_line(f"{name}, by session", by_session))
    return lines


def _format_line(name: str, pairs: Sequence[tuple[Sequence[str], frozenset[str]]]) -> str:
    recalls = {k: np.array([compute_recall(ranked, gold, k) for ranked, gold in pairs]) for k in DEPTHS}
    interval = compute_interval(recalls[5])
    cells = "  ".join(f"R@{k} {100 * each.mean():5.1f}" for k, each in recalls.items())
    return f"{name:60}{cells}  [{100 * interval.low:.1f}, {100 * interval.high:.1f}]  {len(pairs)} questions"


def choose_always(recipe: Recipe) -> Callable[[ConversationQuestion], Recipe]:
    """Return a function that returns the same recipe for every question."""
    return lambda _: recipe


def main(arguments: list[str] | None = None) -> None:
    """Print the recall of each recipe on each set."""
    options = _parse_options(arguments)
    embedder = None if options.words else create_embedder(options)
    for name in options.sets:
        dataset = read_conversations(options.data / name, every=options.every)
        with open_conversations(dataset, embedder, options.folder, options.store) as store:
            for recipe in options.recipes:
                run = run_questions(store, embedder, dataset.questions, choose_always(RECIPES[recipe]))
                print("\n".join(format_recall(f"{name}, {recipe}", dataset.questions, run)))
                print(
                    f"{1000 * run.seconds / len(dataset.questions):.2f} ms of processor for each question", flush=True
                )


def add_set_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the sets and the embedder."""
    parser.add_argument("--data", type=Path, required=True, help="Directory of the sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="Sets to use")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="Use one of N questions")
    add_embedder_options(parser)


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.conversations.measure", description=__doc__)
    parser.add_argument("--recipes", nargs="+", choices=sorted(RECIPES), default=["hybrid", "conversation"])
    parser.add_argument("--words", action="store_true", help="Use no vectors")
    add_set_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
