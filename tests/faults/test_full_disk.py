"""The disk of a store fills up, and is cleared again.

There are two kinds: a small tmpfs that is really full, if mounting is permitted, and a limit on the size of
files, which every system has. In both cases the writer gets an error, acknowledged documents stay readable,
nothing is half written, and the same open collection can write again once there is room.
"""

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from faults.checking import check_content, check_file, check_forget_all, check_searches
from faults.documents import Edition, get_id, open_file, run_step
from waylore.engine.waylore import Waylore
from waylore.errors import StoreError, StoreUnavailable

MEBIBYTE = 1 << 20
SIZE = 8 * MEBIBYTE
BALLAST = 4 * MEBIBYTE
LARGEST_FILE = 4 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Disk:
    """A folder on a disk that can fill up, and a function that makes room."""

    folder: Path
    error: type[StoreError]
    clear: Callable[[], None]


@pytest.fixture(params=["tmpfs", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    yield from (_tmpfs if request.param == "tmpfs" else _limit)(tmp_path)


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Disk]:
    yield from _tmpfs(tmp_path)


@pytest.mark.timeout(300)
def test_full_disk_is_reported_and_loses_nothing(disk: Disk) -> None:
    path = disk.folder / "waylore.db"
    with open_file(path) as waylore:
        held, failed = _fill(waylore, disk.error)
        _check_open(waylore, held)
        with pytest.raises(disk.error, match="disk"):
            run_step(waylore, (failed.number, failed))
        _check_open(waylore, held)
        disk.clear()
        run_step(waylore, (failed.number, failed))
        held[failed.number] = failed
        _check_open(waylore, held)
    check_file(path)
    check_content(path, held)
    check_searches(path, held.values())
    check_forget_all(path, held)


@pytest.mark.timeout(300)
def test_file_opens_once_the_disk_has_room(tmpfs: Disk) -> None:
    path = tmpfs.folder / "waylore.db"
    for documents in range(3):
        rest = _use_up(tmpfs.folder)
        with pytest.raises(StoreError, match="disk"):
            open_file(path)
        rest.unlink()
        with open_file(path) as waylore:
            assert waylore.stats().documents == documents
            run_step(waylore, (documents, Edition(documents, 1)))
    check_file(path)
    check_content(path, {number: Edition(number, 1) for number in range(3)})


def _use_up(folder: Path) -> Path:
    rest = folder / "rest"
    with rest.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return rest


def _fill(waylore: Waylore, error: type[StoreError]) -> tuple[dict[int, Edition], Edition]:
    """Write until the disk is full; return the acknowledged documents and the failed one."""
    held: dict[int, Edition] = {}
    with pytest.raises(error, match="disk") as raised:
        _write_on(waylore, held)
    assert raised.value.__cause__ is not None
    return held, Edition(len(held), 1)


def _write_on(waylore: Waylore, held: dict[int, Edition]) -> None:
    for number in count():
        run_step(waylore, (number, Edition(number, 1)))
        held[number] = Edition(number, 1)


def _check_open(waylore: Waylore, held: dict[int, Edition]) -> None:
    """Check that the open collection is readable and complete."""
    assert waylore.stats().documents == len(held)
    for wanted in held.values():
        assert len(waylore.get(get_id(wanted.number)).passages) == len(wanted.markers)
    found = waylore.search(held[0].text, method="hybrid", record_use=False)
    assert (found.missing, len(found.hits)) == ((), 10)


def _tmpfs(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a tmpfs may not be mounted here")
    try:
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(BALLAST))
        yield Disk(folder, StoreUnavailable, ballast.unlink)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _limit(tmp_path: Path) -> Iterator[Disk]:
    """Limit the size of this process's files; Python ignores the signal, so SQLite gets an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def clear() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, hard))
    try:
        yield Disk(tmp_path, StoreError, clear)
    finally:
        clear()
