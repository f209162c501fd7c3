"""Every page of a file has a checksum: damage is an error, and old files get checksums."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import apsw
import pytest

from legacy.keepsakes import check_answers, read_kept
from waylore.cells.open import open_catalogue
from waylore.deadline import Deadline, is_over
from waylore.engine.waylore import Waylore
from waylore.errors import DamagedStore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.service.registry.open import open_registry
from waylore.store.sqlite import file, pages, verify, vfs
from waylore.store.sqlite.store import SqliteStore
from waylore.surfaces.checks.findings import RESTORE, Finding
from waylore.surfaces.checks.run import run_checks
from waylore.surfaces.checks.store import check_store
from waylore.testing.world import MODEL, QUEEN, WORLD, page
from waylore.types.author import OWNER

PAGE = 8192
Damage = Callable[[bytearray, int], None]
DAMAGES = 28  # of each kind
DOCUMENTS = 200
NOW = datetime(2026, 5, 17, tzinfo=UTC)
EMBEDDER = HashingEmbedder(64, quiet=True)
QUESTIONS = (
    "Where does Person 5 live?",
    "Who lives in Town 3?",
    "Whom does Person 8 know?",
    "word12 word99",
    "Person 190 and Person 7",
)


def open_memory(path: Path) -> Waylore:
    return Waylore.open(path, embedder=EMBEDDER, clock=lambda: NOW)


def read_answers(path: Path) -> list[object]:
    """Return the hits of five searches, and the export."""
    with open_memory(path) as memory:
        found: list[object] = [memory.search(q, record_use=False).hits for q in QUESTIONS]
    with closing(SqliteStore(path)) as store:
        return [*found, *map(repr, store.export())]


@dataclass(frozen=True, slots=True)
class Original:
    """The bytes of an undamaged file, and its answers."""

    content: bytes
    answers: list[object]


@cache
def make_original() -> Original:
    """Make a file once for all damages."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.waylore"
        with open_memory(path) as memory:
            for i in range(DOCUMENTS):
                person, others = f"Person {i}", " ".join(f"word{i * j % 997}" for j in range(150))
                facts = [(person, "lives in", f"Town {i % 17}"), (person, "knows", f"Person {i * 7 % DOCUMENTS}")]
                memory.add(f"{person} lives in Town {i % 17}. {others}", facts=facts)
        return Original(path.read_bytes(), read_answers(path))


def flip(content: bytearray, number: int) -> None:
    """Flip one bit: first in the header of the file, then elsewhere in page 1, then anywhere."""
    chosen = Random(f"flip {number}")
    at = chosen.randrange(len(content) if number > 5 else PAGE if number > 2 else 100)
    content[at] ^= 1 << chosen.randrange(8)


def swap(content: bytearray, number: int) -> None:
    """Swap two pages, one of which is page 1 at first."""
    chosen = Random(f"swap {number}")
    first, second = chosen.sample(range(len(content) // PAGE), 2)
    one, other = (slice(at * PAGE, (at + 1) * PAGE) for at in (0 if number < 3 else first, second))
    content[one], content[other] = content[other], content[one]


def find_problems(path: Path) -> list[Finding]:
    return [finding for finding in check_store(str(path)) if finding.state == "wrong"]


# -- damage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(DAMAGES))
@pytest.mark.parametrize("damage", [flip, swap])
def test_damaged_file_gives_no_wrong_answer(tmp_path: Path, damage: Damage, number: int) -> None:
    original = make_original()
    content = bytearray(original.content)
    damage(content, number)
    assert content != original.content
    path = tmp_path / "a.waylore"
    path.write_bytes(content)
    [problem] = find_problems(path)
    assert "damaged" in problem.message
    assert problem.remedy == RESTORE
    with suppress(DamagedStore):
        assert read_answers(path) == original.answers  # nothing was read from the damaged pages


@pytest.mark.parametrize("number", [1, 2, 7, 100])
def test_zeros_are_damage(tmp_path: Path, number: int) -> None:
    content = bytearray(make_original().content)
    content[(number - 1) * PAGE : number * PAGE] = bytes(PAGE)
    path = tmp_path / "a.waylore"
    path.write_bytes(content)
    assert find_problems(path)
    with pytest.raises(DamagedStore, match=rf"{path} is damaged \(page {number} .*\): restore a backup"):
        compact(path)


def compact(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store.compact()


@pytest.mark.parametrize("length", [512, 4096, 16_384, 32_768, 7])
def test_damaged_length_of_pages_is_noticed(tmp_path: Path, length: int) -> None:
    content = bytearray(make_original().content)
    content[16:18] = length.to_bytes(2, "big")
    path = tmp_path / "a.waylore"
    path.write_bytes(content)
    with pytest.raises(DamagedStore, match="page 1 "):
        SqliteStore(path)


@pytest.mark.parametrize("lost", [1, PAGE // 2, PAGE, 5 * PAGE])
def test_cut_file_is_damaged(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "a.waylore"
    path.write_bytes(make_original().content[:-lost])
    assert find_problems(path)


def test_doctor_lists_damaged_pages(tmp_path: Path) -> None:
    content = bytearray(make_original().content)
    for number in range(50, 70):
        content[number * PAGE - 2_000] ^= 4
    path = tmp_path / "a.waylore"
    path.write_bytes(content)
    [problem] = find_problems(path)
    assert problem.message == f"{path} has damaged pages: 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, …"


def test_immutable_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.waylore"
    content = bytearray(make_original().content)
    content[-PAGE // 2] ^= 1
    path.write_bytes(content)
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(vfs.open_database(f"{path.as_uri()}?immutable=1", flags)) as db:
        assert pages.find_damaged(db) == (len(content) // PAGE,)


def test_long_values_are_checked(tmp_path: Path) -> None:
    """SQLite would read only the parts of their pages that it needs, if it were allowed to."""
    path = tmp_path / "a.db"
    with closing(file.open_file(str(path))) as db:
        file.configure_file(db, 1)
        db.execute("CREATE TABLE texts (content); INSERT INTO texts VALUES (zeroblob(200000))")
    content = bytearray(path.read_bytes())
    content[10 * PAGE + 1_000] ^= 1
    path.write_bytes(content)
    with closing(file.open_file(str(path))) as db, pytest.raises(apsw.CorruptError, match="page 11 "):
        db.execute("SELECT content FROM texts").fetchall()


def test_files_are_not_mapped_into_memory(tmp_path: Path) -> None:
    """Mapped pages would be read without a look at their checksums."""
    with closing(file.connect(str(tmp_path / "a.waylore"), busy_seconds=1)) as db:
        file.prepare(db, busy_seconds=1)
        assert not db.pragma("mmap_size")
        db.pragma("mmap_size", 1 << 30)
        assert not db.pragma("mmap_size")


# -- writing -------------------------------------------------------------------------------------------

WRITE_AND_FORGET = """
import sys
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import MODEL, page
from waylore.types.author import OWNER

store = SqliteStore(sys.argv[1])
for i in range(40):
    new = [page(f"their page {i} {j} " + "loom " * 400) for j in range(5)]
    store.write(new, author=OWNER, model=MODEL)
    store.forget([each.document.id for each in new[i % 4 :]], author=OWNER)
    if i % 16 == 9:
        store.compact()
store.close()
"""


@pytest.mark.timeout(300)
def test_every_page_that_two_processes_write_has_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.waylore"
    with closing(SqliteStore(path)) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        other = subprocess.Popen([sys.executable, "-c", WRITE_AND_FORGET, str(path)])
        rounds = 0
        while other.poll() is None or rounds < 20:
            rounds += 1
            mine = [page(f"my page {rounds} {j} " + "mill " * 900) for j in range(4)]
            store.write(mine, author=OWNER, model=MODEL)
            store.forget([each.document.id for each in mine[rounds % 3 :]], author=OWNER)
            checked = verify.check_pages(str(path))
            assert (checked.has_checksums, checked.damaged) == (True, ())
        assert other.returncode == 0
        store.compact()
    checked = verify.check_pages(str(path))
    assert (checked.has_checksums, checked.damaged) == (True, ())
    assert checked.size == path.stat().st_size
    assert [f.message for f in check_store(str(path)) if f.subject == "pages"] == ["every page has its checksum"]


def test_registry_and_catalogue_have_checksums(tmp_path: Path) -> None:
    for name, open_ in (("registry", open_registry), ("catalogue", open_catalogue)):
        path = tmp_path / name
        if name == "catalogue":
            path.write_bytes(read_kept("catalogue"))
        open_(str(path)).close()
        with closing(file.open_to_read(str(path))) as db:
            db.pragma("schema_version")
            assert vfs.has_checksums(db)
            assert pages.find_damaged(db) == ()


# -- files without checksums ---------------------------------------------------------------------------


@contextmanager
def use_file(path: Path) -> Iterator[apsw.Connection]:
    """Hold a file open in another connection; a new file has no checksums."""
    with closing(apsw.Connection(str(path))) as other:
        other.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        other.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; SELECT * FROM sqlite_schema").fetchall()
        yield other


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a store without checksums."""
    path = tmp_path / "old.waylore"
    with use_file(path), closing(SqliteStore(path)) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
    assert not has_checksums(path)
    return path


def has_checksums(path: Path) -> bool:
    checked = verify.check_pages(str(path))
    assert checked.damaged == ()
    return checked.has_checksums


def read_export(path: Path) -> list[str]:
    with closing(SqliteStore(path)) as store:
        assert [hit.id for hit in store.lexical("king", top_k=1)]
        return [repr(each) for each in store.export()]


def test_old_file_gets_checksums_when_it_is_opened(old: Path) -> None:
    with use_file(old):
        before = read_export(old)
    assert not has_checksums(old)
    [note] = [finding for finding in check_store(str(old)) if finding.state == "note"]
    assert note == Finding(
        "pages",
        "note",
        f"{old} has no checksums, so damage may not be noticed",
        "the next command that may write adds them, if no other process uses the file",
    )
    assert [f.subject for f in run_checks(store=str(old)) if f.subject == "collection"] == []
    assert not has_checksums(old)
    assert read_export(old) == before
    assert has_checksums(old)


def test_kept_files_get_checksums(tmp_path: Path) -> None:
    path = tmp_path / "kept.waylore"
    path.write_bytes(read_kept("store"))
    assert not has_checksums(path)
    for _ in range(2):
        check_answers(str(path), "sqlite")
        assert has_checksums(path)


def test_file_in_use_gets_no_checksums(old: Path) -> None:
    """A process of an older version would go on to write pages without checksums."""
    with use_file(old):
        before = read_export(old)
        with closing(SqliteStore(old)) as store:
            store.compact()
            assert store.find_remains(store.forget([QUEEN.document.id], author=OWNER)) == ()
            store.write([QUEEN], author=OWNER, model=MODEL)
        assert read_export(old) == before
        assert not has_checksums(old)


def test_large_file_gets_checksums_when_it_is_compacted(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MAX_REWRITTEN_BYTES", 1)
    monkeypatch.setattr("waylore.surfaces.checks.store.MAX_REWRITTEN_BYTES", 1)
    before = read_export(old)
    assert not has_checksums(old)
    [note] = [finding for finding in check_store(str(old)) if finding.state == "note"]
    assert (note.subject, note.remedy) == ("pages", "run `waylore compact` while no other process uses the file")
    assert [f.subject for f in run_checks(store=str(old))][-1] == "collection"
    with closing(SqliteStore(old)) as store:
        store.compact()
    assert has_checksums(old)
    assert read_export(old) == before


def test_interrupted_rewrite_changes_nothing(old: Path) -> None:
    with use_file(old), closing(SqliteStore(old)) as store:
        store.write([page(f"new {i} " + "loom " * 200) for i in range(200)], author=OWNER, model=MODEL)
        before = [repr(each) for each in store.export()]
    with closing(file.connect(str(old), busy_seconds=1)) as db:
        deadline = Deadline()
        deadline.cancel()
        db.pragma("schema_version")
        db.set_progress_handler(is_over, 100)
        with deadline.activate(), pytest.raises(apsw.InterruptError):
            pages.add_checksums(db, busy_seconds=1)
        assert not vfs.has_checksums(db)
        db.execute("CREATE TABLE more (content); DROP TABLE more")
        vfs.use_checksums(db)
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert db.execute("PRAGMA integrity_check").get == "ok"
    assert not has_checksums(old)
    assert read_export(old) == before
    assert has_checksums(old)


def test_rewrite_that_was_killed_before_its_checkpoint_is_completed(old: Path, tmp_path: Path) -> None:
    """Page 1 stays in the log, because it changes again while a reader lets a checkpoint copy the pages before."""
    with closing(file.open_file(str(old))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.wal_autocheckpoint(0)
        db.reserve_bytes("main", vfs.CHECKSUM_BYTES)
        db.execute("VACUUM")
    killed = tmp_path / "killed.waylore"
    for end in ("", "-wal"):
        shutil.copy(f"{old}{end}", f"{killed}{end}")
    assert killed.read_bytes()[20] == 0
    with closing(SqliteStore(killed)) as store:
        reader = store.export()
        next(reader)
        store.write([page(f"new {i} " + "loom " * 2_000) for i in range(20)], author=OWNER, model=MODEL)
        assert pages.checkpoint(str(killed))
        assert killed.read_bytes()[20] == 0
        list(reader)
        assert store.statistics().documents == len(WORLD) + 20
        assert pages.checkpoint(str(killed), truncate_log=True)
    assert has_checksums(killed)
    assert killed.read_bytes()[20] == vfs.CHECKSUM_BYTES


# -- cost ----------------------------------------------------------------------------------------------

ROWS, ROUNDS = 4_000, 9
MAX_COST = 6.0  # 2.4 was measured


def scan(path: Path, *, is_checked: bool) -> float:
    """Return the processor seconds of reading all pages of a file into the cache."""
    flags = apsw.SQLITE_OPEN_READONLY
    name = str(path)
    with closing(vfs.open_database(name, flags) if is_checked else apsw.Connection(name, flags)) as db:
        db.pragma("cache_size", -65_536)
        start = time.process_time()
        assert db.execute("SELECT count(DISTINCT substr(content, 1, 9)) FROM texts").get == ROWS
        return time.process_time() - start


def test_cost_of_a_cold_scan_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(file.open_file(str(path))) as db:
        file.configure_file(db, 1)
        db.execute("CREATE TABLE texts (content)")
        with db:
            db.executemany("INSERT INTO texts VALUES (?)", ((f"{i:09d}" * 450,) for i in range(ROWS)))
    rounds = [(scan(path, is_checked=True), scan(path, is_checked=False)) for _ in range(ROUNDS)]
    ratio = min(ours for ours, _ in rounds) / min(bare for _, bare in rounds)
    print(f"cold scan with checksums: {ratio:.1f} times the processor time of one without")
    assert ratio < MAX_COST
