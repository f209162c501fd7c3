"""A store's disk fills up, and is cleared again.

Two disks fill up: a small tmpfs (where mounting is permitted), which is really full, and a limit on the size of
files, which every system has. Either way the writer is told, what was acknowledged stays readable, nothing is
half written, and the same open collection writes on once there is room.
"""

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from faults.checking import check_content, check_file, check_searches, check_that_all_can_be_forgotten
from faults.documents import Edition, identity, opened, take
from waylore.engine.waylore import Waylore
from waylore.errors import StoreError, StoreUnavailable

MEBIBYTE = 1 << 20
SIZE = 8 * MEBIBYTE
BALLAST = 4 * MEBIBYTE
LARGEST_FILE = 4 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Disk:
    """A folder that fills up, and how to make room in it."""

    folder: Path
    refusal: type[StoreError]
    clear: Callable[[], None]


@pytest.fixture(params=["tmpfs", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    yield from (_tmpfs if request.param == "tmpfs" else _limit)(tmp_path)


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Disk]:
    yield from _tmpfs(tmp_path)


@pytest.mark.timeout(300)
def test_a_full_disk_is_reported_and_costs_nothing(disk: Disk) -> None:
    path = disk.folder / "waylore.db"
    with opened(path) as waylore:
        held, failed = _fill(waylore, disk.refusal)
        _check_open(waylore, held)
        with pytest.raises(disk.refusal, match="disk"):
            take(waylore, (failed.number, failed))
        _check_open(waylore, held)
        disk.clear()
        take(waylore, (failed.number, failed))
        held[failed.number] = failed
        _check_open(waylore, held)
    check_file(path)
    check_content(path, held)
    check_searches(path, held.values())
    check_that_all_can_be_forgotten(path, held)


@pytest.mark.timeout(300)
def test_a_disk_without_any_room_refuses_to_open_a_file_until_it_has_some(tmpfs: Disk) -> None:
    path = tmpfs.folder / "waylore.db"
    for documents in range(3):
        rest = _use_up(tmpfs.folder)
        with pytest.raises(StoreError, match="disk"):
            opened(path)
        rest.unlink()
        with opened(path) as waylore:
            assert waylore.stats().documents == documents
            take(waylore, (documents, Edition(documents, 1)))
    check_file(path)
    check_content(path, {number: Edition(number, 1) for number in range(3)})


def _use_up(folder: Path) -> Path:
    rest = folder / "rest"
    with rest.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return rest


def _fill(waylore: Waylore, refusal: type[StoreError]) -> tuple[dict[int, Edition], Edition]:
    """Write until the disk is full; return what was acknowledged, and what was refused."""
    held: dict[int, Edition] = {}
    with pytest.raises(refusal, match="disk") as refused:
        _write_on(waylore, held)
    assert refused.value.__cause__ is not None
    return held, Edition(len(held), 1)


def _write_on(waylore: Waylore, held: dict[int, Edition]) -> None:
    for number in count():
        take(waylore, (number, Edition(number, 1)))
        held[number] = Edition(number, 1)


def _check_open(waylore: Waylore, held: dict[int, Edition]) -> None:
    """The open collection can be read, and says what is there."""
    assert waylore.stats().documents == len(held)
    for wanted in held.values():
        assert len(waylore.get(identity(wanted.number)).passages) == len(wanted.markers)
    found = waylore.search(held[0].text, method="hybrid", count_use=False)
    assert (found.missing, len(found.hits)) == ((), 10)


def _tmpfs(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "small"
    folder.mkdir()
    told = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        subprocess.run(told, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a tmpfs may not be mounted here")
    try:
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(BALLAST))
        yield Disk(folder, StoreUnavailable, ballast.unlink)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _limit(tmp_path: Path) -> Iterator[Disk]:
    """No file of this process may grow beyond a size; Python ignores the signal, so SQLite gets an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def clear() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, hard))
    try:
        yield Disk(tmp_path, StoreError, clear)
    finally:
        clear()
