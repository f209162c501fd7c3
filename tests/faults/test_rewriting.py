"""A process is killed while it rewrites an old file with checksums, and a disk is too full for it."""

import shutil
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tools.faults import measure_seconds, mount_small_disk, start_and_kill

from faults.checking import export_all
from faults.documents import Edition, make_document
from waylore.store.sqlite.pages import checkpoint
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument

DOCUMENTS = 150
KILLS = [5, pytest.param(16, marks=pytest.mark.full)]
OPEN = """
import sys
from waylore.store.sqlite.store import SqliteStore

print("begun", flush=True)
SqliteStore(sys.argv[1]).close()
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file without checksums: one in which another connection created the first page."""
    path = tmp_path_factory.mktemp("old") / "old.waylore"
    with closing(apsw.Connection(str(path))) as other:
        other.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        other.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; SELECT * FROM sqlite_schema").fetchall()
        with closing(SqliteStore(path)) as store:
            documents = [make_document(Edition(number, 1)) for number in range(DOCUMENTS)]
            store.write(documents, author=OWNER, model=None)
    assert checkpoint(str(path), truncate_log=True)
    assert not check_pages(str(path)).has_checksums
    return path


def read_content(path: Path) -> dict[str, IndexedDocument]:
    with closing(SqliteStore(path)) as store:
        assert store.lexical("n7e1p0", top_k=1)
        return export_all(store)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_killed_rewrite_leaves_a_file_that_answers(old: Path, tmp_path: Path, kills: int) -> None:
    path = tmp_path / "a.waylore"
    shutil.copy(old, path)
    command = [sys.executable, "-c", OPEN, str(path)]
    whole = measure_seconds(command)
    assert check_pages(str(path)).has_checksums
    expected = read_content(path)
    finished = []
    for number in range(kills):
        for file in tmp_path.glob("a.waylore*"):
            file.unlink()
        shutil.copy(old, path)
        finished.append(start_and_kill(command, tmp_path, whole * number / kills))
        assert check_pages(str(path)).damaged == ()
        assert read_content(path) == expected
        checked = check_pages(str(path))
        assert (checked.has_checksums, checked.damaged) == (True, ())
    assert not all(finished)


def test_full_disk_leaves_a_file_that_answers(old: Path, tmp_path: Path) -> None:
    shutil.copy(old, tmp_path / "a.waylore")
    expected = read_content(tmp_path / "a.waylore")
    with mount_small_disk(old.stat().st_size + (1 << 20)) as disk:
        path = disk.folder / "a.waylore"
        shutil.copy(old, path)
        assert read_content(path) == expected
        assert not check_pages(str(path)).has_checksums
