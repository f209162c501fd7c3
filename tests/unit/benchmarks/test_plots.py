"""Plots of the docs are what the results give, and the tables of the pages have the same figures."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks.peers.table import format_tables
from benchmarks.plots.__main__ import ENGINES, PICTURES, find_outdated, list_plots
from benchmarks.plots.draw import Bar, Group, Plot, draw_plot
from benchmarks.plots.results import CONVERSATIONS, LATENCY, SCALE, SETS, read_peers, read_rows, take_evaluation

DOCS = Path(__file__).parents[3] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
PLOT = Plot("Found", "percent", (Group("Films", (Bar("ours", 81.25, 70, 90), Bar("theirs & others", 9.5))),))


def read_cells(page: str) -> list[list[str]]:
    """Return the cells of all tables of a page, without marks of emphasis."""
    lines = [line for line in (DOCS / page).read_text("utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip().strip("*`") for cell in line.strip("| ").split("|")] for line in lines]


def format_row(row: dict[str, Any]) -> list[str]:
    """Return the first cells of a row of recall, as a table has them."""
    interval = f"{row['interval']['low']:.1f}–{row['interval']['high']:.1f}"
    recall = {depth: f"{value:.1f}" for depth, value in row["recall"].items()}
    if "all_gold" in row:
        return [row["set"], row["recipe"], recall["2"], recall["5"], interval, recall["10"], recall["20"]]
    return [row["set"], row["recipe"], f"{row['questions']:,}", recall["1"], recall["5"], interval, recall["10"]]


def test_plots_are_what_the_results_give() -> None:
    assert find_outdated(PICTURES) == []


def test_a_missing_and_a_changed_plot_are_outdated(tmp_path: Path) -> None:
    names = list(list_plots())
    for name in names[1:]:
        (tmp_path / f"{name}.svg").write_bytes((PICTURES / f"{name}.svg").read_bytes())
    changed = tmp_path / f"{names[1]}.svg"
    changed.write_text(changed.read_text("utf-8").replace("auto", "otto"), "utf-8")
    assert [line.split()[0] for line in find_outdated(tmp_path)] == [f"{name}.svg" for name in names[:2]]


def test_a_plot_is_described_in_words_and_requests_nothing() -> None:
    picture = draw_plot(PLOT)
    root = ElementTree.fromstring(picture)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Found (percent). Films: ours 81.2, theirs & others 9.5."
    shown = "".join(root.itertext())
    assert all(text in shown for text in ("Found", "percent", "Films", "ours", "81.2", "9.5"))
    assert "<image" not in picture
    assert "@import" not in picture


def test_a_plot_is_the_same_every_time() -> None:
    assert draw_plot(PLOT) == draw_plot(PLOT)


@pytest.mark.parametrize("file", [SETS, CONVERSATIONS], ids=lambda file: file.stem)
def test_tables_of_recall_have_the_figures_of_the_results(file: Path) -> None:
    """If a table has changed, take its new figures into the results and run `python -m benchmarks.plots`."""
    cells = read_cells("benchmarks.md")
    rows = read_rows(file)
    assert len(rows) >= 10
    assert [row for row in map(format_row, rows) if not any(line[: len(row)] == row for line in cells)] == []


def test_the_table_of_times_has_the_figures_of_the_results() -> None:
    cells = read_cells("benchmarks.md")
    rows = [[row["recipe"], f"{row['p50']}", f"{row['p95']}"] for row in read_rows(LATENCY)]
    assert [row for row in rows if not any(line[:3] == row for line in cells)] == []


def test_the_table_of_large_stores_has_the_figures_of_the_results() -> None:
    def format_cost(row: dict[str, Any], search: str) -> str:
        return f"{row['processor'][search]['client']:.1f} + {row['processor'][search]['server']:.1f}"

    cells = [[*line[:2], *line[4:8]] for line in read_cells("explanation/scale.md") if len(line) == 9]
    for row in read_rows(SCALE):
        costs = [format_cost(row, search) for search in ("hybrid", "chain")]
        shown = [ENGINES[row["engine"]], f"{row['passages']:,}", f"{row['bytes']['per_passage']:,.0f}", *costs]
        assert [*shown, f"{row['recall@10']:.3f}"] in cells


def test_tables_of_peers_have_the_figures_of_the_results() -> None:
    page = (DOCS / "benchmarks/peers.md").read_text("utf-8").splitlines()
    rows = [line for line in format_tables(read_peers()).splitlines() if line.startswith("|")]
    assert len(rows) > 50
    assert [row for row in rows if row not in page] == []


def test_rows_of_an_evaluation_replace_older_ones(tmp_path: Path) -> None:
    def make_row(recipe: str, recall: float) -> dict[str, Any]:
        figures = {"recall": {"5": recall}, "interval": {"mean": recall, "low": 1.04, "high": 2.0}, "all_gold": {}}
        return {"set": "films", "recipe": recipe, "questions": 3, "reciprocal_rank": 0.12345, "p50": 9.0, **figures}

    file = tmp_path / "evaluation.json"
    file.write_text(json.dumps({"rows": [make_row("chain", 71.26)], "runs": []}), "utf-8")
    chain, hybrid = take_evaluation(file, [make_row("chain", 1.0), make_row("hybrid", 2.0)])
    assert chain["recall"] == {"5": 71.3}
    assert (chain["interval"]["low"], chain["reciprocal_rank"]) == (1.0, 0.123)
    assert "p50" not in chain
    assert hybrid["recall"] == {"5": 2.0}
