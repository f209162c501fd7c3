"""A new file can be read by its owner alone; a file that exists keeps its mode."""

import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from waylore import Waylore
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.providers.disk_cache import ANSWERS, VECTORS, DiskCache
from waylore.service.registry.sqlite import open_sqlite
from waylore.service.spool import open_spool, save_upload
from waylore.settings.sections import HttpSettings


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Set the umask of most systems, under which new files can be read by everyone."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def fill_store(path: Path) -> Waylore:
    memory = Waylore.open(path)
    memory.add("Ada sails.")
    return memory


def export(path: Path) -> None:
    with fill_store(path.with_name("exported.waylore")) as memory:
        memory.export(path)


OPENERS: dict[str, Callable[[Path], object]] = {
    "store": fill_store,
    "catalogue": SqliteCatalogue,
    "registry": open_sqlite,
    "export": export,
}


def read_modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("kind", OPENERS)
def test_new_file_and_its_log_are_private(tmp_path: Path, kind: str) -> None:
    kept_open = OPENERS[kind](tmp_path / "new")
    modes = read_modes(tmp_path)
    assert "new" in modes
    assert kind in ("export", "catalogue") or {"new-wal", "new-shm"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    del kept_open


@pytest.mark.parametrize("kind", OPENERS)
def test_existing_file_keeps_its_mode(tmp_path: Path, kind: str) -> None:
    (tmp_path / "shared").touch()
    (tmp_path / "shared").chmod(0o640)
    kept_open = OPENERS[kind](tmp_path / "shared")
    modes = read_modes(tmp_path)
    assert {mode for name, mode in modes.items() if name.startswith("shared")} == {0o640}
    del kept_open


def test_caches_are_private(tmp_path: Path) -> None:
    caches = [DiskCache(table, tmp_path) for table in (VECTORS, ANSWERS)]
    caches[0].write({b"key": b"value"})
    assert set(read_modes(tmp_path).values()) == {0o600}
    for cache in caches:
        cache.close()


async def send(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.anyio
async def test_uploads_are_private(tmp_path: Path) -> None:
    http = HttpSettings(upload_dir=tmp_path / "spool")
    path, _ = await save_upload(open_spool(http), send(b"a", b"b"), job="j", suffix=".md", declared=2, http=http)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_missing_folder_is_reported_as_before(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="check that its folder exists"):
        Waylore.open(tmp_path / "missing" / "a.waylore")
