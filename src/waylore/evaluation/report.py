"""Report the quality of runs: a row for each, the gate's two error rates, and whether two runs differ.

Figures are percentages, except the reciprocal rank. Times are milliseconds without embedding the question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from waylore.evaluation.metrics import (
    Interval,
    Scores,
    compute_difference,
    compute_interval,
    compute_recall,
    compute_reciprocal_rank,
)
from waylore.evaluation.run import Run
from waylore.evaluation.tables import format_columns

DEPTHS = (2, 5, 10, 20)
Gold = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class ReportRow:
    """The figures of one recipe on one set."""

    set: str
    recipe: str
    questions: int
    recall: Mapping[int, float]
    interval: Interval  # of recall at 5
    all_gold: Mapping[int, float]
    reciprocal_rank: float
    p50: float
    p95: float
    skipped: float


@dataclass(frozen=True, slots=True)
class GateErrors:
    """The error rates of the gate.

    `skipped_help` is the percentage of questions that the graph helps and the gate skips.
    `used_harm` is the percentage of questions that the graph harms and the gate does not skip.
    """

    helps: int
    skipped_help: float
    harms: int
    used_harm: float


def list_recalls(run: Run, gold: Gold, k: int) -> Scores:
    """Return recall at k of each question."""
    return np.array([compute_recall(a.ranked, gold[a.id], k) for a in run.answers if a.id in gold])


def make_row(run: Run, gold: Gold) -> ReportRow:
    """Return the figures of one run."""
    recalls = {k: list_recalls(run, gold, k) for k in DEPTHS}
    milliseconds = 1000 * np.array([a.seconds for a in run.answers])
    ranks = [compute_reciprocal_rank(a.ranked, gold[a.id]) for a in run.answers]
    return ReportRow(
        set=run.set,
        recipe=run.recipe,
        questions=len(run.answers),
        recall={k: 100 * float(recalls[k].mean()) for k in DEPTHS},
        interval=_to_percent(compute_interval(recalls[5])),
        all_gold={k: 100 * float((recalls[k] == 1.0).mean()) for k in (5, 10)},
        reciprocal_rank=float(np.mean(ranks)),
        p50=float(np.percentile(milliseconds, 50)),
        p95=float(np.percentile(milliseconds, 95)),
        skipped=100 * float(np.mean([bool(a.skip_reason) for a in run.answers])),
    )


def measure_gate_errors(gated: Run, ungated: Run, hybrid: Run, gold: Gold) -> GateErrors:
    """Return the gate's error rates, by recall at 5 of a run without the gate against hybrid search."""
    gain = list_recalls(ungated, gold, 5) - list_recalls(hybrid, gold, 5)
    was_skipped = np.array([bool(a.skip_reason) for a in gated.answers if a.id in gold])
    helps, harms = gain > 0, gain < 0
    return GateErrors(
        int(helps.sum()),
        100 * float(was_skipped[helps].mean()) if helps.any() else 0.0,
        int(harms.sum()),
        100 * float((~was_skipped[harms]).mean()) if harms.any() else 0.0,
    )


def compare(one: Run, other: Run, gold: Gold) -> Interval:
    """Return the difference of two runs over the same questions, in points of recall at 5."""
    return _to_percent(compute_difference(list_recalls(one, gold, 5), list_recalls(other, gold, 5)))


def format_table(rows: Sequence[ReportRow]) -> str:
    """Format rows as a table."""
    head = [
        "set",
        "recipe",
        "R@2",
        "R@5",
        "95 %",
        "R@10",
        "R@20",
        "all@5",
        "all@10",
        "MRR",
        "p50 ms",
        "p95 ms",
        "skipped",
    ]
    return format_columns(head, [*map(_format_cells, rows)], names=2)


def format_comparison(one: Run, other: Run, difference: Interval) -> str:
    """Return a sentence that says whether two runs differ."""
    verdict = "differ" if difference.low > 0 or difference.high < 0 else "do not differ measurably"
    span = f"{difference.mean:+.1f} points of R@5 [{difference.low:+.1f}, {difference.high:+.1f}]"
    return f"{one.set}: {one.recipe} and {other.recipe} {verdict}: {span}"


def format_gate_errors(run: Run, errors: GateErrors) -> str:
    """Return a sentence with the gate's error rates."""
    return (
        f"{run.set}: the gate of {run.recipe} skipped the graph for {errors.skipped_help:.1f} % of the "
        f"{errors.helps} questions that it helps, and used it for {errors.used_harm:.1f} % of the "
        f"{errors.harms} that it harms"
    )


def to_json(row: ReportRow) -> dict[str, object]:
    """Return a row as JSON."""
    return asdict(row)


def _format_cells(row: ReportRow) -> list[str]:
    recalls = {k: f"{row.recall[k]:.1f}" for k in DEPTHS}
    span = f"{row.interval.low:.1f}–{row.interval.high:.1f}"
    gold = [f"{row.all_gold[k]:.1f}" for k in (5, 10)]
    times = [f"{row.p50:.1f}", f"{row.p95:.1f}", f"{row.skipped:.0f} %"]
    return [
        row.set,
        row.recipe,
        recalls[2],
        recalls[5],
        span,
        recalls[10],
        recalls[20],
        *gold,
        f"{row.reciprocal_rank:.3f}",
        *times,
    ]


def _to_percent(interval: Interval) -> Interval:
    return Interval(100 * interval.mean, 100 * interval.low, 100 * interval.high)
