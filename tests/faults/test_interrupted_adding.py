"""Adding a folder is killed many times at random while the folder changes; the store ends up the same.

The test compares whole exports with those of a store that added the same folder in one run.
"""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from faults.checking import check_file
from faults.folders import edit, open_file

KILLS = [6, pytest.param(50, marks=pytest.mark.full)]
FILES, EDITS = 140, 60
LATEST = 0.5  # seconds of work before a kill, at most
COMPARED = 10  # kills between two comparisons
TESTS = Path(__file__).parents[1]

Adder = subprocess.Popen[str]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("most", KILLS)
def test_interrupted_adding_gives_the_same_store(tmp_path: Path, most: int) -> None:
    path, folder = tmp_path / "waylore.db", tmp_path / "folder"
    folder.mkdir()
    chosen = Random(4)
    kills = tries = 0
    while kills < most:
        tries += 1
        edit(folder, chosen, files=FILES, edits=EDITS)
        kills += kill_at_work(path, folder, chosen.uniform(0, LATEST))
        if tries % COMPARED == 0 or kills == most:
            compare_with_one_run(path, folder, tmp_path / f"{tries}.db")
        assert tries < 4 * most, "adding ends before it can be killed"
    check_file(path)


def kill_at_work(path: Path, folder: Path, after: float) -> bool:
    """Kill the process after a while; return whether it was still working."""
    with subprocess.Popen(
        [sys.executable, "-m", "faults.crash_adder", str(path), str(folder)],
        cwd=TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as adder:
        assert adder.stdin
        assert adder.stdout
        assert adder.stdout.readline() == "ready\n"
        adder.stdin.write("add\n")
        adder.stdin.flush()
        time.sleep(after)
        was_at_work = not select.select([adder.stdout], [], [], 0)[0]
        assert adder.poll() is None, "the process ended by itself"
        os.killpg(adder.pid, signal.SIGKILL)
        adder.stdin.close()
    return was_at_work


def compare_with_one_run(path: Path, folder: Path, fresh: Path) -> None:
    exports = []
    for file in (path, fresh):
        with open_file(file) as waylore:
            waylore.add_files(folder, root=folder, prune=True)
            again = waylore.add_files(folder, root=folder, prune=True)
            assert (again.documents, again.forgotten, again.skipped) == (0, 0, ())
            waylore.export(file.with_suffix(".export"))
            exports.append(file.with_suffix(".export").read_bytes())
    assert exports[0] == exports[1]
    assert len(exports[0]) > 100_000
