"""Draw bars with matplotlib, as an SVG that is the same byte by byte in every run.

Drawings have dark text on their own light ground, so they can be read on light and dark pages. Each bar has its name and
value beside it, so that colours are not needed to read it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any
from xml.sax.saxutils import escape

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GROUND, TEXT, LINES = "#fbfaf7", "#1d2233", "#c9ccd6"
OURS, OURS_PLAIN, OTHERS = "#3442b0", "#7a84cf", "#6b7480"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "waylore",  # identities of elements are hashes, not random
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": TEXT,
    "axes.edgecolor": LINES,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
}
WIDTH, ROW, AROUND = 7.2, 0.27, 0.9  # inches: of the picture, of a bar, and of title and axis together
HEAD = re.compile(r"^.*?<svg ", re.DOTALL)  # the declaration and the type of the document


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, its value, and the ends of its whisker, if it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    colour: str = OTHERS


@dataclass(frozen=True, slots=True)
class Group:
    """Bars under a heading, which may be empty."""

    heading: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture: its title, what the axis counts, its bars, and how a value is written."""

    title: str
    axis: str
    groups: tuple[Group, ...]
    form: str = "{:.1f}"
    is_logarithmic: bool = False
    end: float | None = None  # of the axis; None fits the bars


def draw_plot(plot: Plot) -> str:
    """Return a plot as SVG."""
    rows = sum(len(group.bars) + bool(group.heading) for group in plot.groups)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, AROUND + ROW * rows), facecolor=GROUND, layout="constrained")
        axes = figure.add_subplot(facecolor=GROUND)
        draw_axes(axes, plot, rows)
        for number, row in enumerate(list_rows(plot.groups)):
            draw_row(axes, plot, rows - 1 - number, row)
        written = StringIO()
        empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(written, format="svg", metadata=empty)
    return name_picture(written.getvalue(), describe_plot(plot))


def list_rows(groups: Sequence[Group]) -> list[Bar | str]:
    """Return headings and bars from top to bottom."""
    return [row for group in groups for row in ([group.heading] if group.heading else []) + [*group.bars]]


def draw_axes(axes: Axes, plot: Plot, rows: int) -> None:
    """Draw title, axis and grid."""
    axes.set_title(plot.title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel(plot.axis)
    axes.set_ylim(-0.6, rows - 0.4)
    if plot.is_logarithmic:
        axes.set_xscale("log")
    axes.grid(axis="x", color=LINES, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)
    listed = list_rows(plot.groups)
    names = {rows - 1 - number: row.name for number, row in enumerate(listed) if isinstance(row, Bar)}
    axes.set_yticks(list(names), list(names.values()))
    longest = max(row.high or row.value for row in listed if isinstance(row, Bar))
    axes.set_xlim(right=plot.end or (3 * longest if plot.is_logarithmic else 1.12 * longest))


def draw_row(axes: Axes, plot: Plot, height: int, row: Bar | str) -> None:
    """Draw a heading, or a bar with its whisker and value."""
    if isinstance(row, str):
        axes.text(0, height - 0.15, row, transform=axes.get_yaxis_transform(), fontweight="bold", va="center")
        return
    low, high = row.low or row.value, row.high or row.value
    axes.barh(height, row.value, height=0.72, color=row.colour)
    if high > low:
        axes.errorbar(row.value, height, xerr=[[row.value - low], [high - row.value]], fmt="none", ecolor=TEXT, lw=1.2)
    axes.annotate(
        plot.form.format(row.value), (high, height), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9
    )


def describe_plot(plot: Plot) -> str:
    """Return a plot in words."""
    shown = [
        f"{group.heading}: " * bool(group.heading)
        + ", ".join(f"{bar.name} {plot.form.format(bar.value)}" for bar in group.bars)
        for group in plot.groups
    ]
    return f"{plot.title} ({plot.axis}). {'; '.join(shown)}."


def name_picture(svg: str, words: str) -> str:
    """Return a picture as an element of a page, with its description."""
    element = HEAD.sub('<svg role="img" ', svg, count=1)
    return element.replace(">", f">\n <title>{escape(words)}</title>", 1)
