"""Evaluate recipes on conversations: LoCoMo by turn, LongMemEval by round and by session.

    python -m waylore.evaluation.conversations --data SETS --model WEIGHTS --vectors CACHE --folder STORES

Each turn is a document of its own with speaker, session and time. A conversation of LoCoMo is a user, and its
questions search the turns of that user. LongMemEval is one pool, and of a round the user's turn is indexed. With
`--words` no vectors are used. Processor time is that of the searches, without the embedding of questions.
"""

import argparse
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from waylore.evaluation.datasets import read_rows
from waylore.evaluation.index import PAGES_PER_TRANSACTION, add_embedder_options, choose_store, create_embedder
from waylore.evaluation.metrics import compute_interval, compute_recall
from waylore.indexing import pipeline
from waylore.protocols import Embedder
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.search import search
from waylore.retrieval.unit import find_unit, measure_unit
from waylore.store.protocol import Store
from waylore.store.urls import open_store
from waylore.types.author import OWNER
from waylore.types.identity import document_id, passage_id
from waylore.types.knowledge import Document, IndexedDocument, Passage
from waylore.types.search import Filter, Query

SETS = ("locomo", "longmemeval-oracle")
HITS = 50  # so that ten sessions are among the hits
DEPTHS = (1, 5, 10)
WORDS = "words"  # as the embedder: none


@dataclass(frozen=True, slots=True)
class ConversationQuestion:
    """A question with its gold turns and sessions, who asks it and when, and the half of the set that it is in."""

    id: str
    text: str
    turns: frozenset[str]
    sessions: frozenset[str]
    user: str
    at: datetime
    half: int


@dataclass(frozen=True, slots=True)
class ConversationSet:
    """Turns as documents, whose URI is the id of the turn, and questions."""

    name: str
    turns: tuple[IndexedDocument, ...]
    questions: tuple[ConversationQuestion, ...]


def read_conversations(folder: Path, *, every: int = 1) -> ConversationSet:
    """Read a set from its folder, with one of `every` so many questions."""
    dataset = _read_locomo(folder) if folder.name == SETS[0] else _read_longmemeval(folder)
    return replace(dataset, questions=dataset.questions[::every])


def _read_locomo(folder: Path) -> ConversationSet:
    rows = list(read_rows(folder / "corpus.jsonl.gz"))
    moments = [_parse_time(row["date"], "%I:%M %p on %d %B, %Y") for row in rows]
    last = {row["scope"]: moment for row, moment in sorted(zip(rows, moments, strict=True), key=lambda pair: pair[1])}
    turns = tuple(
        _make_turn(
            row["id"], place, row["text"].partition(": ")[2], row["speaker"], str(row["session"]), at, row["scope"]
        )
        for place, (row, at) in enumerate(zip(rows, moments, strict=True))
    )
    scopes = sorted(last)
    questions = tuple(
        ConversationQuestion(
            row["id"],
            row["question"],
            frozenset(row["gold"]),
            frozenset(),
            row["scope"],
            last[row["scope"]],
            scopes.index(row["scope"]) % 2,
        )
        for row in read_rows(folder / "queries.jsonl.gz")
        if row["gold"]
    )
    return ConversationSet(folder.name, turns, questions)


def _read_longmemeval(folder: Path) -> ConversationSet:
    turns = tuple(
        _make_turn(
            row["id"],
            place,
            row["text"].partition("\nassistant: ")[0].removeprefix("user: "),
            "user",
            get_session(row["id"]),
            _parse_round_time(row["title"].removeprefix("session ")),
        )
        for place, row in enumerate(read_rows(folder / "corpus_rounds.jsonl.gz"))
    )
    sessions = {get_session(turn.document.uri) for turn in turns}
    rows = [row for row in read_rows(folder / "queries.jsonl.gz") if not row["abstention"]]
    questions = tuple(
        ConversationQuestion(
            row["id"],
            row["question"],
            frozenset(row["gold_rounds"]),
            frozenset(row["gold"]) & sessions,
            "",
            _parse_round_time(row["date"]),
            number % 2,
        )
        for number, row in enumerate(sorted(rows, key=lambda row: row["id"]))
    )
    return ConversationSet(folder.name, turns, questions)


def get_session(turn: str) -> str:
    """Return the session of a round."""
    return turn.rpartition("#")[0]


def _parse_time(text: str, form: str) -> datetime:
    return datetime.strptime(text, form).replace(tzinfo=UTC)


def _parse_round_time(text: str) -> datetime:
    return _parse_time(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M")


def _make_turn(
    id_: str, place: int, text: str, speaker: str, session: str, at: datetime, user: str = ""
) -> IndexedDocument:
    own = document_id(text=text, scope=(user, "", session, id_))
    document = Document(own, uri=id_, source="conversation", user=user, session=session, at=at, recorded_at=at)
    passage = Passage(
        passage_id(own, text), own, text, position=place, end=len(text), speaker=speaker, role="user", at=at
    )
    return IndexedDocument(document, (passage,))


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
    """The turns that were found for each question, best first, by its id, and the processor time of all searches."""

    ranked: Mapping[str, Sequence[str]]
    seconds: float


def run_questions(
    store: Store,
    embedder: Embedder | None,
    questions: Iterable[ConversationQuestion],
    choose: Callable[[ConversationQuestion], Recipe],
    *,
    top_k: int = HITS,
) -> ConversationRun:
    """Search for each question with the recipe that `choose` returns for it."""
    ranked: dict[str, Sequence[str]] = {}
    seconds = 0.0
    for question in questions:
        query, recipe = make_query(question, embedder), replace(choose(question), top_k=top_k)
        start = time.process_time()
        result = search(store, None, query, recipe, now=question.at)
        seconds += time.process_time() - start
        ranked[question.id] = [hit.uri for hit in result.hits]
    return ConversationRun(ranked, seconds)


def make_query(question: ConversationQuestion, embedder: Embedder | None) -> Query:
    """Return the question as a query in the scope of its user, with its vector."""
    where = Filter(user=question.user)
    if embedder is None:
        return Query(question.text, where=where)
    unit = find_unit(embedder.name) or measure_unit(embedder)
    return Query(question.text, embedder.embed_query(question.text), where, unit=unit)


def format_recall(name: str, questions: Sequence[ConversationQuestion], run: ConversationRun) -> list[str]:
    """Return a line with the recall by turn and, if the set has gold sessions, one by session."""
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
    return f"{name:48}{cells}  [{100 * interval.low:.1f}, {100 * interval.high:.1f}]  {len(pairs)} questions"


def _choose_always(recipe: Recipe) -> Callable[[ConversationQuestion], Recipe]:
    return lambda _: recipe


def main(arguments: list[str] | None = None) -> None:
    """Print the recall of each recipe on each set."""
    options = _parse_options(arguments)
    embedder = None if options.words else create_embedder(options)
    for name in options.sets:
        dataset = read_conversations(options.data / name, every=options.every)
        with open_conversations(dataset, embedder, options.folder, options.store) as store:
            for recipe in options.recipes:
                run = run_questions(store, embedder, dataset.questions, _choose_always(RECIPES[recipe]))
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
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.conversations", description=__doc__)
    parser.add_argument("--recipes", nargs="+", choices=sorted(RECIPES), default=["hybrid", "conversation"])
    parser.add_argument("--words", action="store_true", help="Use no vectors")
    add_set_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
