"""Read LoCoMo and LongMemEval as turns: each turn is a separate document with speaker, session and time.

A conversation of LoCoMo is a user, and its questions search the turns of this user. LongMemEval is one pool. A round is
a turn of the user with its reply, and only the user's turn is read. Each of its questions also has its own history,
like that of a single user: the gold sessions and others at random, 48 in all. The metadata of a turn names its
histories. This module neither searches nor scores.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from waylore.evaluation.datasets import read_rows
from waylore.types.identity import document_id, passage_id
from waylore.types.knowledge import Document, IndexedDocument, Passage

SETS = ("locomo", "longmemeval-oracle")
HISTORY = "history"  # metadata key with the questions whose history contains a turn
HISTORY_SESSIONS = 48
HISTORY_SEED = 7


@dataclass(frozen=True, slots=True)
class ConversationQuestion:
    """A question with its gold turns and sessions, its user and time, and its half of the set."""

    id: str
    text: str
    turns: frozenset[str]
    sessions: frozenset[str]
    user: str
    at: datetime
    half: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ConversationSet:
    """Turns as documents with the id of the turn as URI, and questions."""

    name: str
    turns: tuple[IndexedDocument, ...]
    questions: tuple[ConversationQuestion, ...]

    @property
    def times(self) -> dict[str, datetime]:
        """The time of each session by id."""
        return {get_session(turn.document.uri): turn.document.at for turn in self.turns if turn.document.at}


def read_conversations(folder: Path, *, every: int = 1) -> ConversationSet:
    """Read a set from its folder, with one of `every` questions."""
    dataset = _read_locomo(folder) if folder.name == SETS[0] else _read_longmemeval(folder)
    return replace(dataset, questions=dataset.questions[::every])


def _read_locomo(folder: Path) -> ConversationSet:
    rows = list(read_rows(folder / "corpus.jsonl.gz"))
    moments = [_parse_time(row["date"], "%I:%M %p on %d %B, %Y") for row in rows]
    last = {row["scope"]: moment for row, moment in sorted(zip(rows, moments, strict=True), key=lambda pair: pair[1])}
    turns = tuple(
        make_turn(
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
            row.get("type", ""),
        )
        for row in read_rows(folder / "queries.jsonl.gz")
        if row["gold"]
    )
    return ConversationSet(folder.name, turns, questions)


def _read_longmemeval(folder: Path) -> ConversationSet:
    rows = [row for row in read_rows(folder / "queries.jsonl.gz") if not row["abstention"]]
    rounds = list(read_rows(folder / "corpus_rounds.jsonl.gz"))
    sessions = list(dict.fromkeys(get_session(row["id"]) for row in rounds))
    histories = _draw_histories(sessions, rows)
    turns = tuple(
        make_turn(
            row["id"],
            place,
            row["text"].partition("\nassistant: ")[0].removeprefix("user: "),
            "user",
            get_session(row["id"]),
            _parse_round_time(row["title"].removeprefix("session ")),
            histories=histories[get_session(row["id"])],
        )
        for place, row in enumerate(rounds)
    )
    questions = tuple(
        ConversationQuestion(
            row["id"],
            row["question"],
            frozenset(row["gold_rounds"]),
            frozenset(row["gold"]).intersection(sessions),
            "",
            _parse_round_time(row["date"]),
            number % 2,
            row.get("type", ""),
        )
        for number, row in enumerate(sorted(rows, key=lambda row: row["id"]))
    )
    return ConversationSet(folder.name, turns, questions)


def _draw_histories(sessions: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return, by session, the questions whose history contains it: questions that need it, and some at random."""
    random = np.random.default_rng(HISTORY_SEED)
    numbers = {session: number for number, session in enumerate(sessions)}
    histories: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        gold = [numbers[session] for session in row["gold"] if session in numbers]
        others = random.permutation([n for n in range(len(sessions)) if n not in gold])[: HISTORY_SESSIONS - len(gold)]
        for number in (*gold, *others.tolist()):
            histories[sessions[number]].append(row["id"])
    return histories


def get_session(turn: str) -> str:
    """Return the session of a round."""
    return turn.rpartition("#")[0]


def _parse_time(text: str, form: str) -> datetime:
    return datetime.strptime(text, form).replace(tzinfo=UTC)


def _parse_round_time(text: str) -> datetime:
    return _parse_time(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M")


def make_turn(
    id_: str,
    place: int,
    text: str,
    speaker: str,
    session: str,
    at: datetime,
    user: str = "",
    histories: Sequence[str] = (),
) -> IndexedDocument:
    """Return a turn as a separate document. `place` orders the turns."""
    own = document_id(text=text, scope=(user, "", session, id_))
    document = Document(
        own,
        uri=id_,
        source="conversation",
        user=user,
        session=session,
        at=at,
        recorded_at=at,
        metadata={HISTORY: list(histories)} if histories else {},
    )
    passage = Passage(
        passage_id(own, text), own, text, position=place, end=len(text), speaker=speaker, role="user", at=at
    )
    return IndexedDocument(document, (passage,))
