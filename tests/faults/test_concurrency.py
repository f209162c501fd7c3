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
from threading import Barrier, Thread, Timer

import apsw
import pytest

from faults.checking import check_content, check_file, check_searches, check_that_all_can_be_forgotten
from faults.documents import EMBEDDER, NOW, Edition, opened, steps
from faults.sharing import WRITERS, Report, numbers, read, write
from waylore.engine.waylore import Waylore
from waylore.store.sqlite.store import SqliteStore
from waylore.types.search import Filter

SECONDS = 20.0
SECONDS_OF_THREADS = 3.0
SECONDS_OF_MAKING = 0.3
READERS = 4
FILES = 20  # that are made by all at once
SHOWN = 5  # errors of many
TESTS = Path(__file__).parents[1]


@pytest.mark.timeout(300)
def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "waylore.db"
    writers = [_process("writer", path, seed) for seed in range(WRITERS)]
    readers = [_process("reader", path, WRITERS + seed) for seed in range(READERS)]
    for process in (*writers, *readers):
        assert process.wait() == 0
    reports = [_reported(path, seed) for seed in range(WRITERS + READERS)]
    _check(path, reports, "processes")


@pytest.mark.timeout(300)
def test_threads_share_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "waylore.db"
    store = SqliteStore(path)
    reports = [Report() for _ in range(WRITERS + READERS)]
    until = time.monotonic() + SECONDS_OF_THREADS
    with Waylore(store, EMBEDDER, clock=lambda: NOW) as waylore:
        threads = [Thread(target=write, args=(waylore, s, until, reports[s])) for s in range(WRITERS)]
        seeds = range(WRITERS, WRITERS + READERS)
        threads += [Thread(target=read, args=(waylore, store, s, until, reports[s])) for s in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _check(path, reports, "threads")


@pytest.mark.timeout(300)
def test_many_may_make_the_same_file(tmp_path: Path) -> None:
    errors: list[Exception] = []
    for file in range(FILES):
        path = tmp_path / f"{file}.db"
        together = Barrier(WRITERS + READERS)
        threads = [Thread(target=_make, args=(path, together, errors)) for _ in range(together.parties)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check_file(path)
    assert not errors, f"{len(errors)} errors reached those who made {FILES} files: {errors[:SHOWN]}"


def test_who_opens_a_new_file_waits_for_another_who_makes_it(tmp_path: Path) -> None:
    """SQLite does not wait when it turns a file to WAL."""
    path = tmp_path / "waylore.db"
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    maker = Timer(SECONDS_OF_MAKING, other.execute, ("COMMIT",))
    maker.start()
    try:
        opened(path).close()
    finally:
        maker.join()
        other.close()


def test_a_reader_finds_at_once_what_another_wrote(tmp_path: Path) -> None:
    path = tmp_path / "waylore.db"
    with opened(path) as reader, opened(path) as writer:
        assert reader.search("loom").hits == ()
        for number in range(3):
            writer.add(f"loom {number}", labels=[f"team {number}"])
            mine = Filter(labels=frozenset({f"team {number}"}))
            assert len(reader.search("loom").hits) == number + 1
            assert len(reader.search("loom", where=mine).hits) == 1


def test_a_permission_that_is_gone_lets_nothing_through(tmp_path: Path) -> None:
    """A store may use the row of a permission again; a reader must not still have it."""
    store = SqliteStore(tmp_path / "waylore.db")
    mine = Filter(labels=frozenset({"mine"}))
    with Waylore(store) as reader, Waylore.open(tmp_path / "waylore.db") as writer:
        own = writer.add("a loom", labels=["mine"])
        for _ in range(2):  # the second time a store may answer from what it kept
            assert store.documents([own], where=mine).keys() == {own}
        writer.forget(own)
        secret = writer.add("a secret loom", labels=["theirs"])
        assert store.documents([secret], where=mine) == {}
        assert reader.stats().documents == 1


def _make(path: Path, together: Barrier, errors: list[Exception]) -> None:
    together.wait()
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
