"""Report the share of answers in the contexts of a set: figures with intervals, and differences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from waylore.errors import ConfigError
from waylore.evaluation.contexts.measure import ContextPlan, ContextSetting, Measured
from waylore.evaluation.contexts.scoring import ContextScores
from waylore.evaluation.folders.measure import BASELINE
from waylore.evaluation.metrics import Interval, Scores, compute_difference, compute_interval
from waylore.evaluation.tables import format_columns

MEASURES = ("strict", "support")
Others = Mapping[str, Mapping[int, Mapping[str, ContextScores]]]  # by name, budget and question


@dataclass(frozen=True, slots=True)
class ContextRow:
    """The figures of one layout and method by budget; `against` has the differences to other runs."""

    layout: str
    method: str
    measure: str
    questions: int
    shares: Mapping[int, Interval]
    against: Mapping[str, Mapping[int, Interval]]
    tokens: Mapping[int, float]  # mean length


def list_rows(measured: Measured, plan: ContextPlan, earlier: Mapping[str, Measured]) -> Iterator[ContextRow]:
    """Yield a row for each layout, method and measure of the questions.

    A row is compared with hybrid search, and with the same contexts of earlier runs, by name.
    """
    for layout, method, measure in product(plan.layouts, plan.methods, MEASURES):
        settings = [ContextSetting(layout, method, budget) for budget in plan.budgets]
        scores = {s.budget: _list_scores(measured[s], measure) for s in settings}
        if count := len(scores[plan.budgets[0]]):
            shares = {budget: compute_interval(_to_array(of_budget)) for budget, of_budget in scores.items()}
            others = _find_others(measured, settings, earlier)
            against = {name: _compare(scores, of_name, measure) for name, of_name in others.items()}
            tokens = {s.budget: _measure_length(measured[s]) for s in settings}
            yield ContextRow(layout, method, measure, count, shares, against, tokens)


def _find_others(measured: Measured, settings: Sequence[ContextSetting], earlier: Mapping[str, Measured]) -> Others:
    """Return the runs to compare with by name: hybrid search with the same layout, and earlier runs."""
    hybrid = {s.budget: measured.get(s._replace(method=BASELINE), {}) for s in settings if s.method != BASELINE}
    return {BASELINE: hybrid} | {name: {s.budget: run.get(s, {}) for s in settings} for name, run in earlier.items()}


def _compare(
    scores: Mapping[int, Mapping[str, float]], others: Mapping[int, Mapping[str, ContextScores]], measure: str
) -> dict[int, Interval]:
    """Return the differences by budget, over the questions that both runs have."""
    differences = {}
    for budget, of_budget in others.items():
        other = _list_scores(of_budget, measure)
        if both := [id_ for id_ in scores[budget] if id_ in other]:
            one = {id_: scores[budget][id_] for id_ in both}
            differences[budget] = compute_difference(_to_array(one), _to_array({id_: other[id_] for id_ in both}))
    return differences


def _list_scores(scores: Mapping[str, ContextScores], measure: str) -> dict[str, float]:
    """Return the scores of the questions that have this measure, by id."""
    values = {id_: getattr(scores[id_], measure) for id_ in sorted(scores)}
    return {id_: value for id_, value in values.items() if value is not None}


def _to_array(scores: Mapping[str, float]) -> Scores:
    return np.array(list(scores.values()), dtype=np.float64)


def _measure_length(scores: Mapping[str, ContextScores]) -> float:
    return float(np.mean([each.tokens for each in scores.values()]))


def format_set(name: str, rows: Sequence[ContextRow], counter: str) -> str:
    """Return the table of a set: shares with their intervals, each followed by its differences to other runs."""
    counts = ", ".join(f"{count} with {measure}" for measure, count in {r.measure: r.questions for r in rows}.items())
    budgets = list(rows[0].shares)
    head = ["layout", "method", "measure", *(f"{budget:,}" for budget in budgets)]
    lines = [line for row in rows for line in _format_row(row, budgets)]
    return f"{name}: {counts}; tokens by {counter}\n\n{format_columns(head, lines, names=3)}"


def _format_row(row: ContextRow, budgets: Sequence[int]) -> Iterator[list[str]]:
    yield [row.layout, row.method, row.measure, *(format_interval(row.shares[b], ".2f") for b in budgets)]
    for name, by_budget in row.against.items():
        if by_budget:
            cells = [format_interval(by_budget[b], "+.2f") if b in by_budget else "" for b in budgets]
            yield [row.layout, row.method, f"{row.measure} − {name}", *cells]


def format_interval(interval: Interval, form: str) -> str:
    """Return a mean and its range, each in a format such as `+.2f`."""
    return f"{interval.mean:{form}} [{interval.low:{form}}, {interval.high:{form}}]"


def to_json(name: str, rows: Sequence[ContextRow], measured: Measured) -> dict[str, Any]:
    """Return the figures of a set and the scores of each question as JSON."""
    scores = [
        {**setting._asdict(), "questions": {id_: asdict(score) for id_, score in of_setting.items()}}
        for setting, of_setting in measured.items()
    ]
    return {"set": name, "rows": [asdict(row) for row in rows], "scores": scores}


def read_earlier(file: Path) -> dict[str, Measured]:
    """Return the JSON of an earlier run, by set."""
    try:
        return {
            each["set"]: dict(map(_from_json, each["scores"])) for each in json.loads(file.read_text("utf-8"))["sets"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file} has no contexts ({error!r}); pass a file that --context --json wrote") from error


def _from_json(row: Mapping[str, Any]) -> tuple[ContextSetting, dict[str, ContextScores]]:
    setting = ContextSetting(row["layout"], row["method"], row["budget"])
    return setting, {id_: ContextScores(**scores) for id_, scores in row["questions"].items()}
