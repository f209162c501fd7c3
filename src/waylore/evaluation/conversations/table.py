"""Run `waylore eval --data DIR --conversations`: print one table of LoCoMo and LongMemEval, by kind of question.

LoCoMo is measured by turn, LongMemEval by round and by session, in the pool of all sessions and in a history of 48
sessions for each question. `auto` has weights that were fitted on the other half of both sets, so no question is
measured with weights fitted on it. `chain` is the method for documents.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from waylore.evaluation.conversations.datasets import SETS, ConversationQuestion, get_session, read_conversations
from waylore.evaluation.conversations.fit import IndexedSet, choose_crossed, fit_halves, make_examples
from waylore.evaluation.conversations.measure import ConversationRun, open_conversations, run_questions
from waylore.evaluation.index import create_embedder
from waylore.evaluation.metrics import Interval, compute_interval, compute_recall
from waylore.evaluation.tables import format_columns
from waylore.protocols import Embedder
from waylore.recipes import AUTO, CHAIN, RECIPES, Recipe, choose_recipe

ALL = "all"
ADVERSARIAL = "adversarial"
UPDATE = "knowledge-update"  # kind with changed answers; R@1 of its rows: the newer session is first
Ranked = Sequence[str]
Choose = Callable[[ConversationQuestion], Recipe]


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """The figures of one method for one kind of questions, as shares."""

    set: str
    method: str
    kind: str
    questions: int
    first: float
    recall: Interval  # recall of the first five
    recall_of_ten: float
    all_gold: float
    any_hit: float


def run(options: argparse.Namespace) -> None:
    """Fit the halves, measure all sets, print the table and write the JSON."""
    embedder = None if options.words else create_embedder(options)
    table = "words" if embedder is None else "vectors"
    with ExitStack() as stack:
        sets = [_open_set(options, name, embedder, stack) for name in SETS]
        halves = fit_halves(list(make_examples(each, embedder, table)) for each in sets)
        methods: Mapping[str, Choose] = {CHAIN.name: lambda _: CHAIN, AUTO: choose_auto(choose_crossed(table, halves))}
        rows = [row for each in sets for row in _measure_set(each, embedder, methods)]
    print(format_rows(rows))
    if options.json:
        options.json.write_text(json.dumps({"rows": [to_json(row) for row in rows]}), encoding="utf-8")


def choose_auto(crossed: Choose) -> Choose:
    """Return the choice of `auto` for turns only, with the fitted weights if it chooses `conversation`."""

    def choose(question: ConversationQuestion) -> Recipe:
        recipe, _ = choose_recipe(AUTO, question.text, lambda: "all")
        return crossed(question) if recipe is RECIPES["conversation"] else recipe

    return choose


def _open_set(options: argparse.Namespace, name: str, embedder: Embedder | None, stack: ExitStack) -> IndexedSet:
    dataset = read_conversations(options.data / name, every=options.every)
    opened = open_conversations(dataset, embedder, options.folder, options.store)
    return IndexedSet(dataset, stack.enter_context(opened))


def _measure_set(
    indexed: IndexedSet, embedder: Embedder | None, methods: Mapping[str, Choose]
) -> Iterator[ConversationRow]:
    name, questions = indexed.dataset.name, indexed.dataset.questions
    has_sessions = any(question.sessions for question in questions)
    for method, choose in methods.items():
        found = run_questions(indexed.store, embedder, questions, choose)
        yield from list_rows(f"{name}, by {'round' if has_sessions else 'turn'}", method, _pair_turns(questions, found))
        if has_sessions:
            yield from list_rows(f"{name}, by session", method, _pair_sessions(questions, found))
            found = run_questions(indexed.store, embedder, questions, choose, in_history=True)
            histories = _pair_sessions(questions, found)
            yield from list_rows(f"{name}, 48 sessions", method, histories)
            updates = [to_update(*pair, indexed.dataset.times) for pair in histories]
            if known := [pair for pair in updates if pair]:
                yield make_row(f"{name}, newer first", method, UPDATE, known)


Pairs = Sequence[tuple[ConversationQuestion, Ranked, frozenset[str]]]


def _pair_turns(questions: Sequence[ConversationQuestion], found: ConversationRun) -> Pairs:
    return [(each, found.ranked[each.id], each.turns) for each in questions if each.turns]


def _pair_sessions(questions: Sequence[ConversationQuestion], found: ConversationRun) -> Pairs:
    """Return the found sessions of each question, in the order of their best turns, with the gold sessions."""
    return [
        (each, list(dict.fromkeys(map(get_session, found.ranked[each.id]))), each.sessions)
        for each in questions
        if each.sessions
    ]


def to_update(
    question: ConversationQuestion, ranked: Ranked, gold: frozenset[str], times: Mapping[str, datetime]
) -> tuple[ConversationQuestion, Ranked, frozenset[str]] | None:
    """Return the ranking of the two sessions of an update, with the newer one as gold; None if there are not two."""
    if question.kind != UPDATE or len(gold) != 2 or len({times[session] for session in gold}) != 2:
        return None
    newer = max(gold, key=lambda session: times[session])
    return question, [session for session in ranked if session in gold], frozenset({newer})


def list_rows(name: str, method: str, pairs: Pairs) -> Iterator[ConversationRow]:
    """Yield the figures of all questions, of all except adversarial questions, and of each kind."""
    kinds = sorted({question.kind for question, *_ in pairs} - {""})
    yield make_row(name, method, ALL, pairs)
    if ADVERSARIAL in kinds:
        yield make_row(name, method, f"not {ADVERSARIAL}", [pair for pair in pairs if pair[0].kind != ADVERSARIAL])
    for kind in kinds:
        yield make_row(name, method, kind, [pair for pair in pairs if pair[0].kind == kind])


def make_row(name: str, method: str, kind: str, pairs: Pairs) -> ConversationRow:
    """Return the figures of some questions."""
    first, five, ten = (np.array([compute_recall(ranked, gold, k) for _, ranked, gold in pairs]) for k in (1, 5, 10))
    return ConversationRow(
        name,
        method,
        kind,
        len(pairs),
        float(first.mean()),
        compute_interval(five),
        float(ten.mean()),
        float((five == 1).mean()),
        float((five > 0).mean()),
    )


def format_rows(rows: Sequence[ConversationRow]) -> str:
    """Format rows as a table of percentages."""
    head = ["set", "method", "questions", "n", "R@1", "R@5", "95 %", "R@10", "all@5", "any@5"]
    cells = [
        [
            row.set,
            row.method,
            row.kind,
            str(row.questions),
            f"{100 * row.first:.1f}",
            f"{100 * row.recall.mean:.1f}",
            f"{100 * row.recall.low:.1f}–{100 * row.recall.high:.1f}",
            *(f"{100 * share:.1f}" for share in (row.recall_of_ten, row.all_gold, row.any_hit)),
        ]
        for row in rows
    ]
    return format_columns(head, cells, names=3)


def to_json(row: ConversationRow) -> dict[str, Any]:
    """Return a row as JSON."""
    return asdict(row)
