"""Look for secrets in all tracked files: `python -m tools.supply.leaks [--history]`.

The rules are those of detect-secrets that know the format of a key. Rules by entropy take every hash for a secret, so
they are left out. `--history` looks at every line that any commit added, which takes minutes.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector
from tools.supply.files import list_files

ROOT = Path(__file__).parents[2]
WITHOUT_FORMAT = {"Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector", "IPPublicDetector"}
EXAMPLES = {"password", "secret", "hunter2", "sesame", "…"}  # what docs and tests write in place of a password
SAMPLES = ("tests/unit/indexing/secrets", "docs/how-to/secrets.md")  # secrets made up for tests
LINES_AT_ONCE = 50_000


def load_detectors() -> list[RegexBasedDetector]:
    """Return the detectors that know a format."""
    known: Iterable[type[RegexBasedDetector]] = get_mapping_from_secret_type_to_class().values()
    return [kind() for kind in known if kind.__name__ not in WITHOUT_FORMAT]


def find_secrets(text: str, detectors: Iterable[RegexBasedDetector]) -> Iterator[tuple[int, str]]:
    """Yield the line and the kind of each secret; a template such as `{password}` is none."""
    for detector in detectors:
        for pattern in detector.denylist:
            for match in pattern.finditer(text):
                value = next(iter(detector.analyze_string(match[0])), "")  # some check more than their pattern
                inside_word = match[0][:1].isalnum() and text[: match.start()][-1:].isalnum()
                if value and not inside_word and "{" not in value and value not in EXAMPLES:
                    yield text.count("\n", 0, match.start()) + 1, detector.secret_type


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
    detectors = load_detectors()
    found = [f"{name}:{line}: {kind}" for name, text in texts for line, kind in find_secrets(text, detectors)]
    if found:
        sys.exit("\n".join([*found, "secrets in the repository; revoke them, then remove them"]))
    print("no secrets found")


if __name__ == "__main__":
    main()
