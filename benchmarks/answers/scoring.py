"""Score an answer: exact match, F1 of words, and how many key phrases of the right answer it has.

Answers are compared as the scripts of SQuAD, HotpotQA and MuSiQue do it: in lower case, without punctuation and
articles, with the right answer that fits best. The right answer to a question about a folder is a phrase or several,
between semicolons. An answer has a phrase if it has three fifths of its words, without those that the question has.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from string import punctuation

from waylore.evaluation.folders.scoring import MIN_SHARE

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", punctuation)
_CLOSED = ("yes", "no", "noanswer")  # right or wrong as a whole


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """The scores of one answer, 0 to 1."""

    exact: float
    f1: float
    phrases: float


def score_answer(question: str, answer: str, right: Sequence[str]) -> AnswerScores:
    """Return the best score of each kind over all right answers."""
    return AnswerScores(
        max(float(normalise_answer(answer) == normalise_answer(each)) for each in right),
        max(compute_f1(answer, each) for each in right),
        max(measure_phrases(question, answer, each) for each in right),
    )


def normalise_answer(text: str) -> str:
    """Return a text in lower case without punctuation and articles."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def compute_f1(answer: str, right: str) -> float:
    """Return the harmonic mean of the shares of common words."""
    one, other = normalise_answer(answer), normalise_answer(right)
    if one != other and (one in _CLOSED or other in _CLOSED):
        return 0.0
    words, wanted = Counter(one.split()), Counter(other.split())
    common = (words & wanted).total()
    return 2 * common / (words.total() + wanted.total()) if common else 0.0


def measure_phrases(question: str, answer: str, right: str) -> float:
    """Return the share of the phrases of the right answer that an answer has."""
    given, said = set(normalise_answer(question).split()), set(normalise_answer(answer).split())
    phrases = [words for part in right.split(";") if (words := set(normalise_answer(part).split()))]
    wanted = [words - given or words for words in phrases]
    return sum(len(words & said) >= MIN_SHARE * len(words) for words in wanted) / max(len(wanted), 1)
