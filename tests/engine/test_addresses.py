"""Every file has one document, however it is named: addresses of files, and documents that move to new ones."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from databases import create_database
from waylore import Waylore
from waylore.errors import ArgumentError
from waylore.indexing.files import add
from waylore.providers.embedders.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(32, quiet=True)
ROWS = "name,text\nMara,likes tea\nKofi,likes dogs\nNils,likes rain\nIda,likes snow\n"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty store."""
    if request.param == "sqlite":
        return str(tmp_path / "m.waylore")
    request.getfixturevalue("postgres")
    return create_database()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "m.waylore", embedder=EMBEDDER) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder without settings that holds n/c.md."""
    make_notes(tmp_path / "p", "Alpha is here.")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


def make_notes(folder: Path, text: str) -> Path:
    (folder / "n").mkdir(parents=True)
    (folder / "n" / "c.md").write_text(f"# C\n\n{text}\n")
    return folder


def list_uris(memory: Waylore) -> list[str]:
    return [document.uri for document in memory.documents()]


def get_texts(memory: Waylore) -> list[str]:
    return [memory.get(document.id).passages[0].text for document in memory.documents()]


# -- one document for each file ------------------------------------------------------------------------


def test_file_outside_of_a_project_has_its_absolute_path(memory: Waylore, folder: Path) -> None:
    for path in ("n", "n/c.md", folder, folder / "n" / "c.md", "../p/n"):
        memory.add_files(path)
        assert list_uris(memory) == [f"{folder}/n/c.md"]
    assert memory.add_files("n").unchanged == 1


def test_one_file_by_three_names_is_one_document(url: str, folder: Path) -> None:
    absolute = f"{folder}/n/c.md"
    with Waylore.open(url, embedder=EMBEDDER) as memory:
        calls: list[tuple[dict[str, Any], str]] = [
            ({"path": "n/c.md"}, absolute),
            ({"path": absolute}, absolute),
            ({"path": "n/c.md", "root": "n"}, "c.md"),
            ({"path": "n", "root": folder}, "n/c.md"),
            ({"path": "n"}, absolute),
        ]
        for options, uri in calls:
            report = memory.add_files(**options)
            assert (list_uris(memory), report.forgotten) == ([uri], 0)
            assert (memory.add_files(**options).unchanged, memory.stats().passages) == (1, 1)


def test_equal_paths_in_two_folders_are_two_documents(memory: Waylore, folder: Path) -> None:
    other = make_notes(folder.parent / "q", "Beta is here.")
    for place in (folder, other, folder):
        os.chdir(place)
        memory.add_files("n")
    assert list_uris(memory) == [f"{folder}/n/c.md", f"{other}/n/c.md"]
    assert get_texts(memory) == ["# C\n\nAlpha is here.", "# C\n\nBeta is here."]


def test_file_in_a_project_has_its_path_in_the_project(memory: Waylore, folder: Path) -> None:
    (folder / "waylore.toml").touch()
    outside = make_notes(folder.parent / "q", "Beta is here.")
    for place, path in ((folder, "n"), (folder / "n", "c.md"), (folder / "n", folder), (folder, f"{folder}/n/c.md")):
        os.chdir(place)
        memory.add_files([path, outside])
        assert list_uris(memory) == [f"{outside}/n/c.md", "n/c.md"]
    memory.add_files(folder.parent)
    assert list_uris(memory) == [f"{outside}/n/c.md", "n/c.md"]


def test_project_is_found_through_a_link(memory: Waylore, folder: Path) -> None:
    (folder / "waylore.toml").touch()
    (folder.parent / "link").symlink_to(folder)
    memory.add_files(folder.parent / "link" / "n")
    memory.add_files("n")
    assert list_uris(memory) == ["n/c.md"]


def test_link_in_a_path_is_kept_so_that_its_target_may_change(memory: Waylore, folder: Path) -> None:
    make_notes(folder.parent / "second", "Beta is here.")
    current = folder.parent / "current"
    for release in ("p", "second"):
        current.unlink(missing_ok=True)
        current.symlink_to(folder.parent / release)
        memory.add_files(current / "n")
        assert list_uris(memory) == [f"{current}/n/c.md"]
    assert get_texts(memory) == ["# C\n\nBeta is here."]


def test_init_after_adding_moves_documents_into_the_project(memory: Waylore, folder: Path) -> None:
    memory.add_files("n", labels=["staff"], metadata={"team": "all"})
    (folder / "waylore.toml").touch()
    memory.add_files("n", labels=["staff"], metadata={"team": "all"})
    [document] = memory.documents()
    assert (document.uri, document.labels, document.metadata["team"]) == ("n/c.md", frozenset(["staff"]), "all")
    assert [hit.uri for hit in memory.search("Alpha")] == ["n/c.md"]


def test_root_must_contain_the_path_and_may_be_written_otherwise(memory: Waylore, folder: Path) -> None:
    memory.add_files("n/c.md", root=folder)
    memory.add_files(folder / "n", root=".")
    (folder.parent / "link").symlink_to(folder)
    memory.add_files("n", root=folder.parent / "link")
    assert list_uris(memory) == ["n/c.md"]
    make_notes(folder / "r", "Beta is here.")
    with pytest.raises(ArgumentError, match="root must be a folder that contains r"):
        memory.add_files(["n", "r"], root="n")


def test_forget_takes_an_address_or_a_path(memory: Waylore, folder: Path) -> None:
    (folder / "rows.csv").write_text(ROWS)
    for name in ("rows.csv", f"{folder}/rows.csv", "../p/rows.csv"):
        memory.add_files("rows.csv")
        assert len(memory.forget(name).documents) == 4
    (folder / "waylore.toml").touch()
    memory.add_files("n")
    receipt = memory.forget(f"{folder}/n/c.md", "n/d.md")
    assert (len(receipt.documents), receipt.missing) == (1, ("n/d.md",))


def test_working_folder_may_be_gone(memory: Waylore, folder: Path) -> None:
    (folder / "gone").mkdir()
    os.chdir(folder / "gone")
    (folder / "gone").rmdir()
    memory.add_files(folder / "n")
    assert list_uris(memory) == [f"{folder}/n/c.md"]
    assert memory.forget("c.md").missing == ("c.md",)


# -- projects that move, and projects that share a store -----------------------------------------------


def test_moved_project_keeps_its_addresses(memory: Waylore, folder: Path) -> None:
    (folder / "waylore.toml").touch()
    (folder / "rows.csv").write_text(ROWS)
    memory.add_files(".")
    before = memory.documents()
    moved = folder.parent / "elsewhere" / "p"
    moved.parent.mkdir()
    folder.rename(moved)
    os.chdir(moved)
    assert memory.add_files(".").documents == 0
    assert (memory.documents(), memory.add_files(".").unchanged) == (before, 2)
    (moved / "rows.csv").unlink()
    assert memory.add_files(".", prune=True).forgotten == 4


def test_copied_project_keeps_the_addresses_of_its_copied_store(memory: Waylore, folder: Path, tmp_path: Path) -> None:
    (folder / "waylore.toml").touch()
    memory.add_files("n")
    shutil.copytree(folder, tmp_path / "copy")
    os.chdir(tmp_path / "copy")
    memory.add_files("n")
    assert list_uris(memory) == ["n/c.md"]
    (tmp_path / "copy" / "n" / "c.md").write_text("# C\n\nGamma is here.\n")
    memory.add_files("n")
    assert (list_uris(memory), get_texts(memory)) == (["n/c.md"], ["# C\n\nGamma is here."])


def test_two_projects_in_one_store_do_not_overwrite_each_other(memory: Waylore, folder: Path) -> None:
    other = make_notes(folder.parent / "q", "Beta is here.")
    for place in (folder, other, folder, other):
        (place / "waylore.toml").touch()
        os.chdir(place)
        memory.add_files("n")
    assert list_uris(memory) == [f"{other}/n/c.md", "n/c.md"]
    assert memory.add_files("n").unchanged == 1
    shutil.rmtree(folder)
    memory.add_files("n")
    assert (list_uris(memory), get_texts(memory)) == (["n/c.md"], ["# C\n\nBeta is here."])


# -- moving --------------------------------------------------------------------------------------------


def test_rows_of_a_changed_file_move(memory: Waylore, folder: Path) -> None:
    (folder / "rows.csv").write_text(ROWS)
    memory.add_files("rows.csv")
    (folder / "rows.csv").write_text("".join(ROWS.splitlines(keepends=True)[:3]))
    report = memory.add_files("rows.csv", root=".")
    assert (list_uris(memory), report.forgotten) == (["rows.csv#row=2", "rows.csv#row=3"], 2)


def test_file_that_cannot_be_read_stays_at_its_former_address(memory: Waylore, folder: Path) -> None:
    memory.add_files("n")
    (folder / "n" / "c.md").write_bytes(b"\x00\x01")
    for prune in (False, True):
        assert memory.add_files("n", root=".", prune=prune).skipped_count == 1
        assert list_uris(memory) == [f"{folder}/n/c.md"]


def test_vanished_file_is_pruned_under_its_former_address(memory: Waylore, folder: Path) -> None:
    memory.add("Added by hand.", uri=f"{folder}/n/hand.md")
    memory.add_files("n")
    (folder / "n" / "c.md").unlink()
    assert memory.add_files("n", root=".", prune=True).forgotten == 1
    assert list_uris(memory) == [f"{folder}/n/hand.md"]


def test_interrupted_move_loses_nothing_and_is_resumed(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rows.csv").write_text(ROWS)
    monkeypatch.setattr(add, "BATCH_ROWS", 1)
    with Waylore.open(url, embedder=EMBEDDER) as memory:
        memory.add_files("rows.csv")
        for count in range(1, 5):
            with pytest.raises(KeyboardInterrupt):
                memory.add_files("rows.csv", root=".", progress=interrupt_after(count))
            rows = sorted(uri.partition("#")[2] for uri in list_uris(memory))
            assert rows == ["row=2", "row=3", "row=4", "row=5"]
        memory.add_files("rows.csv", root=".")
        assert list_uris(memory) == [f"rows.csv#row={n}" for n in range(2, 6)]
        assert memory.add_files("rows.csv", root=".").unchanged == 1


def interrupt_after(batches: int) -> Callable[[object], None]:
    """Return a callback that stops a run after some of its batches are written."""
    seen = iter(range(batches - 1))

    def show(_: object) -> None:
        if next(seen, None) is None:
            raise KeyboardInterrupt

    return show
