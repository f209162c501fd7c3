"""Test the command line as a process: first use, Ctrl-C, colours, completion, imports."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tools.waiting import HANG_SECONDS

from surfaces.commands import COMMAND, environment, notes, process
from waylore import Waylore
from waylore.store.sqlite.file import open_file

HEAVY = "fastembed onnxruntime psycopg pyarrow mcp fastapi uvicorn httpx lxml pypdf docx spacy model2vec sklearn"
IMPORTED = """
import sys
sys.argv = ["waylore", *sys.argv[1:]]
from waylore.surfaces.cli.__main__ import main
try:
    main()
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


def test_init_add_search_and_doctor_work_in_a_new_folder(tmp_path: Path) -> None:
    notes(tmp_path)
    started = process(tmp_path, "init", "--embedder", "none")
    assert started.returncode == 0, started.stderr
    assert started.stdout.splitlines()[-1] == "next: waylore add PATH"
    assert process(tmp_path, "add", "notes").stdout.startswith("3 files: 3 documents added")
    found = process(tmp_path, "search", "Who owns what Login keeps its tokens in?")
    assert "Sessions —owner→ Mara" in found.stdout
    assert found.stderr == ""
    assert process(tmp_path, "doctor").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("search", "x"), 3, "no store at memory.waylore"),
        (("search", "x", "--method", "best", "--store", "here.waylore"), 2, "unknown method 'best'"),
        (("search", " ", "--store", "here.waylore"), 2, "query must not be empty"),
        (("stats", "--store", "postgresql://nobody@127.0.0.1:1/x"), 4, "cannot be reached"),
        (("stats", "--store", "note.txt"), 4, "that it is a Waylore file"),
        (("stats", "--store", "ftp://x"), 2, "no store for ftp://"),
        (("stats", "--store", "newer.waylore"), 5, "the store has schema 99"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "note.txt").write_text("not a database, but a text that is long enough to be looked at\n" * 50)
    for name in ("here.waylore", "newer.waylore"):
        Waylore.open(tmp_path / name).close()
    with open_file(str(tmp_path / "newer.waylore")) as db:
        db.execute("INSERT INTO migrations VALUES (99, 'future', 0, '')")
    done = process(tmp_path, *arguments)
    assert done.returncode == code
    assert done.stderr.startswith("waylore: ")
    assert message in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_add_resumes_after_ctrl_c(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1_500):
        text = f"# Service {number}\n\nService {number} needs Service {number + 1}, says Team {number % 7}.\n"
        (folder / f"{number}.md").write_text(text)
    process(tmp_path, "init", "--embedder", "none")
    store = tmp_path / "memory.waylore"
    adding = subprocess.Popen(
        [*COMMAND, "add", "many"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while adding.poll() is None and count_documents(store) == 0:
        time.sleep(0.1)
    adding.send_signal(signal.SIGINT)
    out, err = adding.communicate(timeout=HANG_SECONDS)
    assert (adding.returncode, out) == (130, "")
    assert "waylore: interrupted; everything written so far is complete. Run the same command again" in err
    assert "Traceback" not in err
    written = count_documents(store)
    assert 0 < written < 1_500
    again = json.loads(process(tmp_path, "add", "many", "--json").stdout)
    assert written <= again["unchanged"] + 256
    assert count_documents(store) == 1_500


def count_documents(store: Path) -> int:
    if not store.exists():
        return 0
    with Waylore.open(store) as memory:
        return memory.stats().documents


def run_at_a_terminal(folder: Path, *arguments: str, types: str = "", **variables: str) -> str:
    """Return what a command prints at a terminal."""
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="80", **variables)
    with subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        os.write(ours, types.encode())
        seen = b""
        while select.select([ours], [], [], HANG_SECONDS)[0]:
            try:
                seen += os.read(ours, 65_536)
            except OSError:  # it ended
                break
    os.close(ours)
    return seen.decode()


def test_colours_are_printed_at_a_terminal_only(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        memory.add("The login needs sessions.", title="login")
    command = ("search", "login")
    assert "\x1b[1;33mlogin" in run_at_a_terminal(tmp_path, *command)
    assert "\x1b[1;33m" not in run_at_a_terminal(tmp_path, *command, NO_COLOR="1")
    assert "\x1b" not in process(tmp_path, *command).stdout
    assert "\x1b" in process(tmp_path, *command, FORCE_COLOR="1").stdout


def test_forget_asks_for_confirmation_at_a_terminal(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        memory.add("The login needs sessions.", uri="login.md")
    assert "Forget 1 document? [y/N]" in run_at_a_terminal(tmp_path, "forget", "login.md", types="n\n")
    assert count_documents(tmp_path / "memory.waylore") == 1
    assert "forgotten: 1 document" in run_at_a_terminal(tmp_path, "forget", "login.md", types="y\n")
    assert count_documents(tmp_path / "memory.waylore") == 0


def test_add_shows_progress_at_a_terminal_only(tmp_path: Path) -> None:
    notes(tmp_path)
    process(tmp_path, "init", "--embedder", "none")
    assert "adding notes" in run_at_a_terminal(tmp_path, "add", "notes")
    assert "adding" not in process(tmp_path, "add", "notes").stderr


def test_completion_knows_commands_and_values(tmp_path: Path) -> None:
    script = process(tmp_path, "completion", "bash").stdout
    assert "complete -o default -F _waylore_completion waylore" in script

    def complete(words: str) -> list[str]:
        variables = {"_WAYLORE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return process(tmp_path, **variables).stdout.split()

    assert complete("waylore se") == ["search", "serve"]
    assert complete("waylore search --method h") == ["hybrid"]
    assert complete("waylore import --format mcp") == ["mcp-memory"]


@pytest.mark.parametrize("arguments", [("--help",), ("search", "login"), ("stats",), ("add", "notes/note.txt")])
def test_commands_import_nothing_heavy(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note.txt").write_text("The login needs sessions.")
    Waylore.open(tmp_path / "memory.waylore").close()
    command = [COMMAND[0], "-c", IMPORTED, *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    imported = set(done.stderr.splitlines()[-1].split())
    assert "waylore.engine" in imported
    assert not imported & set(HEAVY.split())
