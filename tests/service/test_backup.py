"""Back up a store in a file while it is written, verify the copy, and restore it."""

import json
import shutil
import stat
import threading
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tools.waiting import wait_until

from legacy.keepsakes import check_answers, open_old, read_kept
from surfaces.commands import process
from waylore import Waylore
from waylore.errors import ConfigError, DamagedStore, NotFound, SchemaOutdated
from waylore.service.backups.dispatch import back_up, restore, verify_backup
from waylore.service.backups.file import COPY, describe_collections
from waylore.service.backups.manifest import (
    MANIFEST,
    check_parts,
    hash_file,
    make_manifest,
    read_manifest,
    write_manifest,
)
from waylore.service.keys import make_key
from waylore.service.registry.open import open_registry
from waylore.store.sqlite.file import open_file, read_schema
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages
from waylore.types.knowledge import IndexedDocument


def fill(file: Path, *, collection: str = "default", documents: int = 5) -> None:
    with Waylore.open(str(file), collection=collection) as memory:
        for n in range(documents):
            memory.add(f"Note {n}: Mara leads Platform.", uri=f"{n}")


def export(file: Path) -> list[IndexedDocument]:
    with closing(SqliteStore(file)) as store:
        return list(store.export())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Back up a store with two collections and a key."""
    file = tmp_path / "memory.waylore"
    fill(file)
    fill(file, collection="team", documents=2)
    with closing(open_registry(str(file))) as registry:
        registry.set_key(make_key("a key", scope="read")[0])
    back_up(str(file), tmp_path / "saved")
    return tmp_path / "saved"


def test_restored_store_equals_the_old_one(saved: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.waylore"
    manifest = restore(saved, str(new))
    assert {name: each.documents for name, each in manifest.collections.items()} == {"default": 5, "team": 2}
    for name in manifest.collections:
        with (
            Waylore.open(str(tmp_path / "memory.waylore"), collection=name) as old,
            Waylore.open(str(new), collection=name) as restored,
        ):
            assert restored.search("Who leads Platform?").hits == old.search("Who leads Platform?").hits
    with closing(open_registry(str(new))) as registry:
        assert [key.name for key in registry.list_keys()] == ["a key"]


def test_backup_during_writes_is_the_store_of_one_moment(tmp_path: Path) -> None:
    file, is_over, written = tmp_path / "memory.waylore", threading.Event(), list[str]()

    def write() -> None:
        with Waylore.open(str(file)) as memory:
            while not is_over.is_set():
                memory.add(f"Note {len(written)}: Mara leads Platform.", uri=f"{len(written):06}")
                written.append(f"{len(written):06}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(written) > 20)
        before = len(written)
        back_up(str(file), tmp_path / "saved")
        after = len(written)
    finally:
        is_over.set()
        writer.join()
    restore(tmp_path / "saved", str(tmp_path / "new.waylore"))
    found = export(tmp_path / "new.waylore")
    uris = {indexed.document.uri for indexed in found}
    assert sorted(uris) == written[: len(uris)]
    assert before <= len(uris) <= after + 1  # the last one may have been stored and not acknowledged
    assert found == [indexed for indexed in export(file) if indexed.document.uri in uris]


def test_changed_backup_is_refused(saved: Path, tmp_path: Path) -> None:
    verify_backup(saved)
    copy = saved / COPY
    content = bytearray(copy.read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)
    with pytest.raises(DamagedStore, match="was changed"):
        verify_backup(saved)
    with pytest.raises(DamagedStore, match="was changed"):
        restore(saved, str(tmp_path / "new.waylore"))
    assert not (tmp_path / "new.waylore").exists()


def accept(copy: Path) -> None:
    """Write the hash of a changed copy into its manifest."""
    file = copy.with_name(MANIFEST)
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({**manifest, "parts": {COPY: hash_file(copy)}}))


def test_copy_whose_pages_are_whole_but_does_not_restore_is_noticed(saved: Path) -> None:
    """Another program changed a row: every page has its checksum, and the copy has its hash."""
    with closing(open_file(str(saved / COPY))) as db:
        db.execute("UPDATE documents SET title = 'changed' WHERE uri = '3'")
    accept(saved / COPY)
    check_parts(saved, read_manifest(saved))
    assert check_pages(str(saved / COPY)).damaged == ()
    with pytest.raises(DamagedStore, match=r"saved cannot be restored .*3 in .* is damaged.*; use another backup"):
        verify_backup(saved)


def test_older_copy_with_a_newer_manifest_is_noticed(saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "memory.waylore"
    fill(file, documents=6)
    back_up(str(file), tmp_path / "newer")
    shutil.copyfile(saved / COPY, tmp_path / "newer" / COPY)
    accept(tmp_path / "newer" / COPY)
    with pytest.raises(DamagedStore, match="are not those"):
        verify_backup(tmp_path / "newer")


def test_trial_leaves_nothing(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = {path.name: hash_file(path) for path in saved.iterdir()}
    manifest, is_restored = verify_backup(saved)
    assert (is_restored, sorted(manifest.collections)) == (True, ["default", "team"])
    assert list(scratch.iterdir()) == []
    assert {path.name: hash_file(path) for path in saved.iterdir()} == before


def test_backup_with_other_documents_than_its_manifest_is_refused(saved: Path, tmp_path: Path) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    manifest["collections"]["default"]["digest"] = "0" * 64
    (saved / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DamagedStore, match="are not those"):
        restore(saved, str(tmp_path / "new.waylore"))


@pytest.mark.parametrize("newer", [{"format": 1_000}, {"schemas": {"store": 1_000}}, {"schemas": {"other": 1}}])
def test_newer_backup_is_refused(saved: Path, tmp_path: Path, newer: Mapping[str, object]) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps({**manifest, **newer}))
    with pytest.raises(SchemaOutdated, match="install that version"):
        restore(saved, str(tmp_path / "new.waylore"))


def test_backup_of_format_1_is_restored(saved: Path, tmp_path: Path) -> None:
    manifest = json.loads((saved / MANIFEST).read_text())
    earlier = {name: manifest[name] for name in ("version", "created_at", "collections", "parts")}
    (saved / MANIFEST).write_text(json.dumps({**earlier, "format": 1, "schema": manifest["schemas"]["store"]}))
    assert restore(saved, str(tmp_path / "new.waylore")).collections["default"].documents == 5


def test_backup_of_an_earlier_schema_is_upgraded(tmp_path: Path) -> None:
    """The copy is a file that an earlier version wrote; its digests are those of the same documents."""
    (tmp_path / "saved").mkdir()
    copy, upgraded = tmp_path / "saved" / COPY, tmp_path / "upgraded.waylore"
    copy.write_bytes(read_kept("store"))
    shutil.copyfile(copy, upgraded)
    open_old(str(upgraded)).close()
    schema, now = read_schema(str(copy)) or 0, datetime.now(UTC)
    assert schema < (read_schema(str(upgraded)) or 0)
    parts = {COPY: hash_file(copy)}
    described = describe_collections(upgraded)
    write_manifest(
        copy.parent, make_manifest("sqlite", {"store": schema}, described, parts, columns={}, created_at=now)
    )
    restore(copy.parent, str(tmp_path / "new.waylore"))
    check_answers(str(tmp_path / "new.waylore"), "sqlite")
    assert verify_backup(copy.parent)[1]


def test_damaged_store_is_not_backed_up(tmp_path: Path) -> None:
    file = tmp_path / "memory.waylore"
    fill(file, documents=50)
    content = bytearray(file.read_bytes())
    content[5 * 4096 + 100] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedStore):
        back_up(str(file), tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_nothing_is_overwritten(saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "memory.waylore"
    with pytest.raises(ConfigError, match="exists already"):
        back_up(str(file), saved)
    with pytest.raises(ConfigError, match="exists already"):
        restore(saved, str(file))
    with pytest.raises(NotFound, match="is no backup"):
        restore(tmp_path, str(tmp_path / "new.waylore"))
    with pytest.raises(ConfigError, match=r"name a new file .* `waylore export` and `waylore import`"):
        restore(saved, "postgresql://localhost/new")
    (saved / MANIFEST).write_text("{")
    with pytest.raises(DamagedStore, match="was changed"):
        restore(saved, str(tmp_path / "new.waylore"))


def test_interrupted_backup_is_made_anew(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "again.part")
    back_up(str(tmp_path / "memory.waylore"), tmp_path / "again")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == [MANIFEST, COPY]
    assert not (tmp_path / "again.part").exists()


def test_backup_can_be_read_by_its_owner_alone(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o700
    assert stat.S_IMODE((saved / COPY).stat().st_mode) == 0o600


def test_commands_back_up_verify_and_restore(tmp_path: Path) -> None:
    fill(tmp_path / "memory.waylore")
    made = json.loads(process(tmp_path, "backup", "saved", "--json").stdout)
    assert made["collections"]["default"]["documents"] == 5
    assert "saved: verified, default (5 documents)" in process(tmp_path, "backup", "saved", "--verify").stdout
    assert process(tmp_path, "restore", "saved", "--store", "new.waylore").returncode == 0
    assert "Mara" in process(tmp_path, "search", "Platform", "--store", "new.waylore").stdout
    done = process(tmp_path, "backup", "saved")
    assert (done.returncode, "name a new folder" in done.stderr) == (2, True)
