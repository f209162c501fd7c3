"""Look for secrets in all tracked files: `python -m tools.supply.leaks [--history]`.

The rules are those by which Waylore leaves secrets out of what is added (`waylore.indexing.secrets`). A repository also
has examples of secrets, in docs and tests, which are listed here. `--history` looks at every line that any commit
added, which takes minutes.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.supply.files import list_files

from waylore.indexing.secrets.leave_out import PRIVATE, find_secrets

ROOT = Path(__file__).parents[2]
EXAMPLES = {"hunter2", "sesame", "4539148803436467"}  # what docs and tests write in place of a secret
# Secrets made up for tests, and answers of an earlier version, which have the hashes of two keys.
SAMPLES = ("tests/unit/indexing/secrets", "docs/how-to/secrets.md", "tests/legacy/kept/answers.json")
LINES_AT_ONCE = 50_000


def find_leaks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the kind of each secret; a template such as `{password}` and an example are none."""
    for secret in find_secrets(text):
        value = text[secret.start : secret.end]
        if secret.kind != PRIVATE and "{" not in value and value not in EXAMPLES:
            yield text.count("\n", 0, secret.start) + 1, secret.kind


def read_tracked() -> Iterator[tuple[str, str]]:
    """Yield each tracked text file with its name."""
    for name in list_files(ROOT):
        content = b"" if name.startswith(SAMPLES) else (ROOT / name).read_bytes()
        if b"\0" not in content:
            yield name, content.decode("utf-8", "replace")


def read_history() -> Iterator[tuple[str, str]]:
    """Yield what each commit added, many lines at a time."""
    left_out = [f":!{name}" for name in SAMPLES]
    command = [
        "git",
        "log",
        "--all",
        "--patch",
        "--unified=0",
        "--no-color",
        "--format=commit %h",
        "--",
        ".",
        *left_out,
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, errors="replace") as log:
        added: list[str] = []
        commit = first = ""
        for line in log.stdout or ():
            if line.startswith("commit "):
                commit = line.split()[1]
                first = first or commit
            elif line.startswith("+"):
                added.append(line[1:])
            if len(added) >= LINES_AT_ONCE:
                yield f"history from {first} back to {commit}", "".join(added)
                added, first = [], commit
        yield f"history from {first} back to {commit}", "".join(added)
    if log.returncode:
        sys.exit("git log failed; nothing can be said about the history")


def main() -> None:
    """Print where secrets are; fail if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", action="store_true", help="look at every line that any commit added")
    texts = read_history() if parser.parse_args().history else read_tracked()
    found = [f"{name}:{line}: {kind}" for name, text in texts for line, kind in find_leaks(text)]
    if found:
        sys.exit("\n".join([*found, "secrets in the repository; revoke them, then remove them"]))
    print("no secrets found")


if __name__ == "__main__":
    main()
