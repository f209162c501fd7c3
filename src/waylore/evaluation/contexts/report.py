"""Report how much of the answers is in the contexts of a set: figures with intervals, and differences to hybrid."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from waylore.evaluation.contexts.measure import ContextPlan, ContextSetting, Measured
from waylore.evaluation.contexts.scoring import ContextScores
from waylore.evaluation.folders.measure import BASELINE
from waylore.evaluation.metrics import Interval, Scores, compute_difference, compute_interval
from waylore.evaluation.tables import format_columns

MEASURES = ("strict", "support")


@dataclass(frozen=True, slots=True)
class ContextRow:
    """The figures of one layout and method by budget; `against` says how much better than hybrid search it is."""

    layout: str
    method: str
    measure: str
    questions: int
    shares: Mapping[int, Interval]
    against: Mapping[int, Interval]
    tokens: Mapping[int, float]  # mean length


def list_rows(measured: Measured, plan: ContextPlan) -> Iterator[ContextRow]:
    """Yield a row for each layout, method and measure that the questions have."""
    for layout in plan.layouts:
        for method in plan.methods:
            settings = [ContextSetting(layout, method, budget) for budget in plan.budgets]
            for measure in MEASURES:
                scores = {s.budget: _list_scores(measured[s], measure) for s in settings}
                count = len(next(iter(scores.values())))
                if count:
                    against = {s.budget: _compare(measured, s, measure) for s in settings if _has_other(measured, s)}
                    shares = {budget: compute_interval(values) for budget, values in scores.items()}
                    tokens = {s.budget: _measure_length(measured[s]) for s in settings}
                    yield ContextRow(layout, method, measure, count, shares, against, tokens)


def _list_scores(scores: Mapping[str, ContextScores], measure: str) -> Scores:
    """Return the scores of the questions that have this measure."""
    values = [getattr(scores[id_], measure) for id_ in sorted(scores)]
    return np.array([value for value in values if value is not None], dtype=np.float64)


def _has_other(measured: Measured, setting: ContextSetting) -> bool:
    return setting.method != BASELINE and setting._replace(method=BASELINE) in measured


def _compare(measured: Measured, setting: ContextSetting, measure: str) -> Interval:
    other = measured[setting._replace(method=BASELINE)]
    return compute_difference(_list_scores(measured[setting], measure), _list_scores(other, measure))


def _measure_length(scores: Mapping[str, ContextScores]) -> float:
    return float(np.mean([each.tokens for each in scores.values()]))


def format_set(name: str, rows: Sequence[ContextRow], counter: str) -> str:
    """Return the table of a set: shares with their intervals, then differences to hybrid search."""
    counts = ", ".join(f"{count} with {measure}" for measure, count in {r.measure: r.questions for r in rows}.items())
    budgets = list(rows[0].shares)
    head = ["layout", "method", "measure", *(f"{budget:,}" for budget in budgets)]
    lines = [line for row in rows for line in _format_row(row, budgets)]
    return f"{name}: {counts}; tokens by {counter}\n\n{format_columns(head, lines, names=3)}"


def _format_row(row: ContextRow, budgets: Sequence[int]) -> Iterator[list[str]]:
    yield [row.layout, row.method, row.measure, *(_format_interval(row.shares[b], ".2f") for b in budgets)]
    if row.against:
        cells = [_format_interval(row.against[budget], "+.2f") for budget in budgets]
        yield [row.layout, row.method, f"{row.measure} − {BASELINE}", *cells]


def _format_interval(interval: Interval, form: str) -> str:
    return f"{interval.mean:{form}} [{interval.low:{form}}, {interval.high:{form}}]"


def to_json(name: str, rows: Sequence[ContextRow], measured: Measured) -> dict[str, Any]:
    """Return the figures of a set and the scores of each question as JSON."""
    scores = [
        {**setting._asdict(), "questions": {id_: asdict(score) for id_, score in of_setting.items()}}
        for setting, of_setting in measured.items()
    ]
    return {"set": name, "rows": [asdict(row) for row in rows], "scores": scores}
