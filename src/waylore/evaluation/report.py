"""Says how good runs are: a row for each, the gate's two error rates, and whether two runs differ.

Figures are percentages but for the reciprocal rank; times are milliseconds without the question's embedding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from waylore.evaluation.metrics import Interval, Scores, difference, interval, recall, reciprocal_rank
from waylore.evaluation.run import Run

DEPTHS = (2, 5, 10, 20)
Gold = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """How well one recipe answers one set."""

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
    """Of the questions that the graph helps, how many were kept from it; of those it harms, how many not."""

    helps: int
    kept_from_help: float
    harms: int
    let_do_harm: float


def recalls(run: Run, gold: Gold, k: int) -> Scores:
    """Recall at k of each question."""
    return np.array([recall(a.ranked, gold[a.id], k) for a in run.answers if a.id in gold])


def row(run: Run, gold: Gold) -> Row:
    """The figures of one run."""
    at = {k: recalls(run, gold, k) for k in DEPTHS}
    milliseconds = 1000 * np.array([a.seconds for a in run.answers])
    ranks = [reciprocal_rank(a.ranked, gold[a.id]) for a in run.answers]
    return Row(
        set=run.set,
        recipe=run.recipe,
        questions=len(run.answers),
        recall={k: 100 * float(at[k].mean()) for k in DEPTHS},
        interval=_percent(interval(at[5])),
        all_gold={k: 100 * float((at[k] == 1.0).mean()) for k in (5, 10)},
        reciprocal_rank=float(np.mean(ranks)),
        p50=float(np.percentile(milliseconds, 50)),
        p95=float(np.percentile(milliseconds, 95)),
        skipped=100 * float(np.mean([bool(a.skipped) for a in run.answers])),
    )


def gate_errors(gated: Run, ungated: Run, hybrid: Run, gold: Gold) -> GateErrors:
    """How often the gate was wrong, by recall at 5 of the graph let loose against hybrid search."""
    gain = recalls(ungated, gold, 5) - recalls(hybrid, gold, 5)
    was_skipped = np.array([bool(a.skipped) for a in gated.answers if a.id in gold])
    helps, harms = gain > 0, gain < 0
    return GateErrors(
        int(helps.sum()),
        100 * float(was_skipped[helps].mean()) if helps.any() else 0.0,
        int(harms.sum()),
        100 * float((~was_skipped[harms]).mean()) if harms.any() else 0.0,
    )


def versus(one: Run, other: Run, gold: Gold) -> Interval:
    """By how many points of recall at 5 one run is better than another over the same questions."""
    return _percent(difference(recalls(one, gold, 5), recalls(other, gold, 5)))


def table(rows: Sequence[Row]) -> str:
    """Rows under one head, for people."""
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
    cells = [head, *map(_cells, rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = ["  ".join(_padded(line, widths)).rstrip() for line in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def sentence(one: Run, other: Run, by: Interval) -> str:
    """Whether two runs differ, in words."""
    verdict = "differ" if by.low > 0 or by.high < 0 else "do not differ measurably"
    span = f"{by.mean:+.1f} points of R@5 [{by.low:+.1f}, {by.high:+.1f}]"
    return f"{one.set}: {one.recipe} and {other.recipe} {verdict}: {span}"


def gate_sentence(run: Run, errors: GateErrors) -> str:
    """The gate's error rates, in words."""
    return (
        f"{run.set}: the gate of {run.recipe} kept {errors.kept_from_help:.1f} % of {errors.helps} questions "
        f"from help, and let harm through to {errors.let_do_harm:.1f} % of {errors.harms}"
    )


def as_json(row: Row) -> dict[str, object]:
    """A row as JSON has it."""
    return asdict(row)


def _cells(row: Row) -> list[str]:
    at = {k: f"{row.recall[k]:.1f}" for k in DEPTHS}
    span = f"{row.interval.low:.1f}–{row.interval.high:.1f}"
    gold = [f"{row.all_gold[k]:.1f}" for k in (5, 10)]
    times = [f"{row.p50:.1f}", f"{row.p95:.1f}", f"{row.skipped:.0f} %"]
    return [
        row.set,
        row.recipe,
        at[2],
        at[5],
        span,
        at[10],
        at[20],
        *gold,
        f"{row.reciprocal_rank:.3f}",
        *times,
    ]


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Names to the left, numbers to the right."""
    return [
        cell.ljust(width) if i < 2 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def _percent(of: Interval) -> Interval:
    return Interval(100 * of.mean, 100 * of.low, 100 * of.high)
