"""Files of a folder under Git have the time of their last commit, unless they name another date themselves."""

import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from waylore import Waylore

FIRST, SECOND = datetime(2024, 3, 8, 10, tzinfo=UTC), datetime(2025, 6, 1, 12, tzinfo=UTC)
NOTES = {
    "plan.md": "# Plan\n\nThe mast is broken.\n",
    "dated.md": "---\ndate: 2020-05-05\n---\n# Dated\n\nThe sail is torn.\n",
    "2021-02-03-meeting.md": "# Meeting\n\nWe met.\n",
    "people.csv": "name,text\nMara,likes tea\n",
}


def commit(folder: Path, at: datetime) -> None:
    who = ("-c", "user.name=Mara", "-c", "user.email=mara@example.org")
    for command in (("add", "-A"), (*who, "commit", "-q", "-m", "change", f"--date={at.isoformat()}")):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        yield memory


def list_times(memory: Waylore, folder: Path) -> dict[str, str]:
    listed = memory.documents()
    return {each.uri.rpartition(f"{folder.name}/")[2]: f"{each.at:%Y-%m-%d}" for each in listed if each.at}


def test_commit_gives_the_time_of_files_without_a_date(memory: Waylore, folder: Path) -> None:
    named = {"dated.md": "2020-05-05", "2021-02-03-meeting.md": "2021-02-03"}
    memory.add_files(folder)
    assert list_times(memory, folder) == named
    commit(folder, FIRST)
    assert memory.add_files(folder).documents == 2  # the others have their own dates
    assert list_times(memory, folder) == {**named, "plan.md": "2024-03-08", "people.csv#row=2": "2024-03-08"}
    assert memory.add_files(folder).unchanged == len(NOTES)


def test_change_has_no_time_until_it_is_committed(memory: Waylore, folder: Path) -> None:
    commit(folder, FIRST)
    memory.add_files(folder)
    (folder / "plan.md").write_text("# Plan\n\nThe mast is mended.\n")
    memory.add_files(folder)
    assert "plan.md" not in list_times(memory, folder)
    commit(folder, SECOND)
    assert memory.add_files(folder).documents == 1
    assert list_times(memory, folder)["plan.md"] == "2025-06-01"
    [hit, *_] = memory.search("mast").hits
    assert hit.passage.at == SECOND
    assert memory.search("mast", until="2025-01-01").hits == ()


def test_single_file_has_its_time_too(memory: Waylore, folder: Path) -> None:
    commit(folder, FIRST)
    memory.add_files(folder / "plan.md")
    assert list_times(memory, folder) == {"plan.md": "2024-03-08"}
    memory.add_files(folder / "people.csv", uri="elsewhere.csv")
    assert [each.at for each in memory.documents(under="elsewhere")] == [None]


def test_one_log_is_read_for_a_folder_and_none_without_git(
    memory: Waylore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(folder, FIRST)
    calls, program = tmp_path / "calls", tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")
    memory.add_files(folder)
    assert sum(" log " in call for call in calls.read_text().splitlines()) == 1
    assert len(calls.read_text().splitlines()) == 3
    calls.unlink()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.md").write_text("Plain.")
    memory.add_files(tmp_path / "plain")
    assert not calls.exists()
