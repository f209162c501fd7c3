"""A writer is killed in the middle of its work, again and again, on one file.

After each kill what was acknowledged is there whole, and what was not acknowledged is there whole or not at
all; of what was forgotten or replaced not a byte is left. The steps of a writer follow from its seed, so the
number of its acknowledgements says which step it may have been in. It is SIGKILL that is tested, not the loss
of power.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from faults.checking import (
    bare,
    check_content,
    check_file,
    check_forgotten,
    check_searches,
    check_that_all_can_be_forgotten,
    exported,
    shape,
)
from faults.documents import Edition, Step, acknowledgement, contribution, identity, opened, steps
from waylore.store.sqlite.store import SqliteStore

KILLS = 100
SOONEST, LATEST = 0.005, 0.120  # seconds after a writer has opened the file
KILLS_WHILE_OPENING = 12
OPENING = 0.012  # seconds in which a writer makes its file
DOCUMENTS = 60
SAMPLE = 3  # documents that a round did not touch
WITNESSED = 10  # rounds in a row with, and then without, another connection that keeps the WAL alive
TESTS = Path(__file__).parents[1]

Writer = subprocess.Popen[str]


@pytest.mark.timeout(300)
def test_kills_lose_nothing_acknowledged_and_leave_nothing_in_part(tmp_path: Path) -> None:
    path = tmp_path / "waylore.db"
    chosen = Random(20)
    held: dict[int, Edition] = {}
    writer = _started(path, tmp_path, 0)
    try:
        for round_ in range(KILLS):
            with _witness(path) if round_ // WITNESSED % 2 else nullcontext():
                _kill_at_work(writer, chosen.uniform(SOONEST, LATEST))
                writer = _started(path, tmp_path, round_ + 1)  # imports while we check
                _check_round(path, _taken(tmp_path, round_), held, chosen)
    finally:
        _kill(writer)
    check_searches(path, held.values())
    check_that_all_can_be_forgotten(path, held)
    check_file(path)


@pytest.mark.timeout(300)
def test_a_kill_while_a_file_is_made_leaves_one_that_opens(tmp_path: Path) -> None:
    chosen = Random(21)
    for round_ in range(KILLS_WHILE_OPENING):
        path = tmp_path / f"{round_}.db"
        writer = _started(path, tmp_path, round_)
        _let_write(writer)
        time.sleep(chosen.uniform(0, OPENING))
        _kill(writer)
        with opened(path) as waylore:
            assert waylore.stats().documents <= 1 + len(_acknowledged(tmp_path, round_))
        check_file(path)


# -- writers -------------------------------------------------------------------------------------------


def _started(path: Path, folder: Path, seed: int) -> Writer:
    told = [str(path), str(folder / f"{seed}.log"), str(seed), str(DOCUMENTS)]
    return subprocess.Popen(
        [sys.executable, "-m", "faults.crash_writer", *told],
        cwd=TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _let_write(writer: Writer) -> None:
    assert writer.stdin
    assert writer.stdout
    assert writer.stdout.readline() == "ready\n"
    writer.stdin.write("write\n")
    writer.stdin.flush()


def _kill_at_work(writer: Writer, after: float) -> None:
    _let_write(writer)
    assert writer.stdout
    assert writer.stdout.readline() == "open\n"
    time.sleep(after)
    _kill(writer)


def _kill(writer: Writer) -> None:
    """Kill a writer, which must not have ended by itself."""
    if writer.returncode is None:
        os.killpg(writer.pid, signal.SIGKILL)
        writer.communicate()
    assert writer.returncode == -signal.SIGKILL


@contextmanager
def _witness(path: Path) -> Iterator[None]:
    """Another connection, so that the last writer's end is not the WAL's."""
    db = bare(path)
    db.execute("SELECT count(*) FROM documents").fetchall()
    try:
        yield
    finally:
        db.close()


# -- what a round must have left -----------------------------------------------------------------------


def _acknowledged(folder: Path, seed: int) -> list[str]:
    log = folder / f"{seed}.log"
    return log.read_text().splitlines(keepends=True) if log.exists() else []


def _taken(folder: Path, seed: int) -> list[Step]:
    """The steps that were acknowledged, and the one that may have been begun."""
    lines = _acknowledged(folder, seed)
    taken = list(islice(steps(seed, range(DOCUMENTS)), len(lines) + 1))
    assert lines == [acknowledgement(step) for step in taken[:-1]]
    return taken


def _check_round(path: Path, taken: list[Step], held: dict[int, Edition], chosen: Random) -> None:
    check_file(path)
    gone = _follow(path, taken, held)
    check_content(path, held)
    touched = {number for number, _ in taken}
    others = [number for number in held if number not in touched]
    looked_at = touched.intersection(held).union(chosen.sample(others, min(SAMPLE, len(others))))
    check_searches(path, [held[number] for number in sorted(looked_at)], gone)
    check_forgotten(path, gone)


def _follow(path: Path, taken: list[Step], held: dict[int, Edition]) -> list[Edition]:
    """Bring `held` to what must be there now; return what must not be there any more."""
    *done, (number, wanted) = taken
    was = {n: held[n] for n, _ in taken if n in held}
    for step in done:
        _hold(held, step)
    if _is_there(path, number, wanted):
        _hold(held, (number, wanted))
    seen = {*was.values(), *(edition for _, edition in taken if edition)}
    return [edition for edition in seen if held.get(edition.number) != edition]


def _hold(held: dict[int, Edition], step: Step) -> None:
    number, wanted = step
    if wanted is None:
        held.pop(number, None)
    else:
        held[number] = wanted


def _is_there(path: Path, number: int, wanted: Edition | None) -> bool:
    """Whether the unacknowledged step was done; if it was done in part, the check that follows fails."""
    store = SqliteStore(path)
    try:
        found = exported(store).get(identity(number))
    finally:
        store.close()
    if found is None or wanted is None:
        return found is None and wanted is None
    return shape(found) == shape(contribution(wanted))
