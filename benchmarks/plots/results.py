"""Read and write the results that the docs show. They are small: figures, not rankings."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers.scores import PeerScores
from waylore.evaluation.metrics import Interval

FOLDER = Path(__file__).parent / "results"
SETS, CONVERSATIONS, LATENCY, PEERS, SCALE = (
    FOLDER / f"{name}.json" for name in ("sets", "conversations", "latency", "peers", "scale")
)
KEPT = ("set", "recipe", "questions", "recall", "interval", "all_gold", "reciprocal_rank")
Rows = list[dict[str, Any]]


def read_rows(file: Path) -> Rows:
    """Return the rows of a file."""
    rows: Rows = json.loads(file.read_text("utf-8"))["rows"]
    return rows


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows to a file, one in a line."""
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    file.write_text(f'{{"rows": [\n{lines}\n]}}\n', "utf-8")


def replace_rows(known: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]], *columns: str) -> Rows:
    """Return known rows and new ones; a new row stands in place of a known one that is equal in these columns."""
    return [*{tuple(row[column] for column in columns): dict(row) for row in (*known, *new)}.values()]


def take_evaluation(file: Path, known: Sequence[Mapping[str, Any]]) -> Rows:
    """Return known rows, with those that `waylore.evaluation --json` wrote to a file in place of older ones."""
    return replace_rows(known, map(_round, read_rows(file)), "set", "recipe")


def _round(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a row, with as many digits as the tables have."""
    short = {name: row[name] for name in KEPT}
    for name in ("recall", "interval", "all_gold"):
        short[name] = {key: round(value, 1) for key, value in short[name].items()}
    return short | {"reciprocal_rank": round(short["reciprocal_rank"], 3)}


def read_peers(file: Path = PEERS) -> dict[str, list[PeerScores]]:
    """Return the figures of peers, by set."""
    found: dict[str, list[PeerScores]] = {}
    for row in read_rows(file):
        found.setdefault(row["set"], []).append(PeerScores(**{**row, "recall": Interval(**row["recall"])}))
    return found


def write_peers(file: Path, scored: Mapping[str, Sequence[PeerScores]]) -> None:
    """Write the figures of peers, in place of older ones of the same peers and sets."""
    new = [asdict(row) for rows in scored.values() for row in rows]
    write_rows(file, replace_rows(read_rows(file) if file.exists() else (), new, "set", "peer"))
