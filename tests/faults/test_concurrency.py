"""Many processes and many threads write and read one file at the same time.

None of them may get an error, and in the end all acknowledged documents are stored, complete and counted.
`sharing` has their steps. Run with `-s` to see the number of writes and searches.
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

from faults.checking import check_content, check_file, check_forget_all, check_searches
from faults.documents import EMBEDDER, NOW, Edition, make_steps, open_file
from faults.sharing import WRITERS, Report, list_numbers, read, write
from waylore.engine.waylore import Waylore
from waylore.store.sqlite.store import SqliteStore
from waylore.types.search import Filter

SECONDS = [3.0, pytest.param(20.0, marks=pytest.mark.full)]
SECONDS_OF_THREADS = 3.0
SECONDS_OF_MAKING = 0.3
READERS = 4
FILES = 20  # created by all threads at once
SHOWN = 5  # errors in a failure message
TESTS = Path(__file__).parents[1]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", SECONDS)
def test_processes_share_a_file(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "waylore.db"
    writers = [_process("writer", path, seconds, seed) for seed in range(WRITERS)]
    readers = [_process("reader", path, seconds, WRITERS + seed) for seed in range(READERS)]
    for process in (*writers, *readers):
        assert process.wait() == 0
    reports = [_read_report(path, seed) for seed in range(WRITERS + READERS)]
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
def test_many_threads_may_create_the_same_file(tmp_path: Path) -> None:
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


def test_open_waits_for_a_file_being_created(tmp_path: Path) -> None:
    """SQLite itself does not wait while it switches a file to WAL."""
    path = tmp_path / "waylore.db"
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    maker = Timer(SECONDS_OF_MAKING, other.execute, ("COMMIT",))
    maker.start()
    try:
        open_file(path).close()
    finally:
        maker.join()
        other.close()


def test_reader_finds_new_documents_at_once(tmp_path: Path) -> None:
    path = tmp_path / "waylore.db"
    with open_file(path) as reader, open_file(path) as writer:
        assert reader.search("loom").hits == ()
        for number in range(3):
            writer.add(f"loom {number}", labels=[f"team {number}"])
            mine = Filter(labels=frozenset({f"team {number}"}))
            assert len(reader.search("loom").hits) == number + 1
            assert len(reader.search("loom", where=mine).hits) == 1


def test_removed_label_grants_no_access(tmp_path: Path) -> None:
    """A store may reuse the row of a label; a reader must not keep the old one."""
    store = SqliteStore(tmp_path / "waylore.db")
    mine = Filter(labels=frozenset({"mine"}))
    with Waylore(store) as reader, Waylore.open(tmp_path / "waylore.db") as writer:
        own = writer.add("a loom", labels=["mine"])
        for _ in range(2):  # the second time a store may answer from its cache
            assert store.documents([own], where=mine).keys() == {own}
        writer.forget(own)
        secret = writer.add("a secret loom", labels=["theirs"])
        assert store.documents([secret], where=mine) == {}
        assert reader.stats().documents == 1


def _make(path: Path, together: Barrier, errors: list[Exception]) -> None:
    together.wait()
    try:
        open_file(path).close()
    except Exception as error:  # noqa: BLE001 - any error that reaches a caller is reported
        errors.append(error)


def _process(kind: str, path: Path, seconds: float, seed: int) -> subprocess.Popen[bytes]:
    arguments = [kind, str(path), str(seconds), str(seed), str(_get_report_path(path, seed))]
    return subprocess.Popen([sys.executable, "-m", "faults.sharing", *arguments], cwd=TESTS)


def _get_report_path(path: Path, seed: int) -> Path:
    return path.with_name(f"{seed}.json")


def _read_report(path: Path, seed: int) -> Report:
    return Report(**json.loads(_get_report_path(path, seed).read_text()))


def _check(path: Path, reports: list[Report], who: str) -> None:
    errors = [error for report in reports for error in report.errors]
    assert not errors, f"{len(errors)} errors reached {who}:\n" + "\n".join(errors[:SHOWN])
    writes, searches = sum(r.writes for r in reports), sum(r.searches for r in reports)
    sys.stdout.write(f"\n{who}: {writes} writes, {searches} searches\n")
    held = _get_held(reports[:WRITERS])
    check_file(path)
    check_content(path, held)
    check_searches(path, held.values())
    check_forget_all(path, held)


def _get_held(writers: Iterable[Report]) -> dict[int, Edition]:
    """Return the document that the last step of each number left."""
    taken = [islice(make_steps(seed, list_numbers(seed)), r.writes) for seed, r in enumerate(writers)]
    last = {number: wanted for own in taken for number, wanted in own}
    return {number: wanted for number, wanted in last.items() if wanted}
