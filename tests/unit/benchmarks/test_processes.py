"""Figures of processes count those that still run; one that has ended since it was listed is left out."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from benchmarks.processes import count_seconds, list_trees, read_living

WAIT = "import sys; sum(range(3_000_000)); print(flush=True); sys.stdin.read()"


@contextmanager
def start_process() -> Iterator[psutil.Process]:
    """Start a process that has used some processor time and waits."""
    command = [sys.executable, "-c", WAIT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout
        started.stdout.readline()
        yield psutil.Process(started.pid)


def test_process_that_has_ended_is_left_out() -> None:
    with start_process() as running:
        with start_process() as other:
            listed = [running, other]
            assert count_seconds(listed) > count_seconds([running]) > 0
        assert count_seconds(listed) == count_seconds([running]) > 0
        assert [m.pss > 0 for m in read_living(psutil.Process.memory_full_info, listed)] == [True]


def test_children_are_listed_behind_their_parent() -> None:
    with start_process() as child:
        first, *others = list_trees([psutil.Process()])
        assert first == psutil.Process()
        assert child in others
