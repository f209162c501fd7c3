"""Kill a writer again and again with SIGKILL during its work on one file, and check the whole file in the end.

    python -m benchmarks.kills [--kills 1000] [--folder FOLDER]

A writer adds documents, forgets some of them, and reports each step before and after it. Each writer is killed a random
time after its first acknowledged step, every eighth while it opens the file. In the end every acknowledged document must be there, none that was forgotten, every page must have its
checksum, every document its digest, and all indexes and counts must agree. Exits with 1 if one of these is not so.
"""

import argparse
import os
import random
import select
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from waylore import Waylore
from waylore.service.integrity import list_disagreements
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages

LONGEST_SECONDS = 0.3  # after which a writer is killed
KILLED_EARLY = 8  # of so many writers one is killed before it has written
MAX_WAIT_SECONDS = 60.0  # for the first step of a writer on a busy machine
FORGET_EVERY = 2  # documents


@dataclass(slots=True)
class Expected:
    """The documents that must be stored and must not be, and those whose last step was interrupted."""

    stored: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    steps: Counter[str] = field(default_factory=Counter)

    def take(self, report: str) -> None:
        """Take the report of a writer: a step that begins (`? add 7`), or has ended (`! add 7`)."""
        for line in report.splitlines():
            state, verb, name = line.split()
            if state == "?":
                self.open.add(name)
                continue
            self.open.discard(name)
            self.steps[verb] += 1
            (self.stored if verb == "add" else self.forgotten).add(name)
            (self.forgotten if verb == "add" else self.stored).discard(name)


def write(path: Path, pipe: int, writer: int) -> None:
    """Add and forget documents without end, and report each step."""
    with Waylore.open(path) as memory:
        for number in count():
            name = f"{writer}-{number}"
            os.write(pipe, f"? add {name}\n".encode())
            memory.add(f"Note {name}: Person {number % 50} lives in Town {number % 7}.", uri=name)
            os.write(pipe, f"! add {name}\n".encode())
            if number % FORGET_EVERY == FORGET_EVERY - 1:
                old = f"{writer}-{number - 1}"
                os.write(pipe, f"? forget {old}\n".encode())
                memory.forget(old)
                os.write(pipe, f"! forget {old}\n".encode())


def start_and_kill(path: Path, writer: int, seconds: float) -> str:
    """Start a writer, kill it some time after its first step, and return what it has reported."""
    reader, pipe = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        write(path, pipe, writer)
    os.close(pipe)
    lines = b"" if writer % KILLED_EARLY == 0 else wait_for_step(reader)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    with os.fdopen(reader, "rb") as report:
        lines += report.read()
    return lines[: lines.rfind(b"\n") + 1].decode()


def wait_for_step(reader: int) -> bytes:
    """Read what a writer reports until it has acknowledged a step."""
    lines, end = b"", time.monotonic() + MAX_WAIT_SECONDS
    while b"!" not in lines and time.monotonic() < end:
        ready, _, _ = select.select([reader], [], [], MAX_WAIT_SECONDS)
        lines += os.read(reader, 65_536) if ready else b""
    return lines


def check(path: Path, expected: Expected) -> dict[str, int]:
    """Return how many documents are missing or came back, and what is damaged."""
    pages = check_pages(str(path))
    with closing(SqliteStore(path)) as store:
        stored = {indexed.document.uri for indexed in store.export()}
        disagreements = list(list_disagreements(store))
    return {
        "missing documents": len(expected.stored - stored - expected.open),
        "documents that came back": len((expected.forgotten & stored) - expected.open),
        "damaged pages": len(pages.damaged),
        "writes lost in the log": pages.lost_writes,
        "disagreements": len(disagreements),
    }


def main(arguments: list[str]) -> int:
    """Kill writers, check the file, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--folder", type=Path, help="for the file; a temporary one without it")
    options = parser.parse_args(arguments)
    folder = Path(mkdtemp(dir=options.folder))
    chosen, expected, path = random.Random(33), Expected(), folder / "kills.waylore"
    for writer in range(options.kills):
        expected.take(start_and_kill(path, writer, chosen.uniform(0, LONGEST_SECONDS)))
    problems = check(path, expected)
    rows = [
        ("kills", options.kills),
        ("acknowledged additions", expected.steps["add"]),
        ("acknowledged forgets", expected.steps["forget"]),
        ("interrupted steps", len(expected.open)),
        *problems.items(),
    ]
    print("\n".join(f"{name:26} {number:8,}" for name, number in rows))
    shutil.rmtree(folder)
    return 1 if any(problems.values()) or expected.steps["add"] < options.kills // 2 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
