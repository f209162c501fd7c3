"""The last commits of a real repository: the time of committed content, and of nothing else."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from waylore.indexing.files import commits
from waylore.indexing.files.commits import find_commits

FIRST, SECOND = datetime(2024, 3, 8, 10, tzinfo=UTC), datetime(2025, 6, 1, 12, tzinfo=UTC)


def run_git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Mara", "-c", "user.email=mara@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, at: datetime, *options: str) -> None:
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-q", "-m", "change", f"--date={at.isoformat()}", *options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a repository with two commits."""
    folder = tmp_path / "repository"
    (folder / "notes").mkdir(parents=True)
    run_git(folder, "init", "-q")
    for name in ("a.md", "notes/b c.md", "notes/ü\tx.md"):
        (folder / name).write_text("One.")
    commit(folder, FIRST)
    (folder / "a.md").write_text("Two.")
    commit(folder, SECOND)
    return folder


def list_times(folder: Path, within: Path | None = None) -> dict[str, datetime]:
    files = [path for path in (within or folder).rglob("*") if path.is_file() and ".git" not in path.parts]
    found = find_commits(within or folder, files)
    return {path.relative_to(folder).as_posix(): each.at for path, each in found.items() if each.holds_for(path)}


def test_files_have_the_time_of_the_commit_that_changed_them(folder: Path) -> None:
    assert list_times(folder) == {"a.md": SECOND, "notes/b c.md": FIRST, "notes/ü\tx.md": FIRST}
    assert list_times(folder, folder / "notes") == {"notes/b c.md": FIRST, "notes/ü\tx.md": FIRST}


def test_content_that_is_not_committed_has_no_time(folder: Path) -> None:
    (folder / "new.md").write_text("New.")
    (folder / "a.md").write_text("Three.")
    assert "a.md" not in list_times(folder)
    assert "new.md" not in list_times(folder)
    run_git(folder, "add", "-A")
    assert set(list_times(folder)) == {"notes/b c.md", "notes/ü\tx.md"}
    (folder / "a.md").write_bytes(b"Two.")
    (folder / "notes/b c.md").unlink()
    commit(folder, SECOND)
    (folder / "notes/b c.md").write_text("One.")
    assert set(list_times(folder)) == {"a.md", "new.md", "notes/ü\tx.md"}


def test_line_ends_do_not_count(folder: Path) -> None:
    (folder / "a.md").write_bytes(b"One.\nTwo.\n")
    commit(folder, SECOND)
    (folder / "a.md").write_bytes(b"One.\r\nTwo.\r\n")
    assert list_times(folder)["a.md"] == SECOND


def test_rebased_and_merged_files_keep_their_time(folder: Path) -> None:
    run_git(folder, "checkout", "-q", "-b", "side", "HEAD~1")
    (folder / "side.md").write_text("Side.")
    commit(folder, FIRST)
    run_git(folder, "checkout", "-q", "-")
    run_git(folder, "merge", "-q", "--no-ff", "-m", "merge", "side")
    assert list_times(folder)["side.md"] == FIRST
    assert list_times(folder)["a.md"] == SECOND


def test_folders_without_history_have_no_times(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.md").write_text("One.")
    assert list_times(tmp_path / "plain") == {}
    run_git(tmp_path / "plain", "init", "-q")
    assert list_times(tmp_path / "plain") == {}
    run_git(tmp_path, "clone", "-q", "--depth", "1", f"file://{folder}", "shallow")
    assert list_times(tmp_path / "shallow") == {}
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / ".git").write_text("gitdir: nowhere")
    assert list_times(tmp_path / "broken") == {}


def test_without_git_there_are_no_times(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert list_times(folder) == {}


def test_number_of_commits_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "MAX_COMMITS", 1)
    assert list_times(folder) == {"a.md": SECOND}


def test_repository_cannot_start_programs(folder: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for name in (
        "core.fsmonitor", "core.pager", "pager.log", "diff.external", "diff.evil.textconv", "diff.evil.command",
        "filter.evil.clean", "filter.evil.process", "gpg.program", "core.sshCommand",
    ):  # fmt: skip
        run_git(folder, "config", name, str(script))
    run_git(folder, "config", "log.showSignature", "true")
    (folder / "a.md").write_text("Two.")  # as committed, with another time on disk
    assert list_times(folder)["a.md"] == SECOND
    assert not trap.exists()
