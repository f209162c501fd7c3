"""A folder's files are listed once, in order, without those that Git would ignore."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from waylore.indexing import blocks
from waylore.indexing.blocks import Reading, Skipped
from waylore.indexing.files.folders import list_files
from waylore.indexing.files.formats import read


def write_files(folder: Path, **content: str) -> None:
    """Write files by name; `__` stands for a slash and `_dot_` for a dot."""
    for name, text in content.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def list_names(folder: Path, root: Path | None = None) -> list[str]:
    return [found.relative_to(folder).as_posix() for found in list_files(folder, root=root) if isinstance(found, Path)]


RULES = {
    "_dot_gitignore": "*.log\nbuild/\n/top.txt\n!keep.log\ndocs/*.tmp\n# note\n!\n[z-a]\n\\\n",
    "sub___dot_gitignore": "!special.log\n*.md\n/only.txt\n",
    "sub__deep___dot_gitignore": "!back.md\n",
    "a_dot_log": "x", "keep_dot_log": "x", "top_dot_txt": "x", "b_dot_txt": "x",
    "build__out_dot_txt": "x", "build__keep_dot_log": "x", "docs__a_dot_tmp": "x", "docs__in__a_dot_tmp": "x",
    "sub__special_dot_log": "x", "sub__other_dot_log": "x", "sub__a_dot_md": "x", "sub__only_dot_txt": "x",
    "sub__top_dot_txt": "x", "sub__deep__back_dot_md": "x", "sub__deep__gone_dot_md": "x",
    "sub__deep__only_dot_txt": "x", "node_modules__x_dot_js": "x",
}  # fmt: skip
KEPT = [
    "b.txt", "docs/in/a.tmp", "keep.log",
    "sub/deep/back.md", "sub/deep/only.txt", "sub/special.log", "sub/top.txt",
]  # fmt: skip


def test_nested_rules_and_exceptions_work_as_in_git(tmp_path: Path) -> None:
    write_files(tmp_path, **RULES)
    assert list_names(tmp_path) == KEPT


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_lists_the_same_files(tmp_path: Path) -> None:
    write_files(tmp_path, **RULES)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert [n for n in sorted(listed) if not n.endswith(".gitignore") and "node_modules" not in n] == KEPT


def test_rules_above_the_folder_apply_from_root(tmp_path: Path) -> None:
    write_files(tmp_path, **RULES)
    assert "other.log" in list_names(tmp_path / "sub")
    assert list_names(tmp_path / "sub", root=tmp_path) == [
        "deep/back.md",
        "deep/only.txt",
        "special.log",
        "top.txt",
    ]
    assert list_names(tmp_path / "build", root=tmp_path) == []


def test_a_named_folder_that_is_ignored_comes_with_a_remedy_that_works(tmp_path: Path) -> None:
    """Python 3.13 writes a `.gitignore` with `*` into a virtual environment, and a user may keep notes in one."""
    write_files(tmp_path, **{"_dot_gitignore": "*\n", "notes/deep/a_dot_md": "# A"})
    folder = tmp_path / "notes" / "deep"
    [skipped] = read(folder, root=tmp_path)
    assert isinstance(skipped, Skipped)
    rule = re.search(r"write (\S+) into (\S+)", skipped.reason)
    assert skipped.uri == "notes/deep"
    assert rule
    Path(rule[2]).write_text(rule[1])
    assert list_names(folder, root=tmp_path) == ["a.md"]


def test_stores_and_secrets_are_left_out(tmp_path: Path) -> None:
    ours = (
        "memory_dot_waylore",
        "memory_dot_waylore-wal",
        "waylore_dot_toml",
        "_dot_env",
        "sub__other_dot_waylore-shm",
    )
    write_files(tmp_path, **dict.fromkeys((*ours, "waylore_dot_md"), "x"))
    assert list_names(tmp_path) == ["waylore.md"]


def test_symbolic_links_are_skipped(tmp_path: Path) -> None:
    write_files(tmp_path, a__b__c_dot_txt="text")
    (tmp_path / "a/b/loop").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "a/self").symlink_to(tmp_path / "a/self")
    (tmp_path / "a/out.txt").symlink_to("/etc/hostname")
    found = list(read(tmp_path, root=tmp_path))
    assert [r.uri for r in found if isinstance(r, Reading)] == ["a/b/c.txt"]
    skipped = {r.uri: r.reason for r in found if isinstance(r, Skipped)}
    assert sorted(skipped) == ["a/b/loop", "a/out.txt", "a/self"]
    assert all("symbolic link" in reason for reason in skipped.values())


def test_folder_with_unreadable_rules_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, a__x_dot_txt="x", b__x_dot_txt="x", a___dot_gitignore="secret\n")

    def missing(module: str) -> object:
        raise ImportError(module)

    monkeypatch.setattr(blocks, "import_module", missing)
    skipped, reading = read(tmp_path, root=tmp_path)
    assert isinstance(skipped, Skipped)
    assert skipped.uri == "a"
    assert "pip install 'waylore[files]'" in skipped.reason
    assert reading.uri == "b/x.txt"


def test_broken_files_do_not_stop_the_others(tmp_path: Path) -> None:
    write_files(tmp_path, a_dot_md="# A", b_dot_pdf="broken", c_dot_docx="broken", d_dot_txt="", e_dot_txt="last")
    found = list(read(tmp_path, root=tmp_path))
    assert [(type(r).__name__, r.uri) for r in found] == [
        ("Reading", "a.md"),
        ("Skipped", "b.pdf"),
        ("Skipped", "c.docx"),
        ("Skipped", "d.txt"),
        ("Reading", "e.txt"),
    ]
