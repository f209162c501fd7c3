"""Many processes, and many threads, write and read one file at the same time.

No error may reach any of them, and in the end everything acknowledged is there, whole and counted. `sharing`
is what each of them does. Run with `-s` to see how much was written and searched.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from threading import Thread

import pytest

from faults.checking import check_content, check_file, check_searches, check_that_all_can_be_forgotten
from faults.documents import EMBEDDER, NOW, Edition, opened, steps
from faults.sharing import WRITERS, Report, numbers, read, write
from weft.engine import Weft
from weft.store import SqliteStore

SECONDS = 20.0
SECONDS_OF_THREADS = 3.0
READERS = 4
SHOWN = 5  # errors of many
TESTS = Path(__file__).parents[1]


@pytest.mark.timeout(300)
def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    writers = [_process("writer", path, seed) for seed in range(WRITERS)]
    readers = [_process("reader", path, WRITERS + seed) for seed in range(READERS)]
    for process in (*writers, *readers):
        assert process.wait() == 0
    reports = [_reported(path, seed) for seed in range(WRITERS + READERS)]
    _check(path, reports, "processes")


@pytest.mark.timeout(300)
def test_threads_share_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    store = SqliteStore(path)
    reports = [Report() for _ in range(WRITERS + READERS)]
    until = time.monotonic() + SECONDS_OF_THREADS
    with Weft(store, EMBEDDER, clock=lambda: NOW) as weft:
        threads = [Thread(target=write, args=(weft, s, until, reports[s])) for s in range(WRITERS)]
        seeds = range(WRITERS, WRITERS + READERS)
        threads += [Thread(target=read, args=(weft, store, s, until, reports[s])) for s in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _check(path, reports, "threads")


def test_many_may_make_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    errors: list[Exception] = []
    threads = [Thread(target=_open_and_close, args=(path, errors)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    check_file(path)


def _open_and_close(path: Path, errors: list[Exception]) -> None:
    try:
        opened(path).close()
    except Exception as error:  # noqa: BLE001 - whatever reaches a caller is what we look for
        errors.append(error)


def _process(kind: str, path: Path, seed: int) -> subprocess.Popen[bytes]:
    told = [kind, str(path), str(SECONDS), str(seed), str(_report_of(path, seed))]
    return subprocess.Popen([sys.executable, "-m", "faults.sharing", *told], cwd=TESTS)


def _report_of(path: Path, seed: int) -> Path:
    return path.with_name(f"{seed}.json")


def _reported(path: Path, seed: int) -> Report:
    return Report(**json.loads(_report_of(path, seed).read_text()))


def _check(path: Path, reports: list[Report], who: str) -> None:
    errors = [error for report in reports for error in report.errors]
    assert not errors, f"{len(errors)} errors reached {who}:\n" + "\n".join(errors[:SHOWN])
    writes, searches = sum(r.writes for r in reports), sum(r.searches for r in reports)
    sys.stdout.write(f"\n{who}: {writes} writes, {searches} searches\n")
    held = _held(reports[:WRITERS])
    check_file(path)
    check_content(path, held)
    check_searches(path, held.values())
    check_that_all_can_be_forgotten(path, held)


def _held(writers: Iterable[Report]) -> dict[int, Edition]:
    """What the last step of each document left there."""
    taken = [islice(steps(seed, numbers(seed)), r.writes) for seed, r in enumerate(writers)]
    last = {number: wanted for own in taken for number, wanted in own}
    return {number: wanted for number, wanted in last.items() if wanted}
