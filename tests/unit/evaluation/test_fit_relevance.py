"""The model of `is_relevant` is fitted on several folders, and its minimum on those that it was fitted without."""

import numpy as np
import pytest

from waylore.evaluation.fit_relevance import Judged, fit_table

FOLDERS = ("harbour", "garden", "kitchen")


def make_folder(folder: str, answered: float, unanswered: float) -> list[Judged]:
    """Return twenty questions with an answer around one value of a feature, and twenty without one around another."""
    return [
        Judged(folder, {"cosine": center + spread, "noise": -spread}, has_answer)
        for center, has_answer in ((answered, True), (unanswered, False))
        for spread in np.linspace(-1.0, 1.0, 20).tolist()
    ]


def fit(judged: list[Judged]) -> tuple[dict[str, float], dict[str, float], float]:
    table = fit_table(judged)
    weights, typical, minimum = table["weights"], table["typical"], table["minimum"]
    assert isinstance(weights, dict)
    assert isinstance(typical, dict)
    assert isinstance(minimum, float)
    return weights, typical, minimum


@pytest.mark.slow
def test_few_questions_with_an_answer_are_below_the_minimum() -> None:
    judged = [one for folder in FOLDERS for one in make_folder(folder, 6.0, 3.0)]
    weights, typical, minimum = fit(judged)
    assert typical["cosine"] == pytest.approx(6.0)
    scores = [sum(weights[n] * (value - typical[n]) for n, value in one.features.items()) for one in judged]
    below = [one.has_answer for one, score in zip(judged, scores, strict=True) if score < minimum]
    assert sum(below) <= 0.1 * len(judged) / 2
    assert len(below) - sum(below) == len(judged) / 2


@pytest.mark.slow
def test_folder_that_differs_from_all_others_lowers_the_minimum() -> None:
    """Its questions look to the others' model as if they had no answer."""
    alike = [one for folder in FOLDERS for one in make_folder(folder, 6.0, 3.0)]
    differing = [one for folder in FOLDERS[:2] for one in make_folder(folder, 6.0, 3.0)] + make_folder("x", 4.0, 1.0)
    assert fit(differing)[2] < fit(alike)[2]
