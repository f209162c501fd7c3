"""A writer is killed again and again during its work on one file.

After each kill, acknowledged steps are stored completely, and the unacknowledged one completely or not at all.
Not a byte of a forgotten or replaced document is left. The seed decides the steps of a writer, so the number
of acknowledgements shows which step may have been running. The tests cover SIGKILL, not the loss of power.
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
from tools.waiting import wait_until

from faults.checking import (
    check_content,
    check_file,
    check_forget_all,
    check_forgotten,
    check_searches,
    export_all,
    open_bare,
    to_shape,
)
from faults.documents import Edition, Step, get_id, make_document, make_steps, open_file, to_line
from waylore.store.sqlite.store import SqliteStore

KILLS = [8, pytest.param(100, marks=pytest.mark.full)]
SOONEST, LATEST = 0.005, 0.120  # seconds after a writer has opened the file
KILLS_WHILE_OPENING = 12
OPENING = 0.012  # seconds in which a writer makes its file
DOCUMENTS = 60
SAMPLE = 3  # untouched documents that are checked after a round
WITNESSED = 10  # rounds in a row with, and then without, another connection that keeps the WAL alive
TESTS = Path(__file__).parents[1]

Writer = subprocess.Popen[str]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_kills_lose_no_acknowledged_step(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "waylore.db"
    chosen = Random(20)
    held: dict[int, Edition] = {}
    writer = _start(path, tmp_path, 0)
    try:
        for round_ in range(kills):
            with _hold_open(path) if round_ // WITNESSED % 2 else nullcontext():
                _kill_at_work(writer, chosen.uniform(SOONEST, LATEST), tmp_path, round_)
                writer = _start(path, tmp_path, round_ + 1)  # imports while we check
                _check_round(path, _list_steps(tmp_path, round_), held, chosen)
    finally:
        _kill(writer)
    check_searches(path, held.values())
    check_forget_all(path, held)
    check_file(path)


@pytest.mark.timeout(300)
def test_kill_during_creation_leaves_a_usable_file(tmp_path: Path) -> None:
    chosen = Random(21)
    for round_ in range(KILLS_WHILE_OPENING):
        path = tmp_path / f"{round_}.db"
        writer = _start(path, tmp_path, round_)
        _let_write(writer)
        time.sleep(chosen.uniform(0, OPENING))
        _kill(writer)
        with open_file(path) as waylore:
            assert waylore.stats().documents <= 1 + len(_read_acknowledged(tmp_path, round_))
        check_file(path)


# -- writers -------------------------------------------------------------------------------------------


def _start(path: Path, folder: Path, seed: int) -> Writer:
    arguments = [str(path), str(folder / f"{seed}.log"), str(seed), str(DOCUMENTS)]
    return subprocess.Popen(
        [sys.executable, "-m", "faults.crash_writer", *arguments],
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


def _kill_at_work(writer: Writer, after: float, folder: Path, seed: int) -> None:
    """Kill a writer some time after it opened the file; every second one not before a step was acknowledged."""
    _let_write(writer)
    assert writer.stdout
    assert writer.stdout.readline() == "open\n"
    time.sleep(after)
    if seed % 2:
        wait_until(lambda: _read_acknowledged(folder, seed))
    _kill(writer)


def _kill(writer: Writer) -> None:
    """Kill a writer, and check that it had not ended by itself."""
    if writer.returncode is None:
        os.killpg(writer.pid, signal.SIGKILL)
        writer.communicate()
    assert writer.returncode == -signal.SIGKILL


@contextmanager
def _hold_open(path: Path) -> Iterator[None]:
    """Hold another connection, so that the WAL outlives the last writer."""
    db = open_bare(path)
    db.execute("SELECT count(*) FROM documents").fetchall()
    try:
        yield
    finally:
        db.close()


# -- checks after a round -----------------------------------------------------------------------


def _read_acknowledged(folder: Path, seed: int) -> list[str]:
    log = folder / f"{seed}.log"
    return log.read_text().splitlines(keepends=True) if log.exists() else []


def _list_steps(folder: Path, seed: int) -> list[Step]:
    """Return the acknowledged steps, and the one that may have begun."""
    lines = _read_acknowledged(folder, seed)
    taken = list(islice(make_steps(seed, range(DOCUMENTS)), len(lines) + 1))
    assert lines == [to_line(step) for step in taken[:-1]]
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
    """Update `held` by the steps; return the editions that must be gone."""
    *done, (number, wanted) = taken
    was = {n: held[n] for n, _ in taken if n in held}
    for step in done:
        _hold(held, step)
    if _is_done(path, number, wanted):
        _hold(held, (number, wanted))
    seen = {*was.values(), *(edition for _, edition in taken if edition)}
    return [edition for edition in seen if held.get(edition.number) != edition]


def _hold(held: dict[int, Edition], step: Step) -> None:
    number, wanted = step
    if wanted is None:
        held.pop(number, None)
    else:
        held[number] = wanted


def _is_done(path: Path, number: int, wanted: Edition | None) -> bool:
    """Return whether the unacknowledged step was done; a half-done step fails the check that follows."""
    store = SqliteStore(path)
    try:
        found = export_all(store).get(get_id(number))
    finally:
        store.close()
    if found is None or wanted is None:
        return found is None and wanted is None
    return to_shape(found) == to_shape(make_document(wanted))
