"""Damage a store in a file, or its log: `doctor` notices it, and every document whose pages are whole is saved."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from store.test_checksums import DAMAGES, PAGE, find_problems, flip, make_original, read_answers, swap
from surfaces.commands import process, run
from waylore import Waylore
from waylore.errors import ConfigError, DamagedStore, NotFound
from waylore.service.salvage import salvage
from waylore.store.sqlite import file
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages
from waylore.surfaces.checks.run import run_checks
from waylore.surfaces.checks.store import check_store

LOG_DAMAGES = 20
DOCUMENTS = 200
WRITES = 20
KILLED_WRITER = f"""
import os, sys
from waylore import Waylore
memory = Waylore.open(sys.argv[1])
for number in range({WRITES}):
    memory.add(f"Person {{number}} lives in Town {{number % 7}}. " + "word " * 200, uri=f"{{number}}.md")
os.kill(os.getpid(), 9)
"""


def sample(count: int) -> list[Any]:
    """Return the numbers of damages, an eighth of them for CI."""
    return [number if number % 8 == 1 else pytest.param(number, marks=pytest.mark.full) for number in range(count)]


def cut(content: bytearray, number: int) -> None:
    """Cut a part off the end."""
    del content[random.Random(f"cut {number}").randrange(PAGE, len(content)) :]


def read_digests(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    with closing(SqliteStore(path)) as store:
        return {indexed.document.id: indexed.digest for indexed in store.export()}


def count_rows(path: Path) -> dict[int, int]:
    """Return how many documents may need each page of a file, as SQLite describes the pages."""
    all_documents = 10**6
    with closing(apsw.Connection(str(path))) as db:
        pages: list[tuple[str, int, str, int]] = list(db.execute("SELECT name, pageno, pagetype, ncell FROM dbstat"))
    needed = {}
    for table, number, kind, cells in pages:
        if table in ("documents", "passages", "packs"):
            needed[number] = {"leaf": cells, "overflow": 1, "internal": 0}[kind]
        elif table in ("entities", "profiles"):
            needed[number] = all_documents
    return needed


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "a.waylore"
    path.write_bytes(make_original().content)
    return path


@pytest.mark.parametrize("number", sample(DAMAGES))
@pytest.mark.parametrize("damage", [flip, swap, cut])
def test_whole_documents_of_a_damaged_file_are_saved(
    tmp_path: Path, original: Path, damage: Callable[[bytearray, int], None], number: int
) -> None:
    before = original.read_bytes()
    content = bytearray(before)
    damage(content, number)
    path, new = tmp_path / "a.waylore", tmp_path / "new.waylore"
    path.write_bytes(content)
    assert find_problems(path)
    with suppress(DamagedStore):
        assert read_answers(path) == make_original().answers
    path.write_bytes(content)
    found = salvage(str(path), new)
    assert path.read_bytes() == content
    expected, saved = read_digests(original), read_digests(new)
    assert saved.items() <= expected.items()
    assert {each.id for each in found.damaged}.isdisjoint(saved)
    pages = range(0, len(before), PAGE)
    damaged = [at // PAGE + 1 for at in pages if content[at : at + PAGE] != before[at : at + PAGE]]
    needed = count_rows(original)
    assert len(expected) - len(saved) <= sum(needed.get(page, 0) for page in damaged)


# -- the log -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file whose writes are all in the log, because its writer was killed."""
    path = tmp_path_factory.mktemp("killed") / "a.waylore"
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
    assert path.with_name("a.waylore-wal").stat().st_size > 100 * PAGE
    return path


def copy_with_log(path: Path, to: Path, log: bytes | bytearray) -> Path:
    shutil.copy(path, to / "a.waylore")
    (to / "a.waylore-wal").write_bytes(log)
    return to / "a.waylore"


@pytest.mark.parametrize("number", sample(LOG_DAMAGES))
def test_damaged_log_is_noticed_and_its_writes_are_saved(tmp_path: Path, killed: Path, number: int) -> None:
    log = bytearray(killed.with_name("a.waylore-wal").read_bytes())
    chosen = random.Random(number)
    log[chosen.randrange(len(log) if number > 3 else 32)] ^= 1 << chosen.randrange(8)
    path = copy_with_log(killed, tmp_path, log)
    lost = check_pages(str(path)).lost_writes
    assert lost
    [finding] = [finding for finding in check_store(str(path)) if finding.subject == "pages"]
    assert finding.state == ("wrong" if lost > 1 else "note")
    assert "`waylore doctor --repair NEW`" in finding.remedy
    found = salvage(str(path), tmp_path / "new.waylore")
    assert found.documents == {"default": WRITES}
    if lost > 1:
        with pytest.raises(DamagedStore, match=f"{lost} writes in its log are lost"):
            Waylore.open(path)
        assert (tmp_path / "a.waylore-wal").read_bytes() == log


def test_log_of_a_killed_writer_is_no_damage(tmp_path: Path, killed: Path) -> None:
    log = killed.with_name("a.waylore-wal").read_bytes()
    for name, end in {"whole": len(log), "cut in a page": len(log) - 1, "cut in a write": len(log) - 5 * PAGE}.items():
        (tmp_path / name).mkdir()
        path = copy_with_log(killed, tmp_path / name, log[:end])
        assert check_pages(str(path)).lost_writes == (name == "cut in a page")
        with Waylore.open(path) as memory:
            assert memory.stats().documents == WRITES - (name != "whole")


# -- the commands --------------------------------------------------------------------------------------


def damage_pack(path: Path) -> None:
    """Flip a bit of a page with packs of passages."""
    with closing(apsw.Connection(str(path))) as db:
        page = db.execute("SELECT pageno FROM dbstat WHERE name = 'packs' AND pagetype = 'leaf' LIMIT 1").get
    content = bytearray(path.read_bytes())
    content[page * PAGE - 500] ^= 1
    path.write_bytes(content)


def test_commands_save_what_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Waylore.open("memory.waylore") as memory:
        for number in range(DOCUMENTS):
            memory.add(f"Person {number} lives in Town {number % 7}.", uri=f"{number}.md")
    damage_pack(tmp_path / "memory.waylore")
    done = process(tmp_path, "doctor", "--repair", "new.waylore", "--json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    lost = {each["uri"] for each in result["damaged"]}
    assert 0 < len(lost) < DOCUMENTS
    assert result["documents"] == {"default": DOCUMENTS - len(lost)}
    done = process(tmp_path, "export", "all.jsonl", "--salvage", "--json")
    assert (done.returncode, set(json.loads(done.stdout)["damaged"])) == (1, lost)
    with Waylore.open("new.waylore") as memory:
        assert {document.uri for document in memory.documents(limit=DOCUMENTS)}.isdisjoint(lost)
        assert list(memory.export_lines())[1:] == (tmp_path / "all.jsonl").read_text().splitlines(keepends=True)[1:]
    done = process(tmp_path, "doctor", "--repair", "other.waylore")
    assert f"other.waylore: default ({DOCUMENTS - len(lost)} documents)" in done.stdout
    assert f"✗ damaged: {min(lost)} in default" in done.stdout
    monkeypatch.setenv("WAYLORE_EMBEDDING_PROVIDER", "hashing")
    run("reembed", "--store", "new.waylore")
    assert "No problems found" in run("doctor", "--deep", "--store", "new.waylore")


def test_deep_check_compares_documents_and_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Waylore.open("memory.waylore") as memory:
        memory.add("Mara leads Platform.", uri="mara.md")
    assert [f.message for f in run_checks(True) if f.subject == "content"] == [
        "every document matches its digest, and indexes and counts agree with the documents"
    ]
    with closing(file.connect("memory.waylore", busy_seconds=1)) as db:
        file.prepare(db, busy_seconds=1)
        db.execute("UPDATE passages SET title = 'Forged'; DELETE FROM mentions")
    wrong = [finding.message for finding in run_checks(True) if finding.state == "wrong"]
    assert "mara.md is not what was written" in wrong
    assert len(wrong) > 1


def test_nothing_is_overwritten(tmp_path: Path, original: Path) -> None:
    (tmp_path / "new.waylore").write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        salvage(str(original), tmp_path / "new.waylore")
    with pytest.raises(NotFound, match="no store at"):
        salvage(str(tmp_path / "typo.waylore"), tmp_path / "other.waylore")
    (tmp_path / "empty.waylore").touch()
    with pytest.raises(DamagedStore, match="no page that can be read"):
        salvage(str(tmp_path / "empty.waylore"), tmp_path / "other.waylore")
