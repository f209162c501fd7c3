"""Write the plots of docs/benchmarks.md, docs/benchmarks/peers.md and docs/explanation/scale.md from their results.

    python -m benchmarks.plots                          write docs/pictures
    python -m benchmarks.plots --check                  write nothing; exit with 1 if a plot is outdated
    python -m benchmarks.plots --take evaluation.json   first take rows of `waylore.evaluation --json`

Results are in benchmarks/plots/results. `python -m benchmarks.peers table DIR --json` writes those of peers, and
`python -m benchmarks.scale --json` those of large stores.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import PEERS as SPECS
from benchmarks.peers.scores import PeerScores
from benchmarks.plots.draw import OTHERS, OURS, OURS_PLAIN, Bar, Group, Plot, draw_plot
from benchmarks.plots.results import (
    CONVERSATIONS,
    LATENCY,
    SCALE,
    SETS,
    Rows,
    read_peers,
    read_rows,
    take_evaluation,
    write_rows,
)

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
COLOURS = {"chain": OURS, "deep": OURS, "auto": OURS, "hybrid": OURS_PLAIN}
NAMES = {"pagerank": "PageRank, whole graph", "hybrid": "hybrid search"}
PEER_SETS = {
    "musique": "MuSiQue, 1,500 pages",
    "2wikimultihopqa": "2WikiMultihopQA, 1,500 pages",
    "musique-300": "MuSiQue, 300 pages",
}
ENGINES = {"postgres": "PostgreSQL", "cells": "three cells", "qdrant": "PostgreSQL and Qdrant", "sqlite": "SQLite"}
RECALL = "R@5 in percent, with 95 % intervals"
DIGITS = re.compile(r"(\d+\.\d)\d+")


def list_plots() -> dict[str, Plot]:
    """Return the plots by the names of their files."""
    peers = read_peers()
    return {
        "recall": Plot("How much of the gold is among the first five", RECALL, group_rows(read_rows(SETS)), end=108),
        "conversations": Plot(
            "Turns and sessions of conversations", RECALL, group_rows(read_rows(CONVERSATIONS)), end=108
        ),
        "latency": plot_latency(read_rows(LATENCY)),
        **{f"peers-{name}": plot_peers(f"R@5 on {title}", peers[name]) for name, title in PEER_SETS.items()},
        "peers-processor": plot_processor(peers["musique-300"]),
        "scale": plot_scale(read_rows(SCALE)),
    }


def group_rows(rows: Rows) -> tuple[Group, ...]:
    """Return a group of bars for each set."""
    sets = dict.fromkeys(row["set"] for row in rows)
    return tuple(Group(name, tuple(make_bar(row) for row in rows if row["set"] == name)) for name in sets)


def make_bar(row: dict[str, object]) -> Bar:
    """Return the recall of a recipe on a set as a bar."""
    recipe, recall, interval = str(row["recipe"]), row["recall"], row["interval"]
    assert isinstance(recall, dict)
    assert isinstance(interval, dict)
    colour = COLOURS.get(recipe, OTHERS)
    return Bar(NAMES.get(recipe, recipe), recall["5"], interval["low"], interval["high"], colour)


def plot_latency(rows: Rows) -> Plot:
    """Return the times of a search as bars; whiskers end at the 95th percentile."""
    bars = tuple(
        Bar(row["recipe"], row["p50"], row["p50"], row["p95"], COLOURS.get(row["recipe"], OTHERS)) for row in rows
    )
    return Plot("Time of a search on MuSiQue", "ms, median and 95th percentile, without embedding", (Group("", bars),))


def plot_peers(title: str, rows: Sequence[PeerScores]) -> Plot:
    """Return the recall of peers on a set, best first."""
    ordered = sorted(rows, key=lambda row: -row.recall.mean)
    spans = ((row, row.recall) for row in ordered)
    bars = tuple(
        Bar(shorten(row.peer), 100 * span.mean, 100 * span.low, 100 * span.high, choose_colour(row))
        for row, span in spans
    )
    return Plot(title, RECALL, (Group("", bars),), end=108)


def plot_processor(rows: Sequence[PeerScores]) -> Plot:
    """Return the processor time that peers need for indexing, least first."""
    ordered = sorted(rows, key=lambda row: row.index_processor)
    bars = tuple(Bar(shorten(row.peer), row.index_processor, colour=choose_colour(row)) for row in ordered)
    axis = "seconds, without the embedding model (logarithmic)"
    return Plot("Processor time for indexing 300 pages", axis, (Group("", bars),), "{:.0f}", is_logarithmic=True)


def plot_scale(rows: Rows) -> Plot:
    """Return the processor time of a search by the number of passages."""
    groups = tuple(
        Group(f"{ENGINES[engine]}, {search}", tuple(make_cost(row, search) for row in rows if row["engine"] == engine))
        for engine in dict.fromkeys(row["engine"] for row in rows)
        for search in ("hybrid", "chain")
    )
    return Plot("Cost of a search by number of passages", "ms of processors, client and servers together", groups)


def make_cost(row: dict[str, Any], search: str) -> Bar:
    """Return the processor time of a search in a store as a bar."""
    spent = row["processor"][search]
    graph = f", {row['facts']} facts each" if row["facts"] else ", no graph"
    return Bar(f"{row['passages']:,}{graph}", spent["client"] + spent["server"], colour=COLOURS[search])


def shorten(peer: str) -> str:
    """Return the title of a peer without what stands in parentheses or after a comma."""
    title = SPECS[peer].title.partition(" (")[0]
    return title if title.startswith("Waylore") else title.partition(",")[0]


def choose_colour(row: PeerScores) -> str:
    """Return the colour of a peer."""
    return {"waylore": OURS, "waylore-hybrid": OURS_PLAIN}.get(row.peer, OTHERS)


def find_outdated(folder: Path) -> list[str]:
    """Return the plots of a folder that are not what the results give; the last digits of places are not compared."""
    drawn = {folder / f"{name}.svg": draw_plot(plot) for name, plot in list_plots().items()}
    return [
        f"{file.name} is outdated; run `python -m benchmarks.plots`"
        for file, text in drawn.items()
        if not file.exists() or DIGITS.sub(r"\1", file.read_text("utf-8")) != DIGITS.sub(r"\1", text)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the plots; with `--check` return 1 if one is outdated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a plot is outdated")
    parser.add_argument("--take", type=Path, metavar="FILE", help="rows of `waylore.evaluation --json` to take first")
    options = parser.parse_args(arguments)
    if options.check:
        outdated = find_outdated(PICTURES)
        print(*outdated, sep="\n")
        return 1 if outdated else 0
    if options.take:
        write_rows(SETS, take_evaluation(options.take, read_rows(SETS)))
    for name, plot in list_plots().items():
        (PICTURES / f"{name}.svg").write_text(draw_plot(plot), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
