"""The benchmark of scale prints and checks the bytes before it loads, and keeps a row for each store."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.corpus import Corpus
from benchmarks.scale import __main__ as scale
from benchmarks.scale import disk
from benchmarks.scale.disk import DiskTooSmall, check_room, predict_bytes
from benchmarks.scale.measure import find_nearest
from benchmarks.scale.sample import Sample, make_copy_id

from waylore.store.vectors import to_units

GB = 10**9


def test_a_fifth_of_the_disk_stays_free() -> None:
    check_room(60 * GB, 0, used=20 * GB, free=80 * GB)
    with pytest.raises(DiskTooSmall, match=r"61\.0 GB would leave 19\.0 GB of the disk free, and 20\.0 must"):
        check_room(61 * GB, 0, used=20 * GB, free=80 * GB)


def test_what_is_loaded_already_counts_once() -> None:
    check_room(61 * GB, 30 * GB, used=49 * GB, free=51 * GB)
    check_room(30 * GB, 31 * GB, used=80 * GB, free=21 * GB)


def test_facts_take_bytes() -> None:
    without, with_facts = (predict_bytes("postgres", 1_000_000, facts) for facts in (0, 4))
    assert with_facts - without == 4_000_000 * disk.FACT_BYTES["postgres"]


def test_nothing_is_loaded_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(disk.PASSAGE_BYTES, "sqlite", 10**15)
    write_set(tmp_path / "films")
    options = ["--engine", "sqlite", "--passages", "8", "--embedder", "hashing", "--set", "films"]
    assert scale.main([*options, "--data", str(tmp_path), "--folder", str(tmp_path / "scale")]) == 1
    shown = capsys.readouterr()
    assert "8 passages x 1,000,000,000,000,000 bytes" in shown.out
    assert "load fewer passages" in shown.err
    assert [file for file in (tmp_path / "scale").rglob("*") if file.is_file()] == []


def write_set(folder: Path) -> None:
    """Write a set of two pages and a question."""
    folder.mkdir()
    rows: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"id": name, "title": name, "text": f"{name} is a film."} for name in ("Solaris", "Stalker")],
        "queries": [{"id": "1", "question": "What is Solaris?", "gold": ["Solaris"]}],
    }
    for kind, listed in rows.items():
        with gzip.open(folder / f"{kind}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in listed)


def test_a_row_replaces_that_of_the_same_store(tmp_path: Path) -> None:
    def make_row(passages: int, figure: float) -> dict[str, Any]:
        return {"engine": "sqlite", "facts": 0, "passages": passages, "recall@10": figure}

    file = tmp_path / "scale.json"
    for row in (make_row(1_000, 0.5), make_row(100, 0.75), make_row(1_000, 1.0)):
        scale.keep_row(file, row)
    assert json.loads(file.read_text("utf-8"))["rows"] == [make_row(100, 0.75), make_row(1_000, 1.0)]


def test_the_nearest_passages_are_found_by_comparing_all() -> None:
    sample = Sample(list(Corpus().make_documents(0, 40)), "synthetic", copies=3, place=1)
    copy = sample.numbers[2]
    asked = to_units(sample.make_codes(copy))[5:7]
    nearest = find_nearest([sample], asked)
    ids = [make_copy_id(page.passages[0].id, copy) for page in sample.pages]
    assert all(ids[5 + of] in found for of, found in enumerate(nearest))
    cosines = np.concatenate([to_units(sample.make_codes(each)) for each in sample.numbers]) @ asked[0]
    everything = [make_copy_id(page.passages[0].id, each) for each in sample.numbers for page in sample.pages]
    assert nearest[0] == {everything[place] for place in np.argsort(-cosines)[:10].tolist()}
