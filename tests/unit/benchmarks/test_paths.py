"""Test the judgements of paths: two readers, the same sixty paths, and four fifths of them convince each."""

import json
from pathlib import Path

from benchmarks.paths import SAMPLE, count

JUDGED = Path(__file__).parents[3] / "benchmarks" / "judged_paths.jsonl"


def test_two_readers_judged_the_same_paths() -> None:
    rows = [json.loads(line) for line in JUDGED.read_text("utf-8").splitlines()]
    one, other = (
        {(r["question"], r["rank"]) for r in rows if r["reader"] == reader} for reader in ("builder", "other")
    )
    assert one == other
    assert len(one) == SAMPLE
    assert all(row["why"] for row in rows)


def test_four_fifths_convince_each_reader(tmp_path: Path) -> None:
    assert count(JUDGED) == "builder: 51 of 60 paths convince\nother: 51 of 60 paths convince"
    few = tmp_path / "few.jsonl"
    few.write_text('{"reader": "a", "question": "q-1", "rank": 1, "convinces": false, "why": "No."}\n')
    assert count(few) == "a: 0 of 1 paths convince"
