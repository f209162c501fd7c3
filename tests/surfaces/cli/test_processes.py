"""The command line as a process: first use, Ctrl-C, colours, completion, and what it takes to start."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import apsw
import pytest

from surfaces.commands import COMMAND, environment, notes, process
from waylore import Waylore

HEAVY = (
    "fastembed onnxruntime psycopg pyarrow mcp fastapi uvicorn httpx lxml pypdf docx spacy model2vec sklearn"
)
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


def test_first_use(tmp_path: Path) -> None:
    notes(tmp_path)
    begun = process(tmp_path, "init", "--embedder", "none")
    assert begun.returncode == 0, begun.stderr
    assert begun.stdout.splitlines()[-1] == "next: waylore add PATH"
    assert process(tmp_path, "add", "notes").stdout.startswith("3 files: 3 documents added")
    found = process(tmp_path, "search", "Who owns what Login keeps its tokens in?")
    assert "Sessions —owner→ Mara" in found.stdout
    assert found.stderr == ""
    assert process(tmp_path, "doctor").returncode == 0


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        (("search", "x"), 3, "there is no store at memory.waylore"),
        (("search", "x", "--method", "best", "--store", "here.waylore"), 2, "there is no method 'best'"),
        (("search", " ", "--store", "here.waylore"), 2, "the question is empty"),
        (("stats", "--store", "postgresql://nobody@127.0.0.1:1/x"), 4, "cannot be reached"),
        (("stats", "--store", "note.txt"), 4, "that it is a Waylore file"),
        (("stats", "--store", "ftp://x"), 2, "no store for ftp://"),
        (("stats", "--store", "tomorrow.waylore"), 5, "this Waylore knows"),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_code(
    tmp_path: Path, asked: tuple[str, ...], code: int, says: str
) -> None:
    (tmp_path / "note.txt").write_text("not a database, but a text that is long enough to be looked at\n" * 50)
    for name in ("here.waylore", "tomorrow.waylore"):
        Waylore.open(tmp_path / name).close()
    with apsw.Connection(str(tmp_path / "tomorrow.waylore")) as db:
        db.execute("INSERT INTO migrations VALUES (99, 'tomorrow', 0)")
    done = process(tmp_path, *asked)
    assert done.returncode == code
    assert done.stderr.startswith("waylore: ")
    assert says in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_ctrl_c_leaves_everything_whole_and_the_next_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1_500):
        text = f"# Service {number}\n\nService {number} needs Service {number + 1}, says Team {number % 7}.\n"
        (folder / f"{number}.md").write_text(text)
    store = tmp_path / "memory.waylore"
    adding = subprocess.Popen(
        [*COMMAND, "add", "many"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while adding.poll() is None and documents(store) == 0:
        time.sleep(0.1)
    adding.send_signal(signal.SIGINT)
    out, err = adding.communicate(timeout=10)
    assert (adding.returncode, out) == (130, "")
    assert "waylore: stopped; what is written is whole. Run the same again" in err
    assert "Traceback" not in err
    written = documents(store)
    assert 0 < written < 1_500
    again = json.loads(process(tmp_path, "add", "many", "--json").stdout)
    assert written <= again["unchanged"] + 256
    assert documents(store) == 1_500


def documents(store: Path) -> int:
    if not store.exists():
        return 0
    with Waylore.open(store) as memory:
        return memory.stats().documents


def at_a_terminal(folder: Path, *arguments: str, types: str = "", **variables: str) -> str:
    """What somebody sees who runs a command at a terminal."""
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="80", **variables)
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        os.write(ours, types.encode())
        seen = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                seen += os.read(ours, 65_536)
            except OSError:  # it ended
                break
    os.close(ours)
    return seen.decode()


def test_colours_are_for_those_who_look(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        memory.add("The login needs sessions.", title="login")
    asked = ("search", "login")
    assert "\x1b[1;33mlogin" in at_a_terminal(tmp_path, *asked)
    assert "\x1b[1;33m" not in at_a_terminal(tmp_path, *asked, NO_COLOR="1")
    assert "\x1b" not in process(tmp_path, *asked).stdout
    assert "\x1b" in process(tmp_path, *asked, FORCE_COLOR="1").stdout


def test_forgetting_asks_at_a_terminal(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        memory.add("The login needs sessions.", uri="login.md")
    assert "Forget 1 document? [y/N]" in at_a_terminal(tmp_path, "forget", "login.md", types="n\n")
    assert documents(tmp_path / "memory.waylore") == 1
    assert "forgotten: 1 document" in at_a_terminal(tmp_path, "forget", "login.md", types="y\n")
    assert documents(tmp_path / "memory.waylore") == 0


def test_a_bar_is_shown_at_a_terminal(tmp_path: Path) -> None:
    notes(tmp_path)
    assert "adding notes" in at_a_terminal(tmp_path, "add", "notes")
    assert "adding" not in process(tmp_path, "add", "notes").stderr


def test_the_shell_completes_commands_and_values(tmp_path: Path) -> None:
    script = process(tmp_path, "completion", "bash").stdout
    assert "complete -o default -F _waylore_completion waylore" in script

    def completed(words: str) -> list[str]:
        asked = {"_WAYLORE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return process(tmp_path, **asked).stdout.split()

    assert completed("waylore se") == ["search", "serve"]
    assert completed("waylore search --method h") == ["hybrid"]
    assert completed("waylore import --format mcp") == ["mcp-memory"]


@pytest.mark.parametrize("asked", [("--help",), ("search", "login"), ("stats",), ("add", "notes/note.txt")])
def test_starting_imports_nothing_heavy(tmp_path: Path, asked: tuple[str, ...]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note.txt").write_text("The login needs sessions.")
    Waylore.open(tmp_path / "memory.waylore").close()
    command = [COMMAND[0], "-c", IMPORTED, *asked]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=60
    )
    imported = set(done.stderr.splitlines()[-1].split())
    assert "waylore.engine" in imported
    assert not imported & set(HEAVY.split())
