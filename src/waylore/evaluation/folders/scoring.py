"""Score rankings of passages: which hits contain the gold passages, and how certain a difference is.

A hit contains a gold passage if it is from the same file and has three fifths of the words of the quote. Recall is the
mean share of the gold passages among the first five hits. Two methods are compared by a sign test of the recall of each
question.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.evaluation.metrics import Interval, compute_interval
from waylore.types.identity import get_file

MIN_SHARE = 0.6  # of the words of a quote
DEPTH = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit of a ranking: address and text of a passage, its score, and the path in the graph that led to it."""

    path: str
    text: str
    score: float = 0.0
    via: str = ""


@dataclass(frozen=True, slots=True)
class QuestionScores:
    """The scores of one question, each 0 to 1; `reciprocal_rank` and `first` are of the first hit with gold."""

    recall: float
    all_gold: float
    first: float
    reciprocal_rank: float


Scored = Mapping[str, QuestionScores]  # by id of the question


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The means over some questions, with the interval of the recall."""

    questions: int
    recall: Interval
    all_gold: float
    first: float
    reciprocal_rank: float


@dataclass(frozen=True, slots=True)
class SignTest:
    """The number of questions on which a method is better or worse than another, and the probability by chance."""

    better: int
    worse: int
    p: float


def split_words(text: str) -> list[str]:
    """Return the words of a text without regard to case."""
    return _WORD.findall(text.casefold())


def normalise_path(path: str) -> str:
    """Return the path of a file as in questions: without a leading `./` and without a place in the file."""
    return get_file(path).removeprefix("./")


def has_passage(hit: RankedHit, gold: GoldPassage) -> bool:
    """Return whether a hit has a gold passage."""
    if normalise_path(hit.path) != normalise_path(gold.path):
        return False
    wanted, words = split_words(gold.quote), set(split_words(hit.text))
    return sum(word in words for word in wanted) >= MIN_SHARE * len(wanted)


def find_ranks(question: FolderQuestion, hits: Sequence[RankedHit]) -> list[int]:
    """Return for each gold passage the rank of the first hit that has it in one of its places, 0 if none has."""
    return [
        next((rank for rank, hit in enumerate(hits, 1) if any(has_passage(hit, place) for place in places)), 0)
        for places in question.gold
    ]


def score_question(question: FolderQuestion, hits: Sequence[RankedHit]) -> QuestionScores:
    """Return the scores of a question that has an answer."""
    ranks = find_ranks(question, hits)
    within = [0 < rank <= DEPTH for rank in ranks]
    first = min((rank for rank in ranks if rank), default=0)
    return QuestionScores(
        sum(within) / len(within), float(all(within)), float(first == 1), 1.0 / first if first else 0.0
    )


def make_row(scores: Iterable[QuestionScores]) -> ScoreRow:
    """Return the means over the scores of at least one question."""
    values = np.array([(s.recall, s.all_gold, s.first, s.reciprocal_rank) for s in scores])
    _, all_gold, first, reciprocal_rank = (float(mean) for mean in values.mean(axis=0))
    return ScoreRow(len(values), compute_interval(values[:, 0]), all_gold, first, reciprocal_rank)


def run_sign_test(one: Scored, other: Scored) -> SignTest:
    """Compare the recall of two methods on the questions that both have."""
    gains = [one[id_].recall - other[id_].recall for id_ in one.keys() & other.keys()]
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    total = better + worse
    tail: float = sum(comb(total, i) for i in range(min(better, worse) + 1)) / 2**total
    return SignTest(better, worse, min(1.0, 2 * tail))
