"""Define what the context of a question must show: the answer in a gold page, and the sentences that support it.

The questions of a set have answers and other spellings of them. Yes, no, and answers that the question names prove
nothing and are left out. `support.jsonl.gz` marks the supporting sentences (`id`, and `sentences` by page). In a set
without marks, they are the sentences of the gold pages that contain the answer. A conversation is supported by its gold
turns, a folder by its quotes. This module neither searches nor scores.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from waylore.errors import ConfigError
from waylore.evaluation.conversations.datasets import ConversationQuestion, ConversationSet
from waylore.evaluation.conversations.measure import make_filter as make_user_filter
from waylore.evaluation.conversations.table import ADVERSARIAL
from waylore.evaluation.datasets import Dataset, EvaluationQuestion, read_rows
from waylore.evaluation.folders.questions import FolderQuestion
from waylore.evaluation.folders.scoring import normalise_path
from waylore.evaluation.run import make_filter
from waylore.fence import neutralize
from waylore.indexing.extractors.markup import split_sentences
from waylore.types.knowledge import EPOCH
from waylore.types.search import NO_FILTER, Filter

SUPPORT = "support.jsonl.gz"
_ARTICLES = frozenset(("a", "an", "the"))
_LEFT_OUT, _GAP = "…", "¦"  # the mark of a gap between sentences of a context separates words
_WORD = re.compile(rf"[^\W_]+|{_GAP}")


@lru_cache(maxsize=8_192)
def fold(text: str) -> str:
    """Return the words of a text without case and articles, between single spaces."""
    folded = unicodedata.normalize("NFKC", neutralize(text).text.replace(_LEFT_OUT, _GAP)).casefold()
    return f" {' '.join(word for word in _WORD.findall(folded) if word not in _ARTICLES)} "


@dataclass(frozen=True, slots=True)
class SupportingText:
    """Folded sentences of a page that must all be shown. Without sentences, any part of the page is enough."""

    page: str
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """A question about pages, and the texts that its context must show.

    Without folded `answers` it counts neither as answered nor as unanswered. Each item of `support` has several places.
    It is asked in the scope `where`, at the time `at`.
    """

    id: str
    text: str
    gold: frozenset[str]
    answers: tuple[str, ...] = ()
    support: tuple[tuple[SupportingText, ...], ...] = ()
    where: Filter = NO_FILTER
    at: datetime = EPOCH


Answers = Mapping[str, tuple[str, ...]]  # by id of the question, folded
Marks = Mapping[str, Mapping[str, Sequence[str]]]  # sentences by question and page


def read_answers(folder: Path) -> Answers:
    """Read the answers of a set and their other spellings. Yes and no are left out."""
    answers = {row["id"]: _fold_answers(row) for row in read_rows(folder / "queries.jsonl.gz")}
    if not any(answers.values()):
        raise ConfigError(f"{folder} has no answers; --context needs sets whose questions have an `answer`")
    return answers


def _fold_answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = [fold(str(name)) for name in (row.get("answer", ""), *row.get("answer_aliases", ()))]
    is_named = names[0].strip() and names[0] not in (" yes ", " no ")
    return tuple(dict.fromkeys(name for name in names if name.strip())) if is_named else ()


def read_marks(folder: Path) -> Marks:
    """Read the sentences that support the answers of a set; empty without marks."""
    return {row["id"]: row["sentences"] for row in read_rows(folder / SUPPORT)}


def list_set_questions(dataset: Dataset, answers: Answers, marks: Marks) -> Iterator[ContextQuestion]:
    """Yield the questions of a set."""
    texts = {page.document.uri: page.passages[0].text for page in dataset.pages}
    for question in dataset.questions:
        known = answers.get(question.id, ())
        marked = marks.get(question.id) or _find_sentences(question, known, texts)
        yield ContextQuestion(
            question.id,
            question.text,
            question.gold,
            _drop_given(known, question.text),
            tuple((support_by(page, sentences),) for page, sentences in marked.items()),
            make_filter(question),
        )


def _find_sentences(
    question: EvaluationQuestion, answers: Sequence[str], texts: Mapping[str, str]
) -> Mapping[str, Sequence[str]]:
    """Return the sentences of the gold pages that contain an answer."""
    said = {page: split_sentences(texts[page]) for page in sorted(question.gold & texts.keys())}
    having = {page: [s for s in of_page if any(a in fold(s) for a in answers)] for page, of_page in said.items()}
    return {page: sentences for page, sentences in having.items() if sentences}


def list_turn_questions(dataset: ConversationSet, answers: Answers) -> Iterator[ContextQuestion]:
    """Yield the questions of a conversation, each in the scope of its user or in its own history."""
    texts = {turn.document.uri: turn.passages[0].text for turn in dataset.turns}
    for question in dataset.questions:
        yield ContextQuestion(
            question.id,
            question.text,
            question.turns,
            () if question.kind == ADVERSARIAL else _drop_given(answers.get(question.id, ()), question.text),
            tuple((support_by(turn, [texts[turn]]),) for turn in sorted(question.turns & texts.keys())),
            make_user_filter(question, in_history=_has_history(question)),
            question.at,
        )


def _has_history(question: ConversationQuestion) -> bool:
    return bool(question.sessions)


def list_folder_questions(questions: Iterable[FolderQuestion]) -> Iterator[ContextQuestion]:
    """Yield the questions that a folder answers."""
    for question in questions:
        support = [
            tuple(support_by(normalise_path(place.path), [place.quote]) for place in places) for places in question.gold
        ]
        if support:
            gold = frozenset(place.page for places in support for place in places)
            yield ContextQuestion(f"{question.folder}/{question.id}", question.text, gold, support=tuple(support))


def support_by(page: str, sentences: Iterable[str]) -> SupportingText:
    """Return the sentences of a page that contain words."""
    return SupportingText(page, tuple(folded for each in sentences if (folded := fold(each)).strip()))


def _drop_given(answers: tuple[str, ...], question: str) -> tuple[str, ...]:
    """Return no answers if the question names one of them."""
    return () if any(answer in fold(question) for answer in answers) else answers
