"""Test that importing Waylore, and adding and searching plain files, calls nothing that only POSIX has."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, subprocess, sys

for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
for name in ("fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "register_at_fork", "sched_getaffinity",
             "fdatasync", "fchmod", "statvfs", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"):
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGXCPU", "SIGCHLD"):
    delattr(signal, name)
start = subprocess.Popen.__init__
def refuse_files(self, *arguments, pass_fds=(), preexec_fn=None, **options):
    assert not pass_fds and not preexec_fn, "only POSIX hands files to a child process"
    start(self, *arguments, **options)
subprocess.Popen.__init__ = refuse_files

"""
# Other libraries decide by the name of the system what they import, so they are imported first.
FIRST = """
import importlib, pkgutil, sys, waylore
names = [each.name for each in pkgutil.walk_packages(waylore.__path__, "waylore.") if "__main__" not in each.name]
for name in names:
    importlib.import_module(name)
for name in [name for name in sys.modules if name.partition(".")[0] == "waylore"]:
    del sys.modules[name]
"""
AGAIN = """
for name in names:
    importlib.import_module(name)
print(len(names))
"""
COMMAND = PROGRAM + "from waylore.surfaces.cli.__main__ import main; main()"


def run(program: str, folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.full
def test_every_module_is_imported_without_posix(tmp_path: Path) -> None:
    assert int(run(FIRST + PROGRAM + AGAIN, tmp_path)) > 400


def test_plain_files_are_added_and_found_without_posix(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "login.md").write_text("# Login\n\nMara Lind owns the login.\n")
    (tmp_path / "notes" / "plan.txt").write_text("The login needs the harbour office.\n")
    (tmp_path / "notes" / "page.html").write_text("<p>The harbour office is closed.</p>")
    run(COMMAND, tmp_path, "init", "--embedder", "none")
    added = run(COMMAND, tmp_path, "add", "notes")
    assert "page.html" in added
    assert "cannot pass a connection to a child process" in " ".join(added.split())
    assert "Mara Lind owns the login" in run(COMMAND, tmp_path, "search", "Who owns the login?")
    assert "login.md" in run(COMMAND, tmp_path, "list")
    run(COMMAND, tmp_path, "forget", "notes/login.md", "--yes")
