"""A service is killed at any place of a request with an Idempotency-Key: the request is done once, or not at all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from databases import create_database

PLACES = [4, pytest.param(20, marks=pytest.mark.full)]
TESTS = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", PLACES)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_killed_request_is_done_once(engine: str, number: int, tmp_path: Path) -> None:
    store = create_database() if engine == "postgres" else str(tmp_path / "memory.waylore")
    command = [sys.executable, str(TESTS / "faults" / "crash_forgetter.py"), store, str(number)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    places = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(places) == number
    for place in places:
        first, second = place["receipts"]
        assert place["left"] in ([], sorted(place["ids"]))
        assert first == second
        assert sorted(first["documents"]) == sorted(place["ids"])
        assert place["kept"] == place["added"]  # what came after it was done stays
    assert sum(place["counted"] == 0 for place in places) > number / 2  # the others ended with fewer calls
    assert {bool(place["left"]) for place in places if place["counted"] == 0} == {True, False}
