"""Run the test suite beside a load that keeps all cores busy, and record the result.

    python -m tools.busy [--load COMMAND] [PYTEST ARGUMENT ...]

The load is one endless loop for each core, at normal priority. `--load` runs a long benchmark that keeps all cores busy
instead, and loops when it has ended. Each run adds a line to `tools/busy.jsonl`: the commit, the load, the time, the
counts and the failed tests. Three green lines show that no test depends on an idle machine.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "tools" / "busy.jsonl"
LOOP = f"{shlex.quote(sys.executable)} -c 'while True: pass'"
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed)")


def run_tests(arguments: list[str]) -> tuple[int, str]:
    """Run pytest and return its exit code and output, which is also printed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "3",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        *arguments,
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            sys.stdout.write(line)
            lines.append(line)
    return process.returncode, "".join(lines)


@contextmanager
def keep_cores_busy(load: str) -> Iterator[None]:
    """Run `load`, then an endless loop for each core, until the block ends."""
    loops = " & ".join([LOOP] * (os.cpu_count() or 1))
    process = subprocess.Popen(["sh", "-c", f"{load}; {loops}"], process_group=0)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run the suite once under load and record the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", default=":", help="a shell command; endless loops follow it")
    options, of_pytest = parser.parse_known_args(arguments)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    start = time.monotonic()
    with keep_cores_busy(options.load):
        code, output = run_tests(of_pytest)
    result = {
        "commit": commit.stdout.strip(),
        "load": options.load,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - start),
        "is_green": code == 0,
        "counts": {name: int(number) for number, name in COUNT.findall(output.splitlines()[-1])},
        "failed": re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE),
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
    print(json.dumps(result, indent=2))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
