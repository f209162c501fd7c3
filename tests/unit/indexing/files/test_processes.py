"""Read files in a process of its own: its limits, its end, and what it sends, with a reader of another package."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Waylore
from waylore.indexing.blocks import Block, Limits, Mark, Reading, Skipped, Source
from waylore.indexing.files import processes
from waylore.indexing.files.formats import SMALL_BYTES, read, read_source

pytestmark = pytest.mark.slow
MODULE = """
import os, signal, socket, sys, time
from pathlib import Path
from waylore.indexing.blocks import Block, Reading

def read_task(source):
    word, _, value = source.path.read_text().partition(" ")
    text = str(globals()[word](value)) or "nothing"
    yield Reading(source.uri, source.name, text, (Block("paragraph", 0, len(text)),))

def pid(_): return os.getpid()
def spin(seconds):
    end = time.process_time() + float(seconds)
    while time.process_time() < end: pass
    return os.getpid()
def sleep(seconds): time.sleep(float(seconds))
def hoard(size): return len(bytearray(int(size)))
def crash(_): os.kill(os.getpid(), signal.SIGSEGV)
def secret(name): return os.environ.get(name, "unset")
def say(words): print(words); sys.stdout.flush(); return words
def open_files(count): return len([open("/dev/null") for _ in range(int(count))])
def connect(port):
    try:
        socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()
        return "connected"
    except OSError as error:
        return error.strerror
"""
UNSHARE = "import ctypes, sys; libc = ctypes.CDLL(None); sys.exit(all(libc.unshare(f) for f in (1 << 30, 5 << 28)))"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with a reader for .task files."""
    folder = tmp_path / "package"
    info = folder / "tasks-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "tasks.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tasks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[waylore.readers]\ntask = tasks:read_task\n")
    monkeypatch.syspath_prepend(folder)
    processes.kill_idle()
    yield
    processes.kill_idle()


def make_task(folder: Path, task: str, limits: Limits | None = None) -> Source:
    path = folder / f"{task.replace(' ', '-')}.task"
    path.write_text(task)
    return Source(path, path.name, limits or Limits())


def run_task(folder: Path, task: str, limits: Limits | None = None) -> str:
    """Return the text of a task, or the reason why it was skipped."""
    [item] = read_source(make_task(folder, task, limits))
    return item.reason if isinstance(item, Skipped) else item.text


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> bool:
    until = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(pid)


# -- limits --------------------------------------------------------------------------------------------


def test_process_is_used_again_and_is_not_this_one(tmp_path: Path) -> None:
    first, second = (int(run_task(tmp_path, f"pid {n}")) for n in range(2))
    assert first == second != os.getpid()
    assert "tasks" not in sys.modules


def test_file_beyond_its_processor_time_is_skipped_and_the_process_replaced(tmp_path: Path) -> None:
    before = int(run_task(tmp_path, "pid 1"))
    reason = run_task(tmp_path, "spin 60", Limits(seconds=1))
    assert reason.startswith("reading it takes more than 1 seconds of processor time")
    assert "files.seconds" in reason
    assert not is_running(before)
    assert int(run_task(tmp_path, "pid 2")) != before


@pytest.mark.full
def test_processor_time_counts_anew_for_each_file(tmp_path: Path) -> None:
    pids = {run_task(tmp_path, f"spin 0.8{n}", Limits(seconds=3)) for n in range(6)}
    assert len(pids) == 1
    assert pids.pop().isdigit()


def test_file_that_only_waits_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 1)
    assert "more than 1 seconds" in run_task(tmp_path, "sleep 600", Limits(seconds=1))


def test_file_beyond_its_memory_is_skipped_and_the_process_replaced(tmp_path: Path) -> None:
    before = int(run_task(tmp_path, "pid 1"))
    assert run_task(tmp_path, "hoard 50000000", Limits(memory=200_000_000)) == "50000000"
    assert "more than 200,000,000 bytes of memory" in run_task(tmp_path, "hoard 300000000", Limits(memory=200_000_000))
    assert not is_running(before)


def test_open_files_are_limited(tmp_path: Path) -> None:
    assert run_task(tmp_path, "open_files 20") == "20"
    assert "Too many open files" in run_task(tmp_path, "open_files 100")


def test_crash_of_a_reader_is_a_reason(tmp_path: Path) -> None:
    assert "ended with SIGSEGV" in run_task(tmp_path, "crash now")
    assert run_task(tmp_path, "say hello") == "hello"


def test_process_has_no_network_where_the_system_allows_that(tmp_path: Path) -> None:
    allowed = subprocess.run([sys.executable, "-c", UNSHARE], check=False).returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = run_task(tmp_path, f"connect {server.getsockname()[1]}")
    assert found == ("Network is unreachable" if allowed else "connected")


def test_process_gets_no_secrets_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert run_task(tmp_path, "secret OPENAI_API_KEY") == "unset"


def test_skipped_file_is_in_the_report(tmp_path: Path) -> None:
    for task in ("spin 60", "say Ada sails."):
        make_task(tmp_path, task)
    (tmp_path / "note.md").write_text("Ada met Charles Babbage.")
    with Waylore.open(tmp_path / "a.waylore") as memory:
        report = memory.add_files(tmp_path, root=tmp_path, limits=Limits(seconds=1))
        assert {document.uri for document in memory.documents()} >= {"say-Ada-sails..task", "note.md"}
    assert {skipped.uri for skipped in report.skipped} >= {"spin-60.task"}


# -- the end of a process ------------------------------------------------------------------------------


class Stopped(Exception):
    """Raised by a caller that stops the reading."""


def test_reading_that_is_stopped_kills_the_process(tmp_path: Path) -> None:
    pid = int(run_task(tmp_path, "pid 1"))

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(read_source(make_task(tmp_path, "spin 60"), stop))
    assert wait_for_end(pid)


def test_reading_that_is_not_finished_kills_the_process(tmp_path: Path) -> None:
    pid = int(run_task(tmp_path, "pid 1"))
    with closing(processes.read_in_process(make_task(tmp_path, "say hello"), lambda: None)) as items:  # type: ignore[type-var]
        next(items)
    assert wait_for_end(pid)


def test_progress_that_raises_stops_a_long_file(tmp_path: Path) -> None:
    pid = int(run_task(tmp_path, "pid 1"))

    def stop(_: object) -> None:
        raise Stopped

    with Waylore.open(tmp_path / "a.waylore") as memory, pytest.raises(Stopped):
        memory.add_files(make_task(tmp_path, "spin 60").path, progress=stop)
    assert wait_for_end(pid)


READ_LONG = """
import os, sys
from pathlib import Path
from waylore.indexing.blocks import Limits, Source
from waylore.indexing.files.formats import read_source
sys.path.insert(0, sys.argv[1])
[first] = read_source(Source(Path(sys.argv[2]), "a", Limits()))
print(first.text, flush=True)
list(read_source(Source(Path(sys.argv[3]), "b", Limits())))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_process_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    short, long = (make_task(tmp_path, task).path for task in ("pid 1", "spin 60"))
    command = [sys.executable, "-c", READ_LONG, str(tmp_path / "package"), str(short), str(long)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        time.sleep(1)
        assert is_running(pid)
        parent.send_signal(number)
        parent.wait()
    assert wait_for_end(pid)


# -- which files, and what is sent ---------------------------------------------------------------------

LIST_PROCESSES = """
import sys
from pathlib import Path
from waylore.indexing.files.formats import read
for item in read(Path(sys.argv[1])): pass
print("waylore.indexing.files.processes" in sys.modules)
"""
SMALL = {"a.md": "# A\n\nText.\n", "a.txt": "Text.\n", "a.jsonl": '{"text": "a"}\n', "a.csv": "text\na\n"}
LONG_ROWS = '{"text": "Ada sails."}\n' * (SMALL_BYTES // 20)


@pytest.mark.parametrize(
    ("name", "text", "needs_process"),
    [
        *((name, text, False) for name, text in SMALL.items()),
        ("a.py", "def f():\n    pass\n", False),
        ("a.json", "[1]", False),
        ("a.jsonl", LONG_ROWS, False),
        ("a.txt", LONG_ROWS, False),
        ("a.md", LONG_ROWS, True),
        ("a.py", "x = 1\n" * (SMALL_BYTES // 6 + 1), True),
        ("a.json", f"[{'1,' * SMALL_BYTES}1]", True),
        ("a.html", "<p>Text.", True),
        ("a.pdf", "%PDF-1.7", True),
    ],
)
def test_only_files_that_may_take_long_need_a_process(
    tmp_path: Path, name: str, text: str, *, needs_process: bool
) -> None:
    (tmp_path / name).write_text(text)
    command = [sys.executable, "-c", LIST_PROCESSES, str(tmp_path / name)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(needs_process)


def test_unknown_format_starts_no_process(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("text")
    [skipped] = read(tmp_path / "a.xyz", root=tmp_path)
    assert skipped == Skipped("a.xyz", "there is no reader for .xyz files")
    assert not processes._idle


def test_long_title_and_headings_are_cut(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# {'word ' * 10_000}\n\nText.\n")
    [reading] = read(tmp_path / "a.md")
    assert isinstance(reading, Reading)
    assert len(reading.title) == len(reading.blocks[-1].headings[0]) == 1_000


texts = st.text(max_size=20)
paths = st.lists(texts, max_size=3).map(tuple)
marks = st.builds(Mark, st.sampled_from(["code", "link"]), st.integers(0), st.integers(0), texts)
blocks = st.builds(
    Block,
    *(st.sampled_from(["heading", "row"]), st.integers(0), st.integers(0), paths, texts),
    st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
    st.lists(marks, max_size=2).map(tuple),
)
scalars = texts | st.integers() | st.booleans() | st.floats(allow_nan=False)
metadata = st.dictionaries(texts, scalars | st.lists(scalars, max_size=3), max_size=3)
readings = st.builds(Reading, texts, texts, texts, st.lists(blocks, max_size=4).map(tuple), metadata)


@given(readings | st.builds(Skipped, texts, texts))
def test_what_a_process_sends_arrives_unchanged(item: Reading | Skipped) -> None:
    assert processes.decode_item(processes.encode_item(item)) == item
