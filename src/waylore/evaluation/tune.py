"""Fit the weights of `chain` to one collection: `waylore tune`.

The shipped weights are corrected, not replaced: the fit pulls every correction towards 0, and cross-validation chooses
how strongly. The questions are made from the facts of the collection. Questions of an owner, given with the passages
that answer them, have more weight. Each question is judged by weights that were fitted without it. The shipped weights
are replaced only if the corrected ones are better on questions of an owner by more than chance. A gain on made
questions alone does not count: corrections that gained 3 to 7 points on them changed recall on real questions by +1 to
-4 points.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from waylore.config import Weights
from waylore.errors import ConfigError
from waylore.evaluation.fit import (
    Example,
    add_odds,
    fit_correction,
    make_example,
    make_folder_examples,
    read_candidates,
)
from waylore.evaluation.folders.questions import FolderQuestion
from waylore.evaluation.made_questions import make_questions
from waylore.evaluation.metrics import Interval, compute_difference
from waylore.protocols import Embedder
from waylore.recipes import CHAIN
from waylore.retrieval.graph.chain import compute_log_odds
from waylore.retrieval.graph.features import ODDS, SECOND_FEATURES, blend_weights
from waylore.store.protocol import Store
from waylore.types.author import OWNER

MADE = 200  # questions that are made from facts
MADE_WEIGHT = 0.2  # weight of a made question relative to one of an owner
MIN_QUESTIONS = 20  # fewer questions cannot show a difference
FIRST = 5  # an answer counts as found among this many hits
FOLDS = 5
PENALTIES = (0.0001, 0.001, 0.01, 0.1)  # scikit-learn's C; a smaller value pulls corrections to 0
SHIPPED: Weights = (("bias", 0.0), (ODDS, 1.0))
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The measured recall with shipped and with corrected weights, and whether the correction helps the owner."""

    made: int
    labelled: int
    shipped: float
    tuned: float
    difference: Interval
    is_better: bool
    penalty: float
    weights: Weights

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        difference = self.difference
        return {
            "made_questions": self.made,
            "labelled_questions": self.labelled,
            "recall_shipped": round(self.shipped, 4),
            "recall_tuned": round(self.tuned, 4),
            "difference": [round(x, 4) for x in (difference.mean, difference.low, difference.high)],
            "is_better": self.is_better,
            "penalty": self.penalty,
        }

    def describe(self) -> str:
        """Return the figures and their consequence."""
        asked = f"{self.labelled} of your questions" if self.labelled else f"{self.made} questions made from facts"
        low, high = (f"{100 * end:+.1f}" for end in (self.difference.low, self.difference.high))
        gain = f"{100 * self.difference.mean:+.1f}, 95 %: {low} to {high}"
        figures = (
            f"{asked}, each answered with weights that were fitted without it\n"
            f"found in the first {FIRST}: {100 * self.shipped:.1f} % with the shipped weights, "
            f"{100 * self.tuned:.1f} % with fitted ones ({gain})\n"
        )
        if self.is_better:
            return f"{figures}Searches use the fitted weights from now on; `waylore tune --reset` removes them."
        if self.labelled:
            return f"{figures}The difference may be chance, so nothing is changed."
        return (
            f"{figures}Nothing is changed: a gain on made questions does not carry over to those of people.\n"
            "Pass your own with --questions FILE to have the fitted weights stored if they help."
        )


def store_weights(store: Store, weights: Weights) -> None:
    """Store weights that were fitted to a collection; without weights, its searches use the shipped ones."""
    store.set_weights(json.dumps(dict(weights)) if weights else "", author=OWNER)


def tune(
    store: Store,
    embedder: Embedder,
    questions: Sequence[FolderQuestion] = (),
    progress: Progress = lambda *_: None,
) -> Tuning:
    """Fit a correction of the shipped weights and measure on held-out questions whether it helps."""
    made = list(_read_made(store, embedder, progress))
    labelled = [_judge(example) for example in make_folder_examples(store, embedder, questions, CHAIN)]
    asked = labelled if questions else made
    if len(asked) < MIN_QUESTIONS:
        raise ConfigError(_describe_lack(len(asked), is_labelled=bool(questions)))
    folds, penalty, others = _choose_fit(asked, made if labelled else [])
    before = np.array([_compute_recall(example, SHIPPED) for example in asked])
    after = np.array([_compute_recall(example, folds[i % FOLDS]) for i, example in enumerate(asked)])
    weights = fit_correction([*asked, *others], [*SECOND_FEATURES], penalty)
    difference = compute_difference(after, before)
    means, is_better = (float(before.mean()), float(after.mean())), bool(labelled) and difference.low > 0
    return Tuning(len(made), len(labelled), *means, difference, is_better, penalty, weights)


def _read_made(store: Store, embedder: Embedder, progress: Progress) -> Iterator[Example]:
    """Yield the made questions that name an entity, with their candidates after the shipped judgement."""
    questions = make_questions(store, MADE)
    for done, question in enumerate(questions, start=1):
        if found := read_candidates(store, embedder, question.text, CHAIN):
            is_gold = np.array([id_ in question.gold for id_ in found.ids], np.bool_)
            yield _judge(make_example(found, is_gold, len(question.gold)))
        progress(done, len(questions))


def _judge(example: Example) -> Example:
    """Return a question with the log-odds of the shipped weights as a feature."""
    return add_odds(example, *blend_weights(CHAIN.chain, example.long))


def _choose_fit(asked: Sequence[Example], made: Sequence[Example]) -> tuple[list[Weights], float, Sequence[Example]]:
    """Return the corrections without each fold, and the penalty and made questions with the best held-out result."""
    with_made = [replace(each, weight=MADE_WEIGHT) for each in made]
    choices = [(penalty, others) for others in ([], with_made)[: 2 if made else 1] for penalty in PENALTIES]
    fits = [(_fit_folds(asked, others, penalty), penalty, others) for penalty, others in choices]
    return min(fits, key=lambda fit: _compute_held_out_loss(asked, fit[0]))


def _fit_folds(asked: Sequence[Example], made: Sequence[Example], penalty: float) -> list[Weights]:
    """Return the corrections that are fitted without each fold of the questions."""
    kept = [[each for i, each in enumerate(asked) if i % FOLDS != fold] for fold in range(FOLDS)]
    return [fit_correction([*others, *made], [*SECOND_FEATURES], penalty) for others in kept]


def _compute_held_out_loss(asked: Sequence[Example], folds: Sequence[Weights]) -> float:
    odds = [compute_log_odds(example.columns, folds[i % FOLDS]) for i, example in enumerate(asked)]
    signed = [np.where(example.is_gold, -each, each) for example, each in zip(asked, odds, strict=True)]
    return float(np.logaddexp(0.0, np.concatenate(signed)).sum())


def _compute_recall(example: Example, weights: Weights) -> float:
    """Return the share of the needed passages that are among the first."""
    best = np.argsort(-compute_log_odds(example.columns, weights), kind="stable")[:FIRST]
    return min(float(example.is_gold[best].sum()) / example.needed, 1.0)


def _describe_lack(number: int, *, is_labelled: bool) -> str:
    if is_labelled:
        return f"{number} questions name something that the collection knows; {MIN_QUESTIONS} are needed to tune"
    return (
        f"only {number} questions can be made from the facts of the collection; {MIN_QUESTIONS} are needed. "
        "Add more documents, or pass your own questions with --questions FILE"
    )
