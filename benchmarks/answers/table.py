"""Write the scores of answers as a table: by set and context, with intervals, and the default minus hybrid search."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple

import numpy as np

from benchmarks.answers.ask import Answers
from benchmarks.answers.questions import CONTEXTS, DEFAULT, AskedQuestion
from benchmarks.answers.scoring import score_answer
from waylore.evaluation.contexts.report import format_interval
from waylore.evaluation.folders.measure import BASELINE
from waylore.evaluation.metrics import Scores, compute_difference, compute_interval
from waylore.evaluation.tables import format_markdown

HEAD = ("set", "context", "questions", "exact match", "F1", "key phrases")
ScoresByContext = Mapping[str, Scores]  # a row for each question, a column for each measure


def format_table(answered: Sequence[tuple[AskedQuestion, Answers]]) -> str:
    """Return the table of the questions that were answered with every context."""
    names = dict.fromkeys(question.set for question, _ in answered)
    rows = [row for name in names for row in _list_rows(name, [pair for pair in answered if pair[0].set == name])]
    return format_markdown(HEAD, rows, names=2) if rows else "no question has been answered with every context"


def score_answers(answered: Iterable[tuple[AskedQuestion, Answers]]) -> ScoresByContext:
    """Return the scores by context, the questions in the same order."""
    pairs = list(answered)
    return {
        context: np.array([astuple(score_answer(q.text, answers[context], q.answers)) for q, answers in pairs])
        for context in CONTEXTS
    }


def _list_rows(name: str, answered: Sequence[tuple[AskedQuestion, Answers]]) -> Iterator[list[str]]:
    scores = score_answers(answered)
    for context, of_context in scores.items():
        shares = [format_interval(compute_interval(column), ".2f") for column in of_context.T]
        yield [name, context, str(len(answered)), *shares]
    columns = zip(scores[DEFAULT].T, scores[BASELINE].T, strict=True)
    differences = [format_interval(compute_difference(one, other), "+.2f") for one, other in columns]
    yield [name, f"{DEFAULT} − {BASELINE}", str(len(answered)), *differences]
