"""Find when the files of a folder under Git were last changed by a commit: one `git log` for the whole folder.

A time is valid only for the committed content. A file that differs from its commit, or that Git does not track, has no
time. The same holds for files of a shallow clone, because its oldest commit seems to add everything, and for files that
the last 10,000 commits of the folder did not change. Git runs without programs that a repository can configure. If Git
is not installed, or no folder above has a `.git`, nothing is run.
"""

import hashlib
import re
import shutil
import subprocess  # nosec B404 (it starts Git only)
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from os import fsdecode
from pathlib import Path
from typing import IO

from waylore.deadline import check_each

MAX_COMMITS = 10_000
READ_BYTES = 65_536
SECONDS = 60  # time limit of a command that reads no history
_TIME = re.compile(rb"\n?\x01(\d+)")
# A repository must neither start programs nor fetch anything.
_OPTIONS = ("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never")
_HASHES = {40: hashlib.sha1, 64: hashlib.sha256}  # hash function by the length of a blob's id


@dataclass(frozen=True, slots=True)
class Commit:
    """The last commit that changed a file: its time, and the id of the committed content."""

    at: datetime
    blob: str

    def __str__(self) -> str:
        return f"{self.blob}@{self.at.isoformat()}"

    def holds_for(self, file: Path) -> bool:
        """Return whether a file still has the content of the commit, apart from line ends."""
        content = file.read_bytes()
        return self.blob in (_hash_blob(content, self.blob), _hash_blob(content.replace(b"\r\n", b"\n"), self.blob))


def find_commit_time(commit: Commit | None, file: Path) -> datetime | None:
    """Return the commit time of the content of a file; None if the content differs or was never committed."""
    with suppress(OSError):  # the reader reports this error
        return commit.at if commit and commit.holds_for(file) else None
    return None


def find_commits(folder: Path, files: Collection[Path]) -> dict[Path, Commit]:
    """Return the last commit of each tracked file below a folder; nothing if the folder is not under Git."""
    git = shutil.which("git") if any((above / ".git").exists() for above in (folder, *folder.parents)) else None
    if git is None:
        return {}
    command = [git, *_OPTIONS, "-C", str(folder)]
    with suppress(OSError, subprocess.SubprocessError):
        if _run(command, "rev-parse", "--is-shallow-repository").strip() == b"false":
            blobs = _list_blobs(command)
            named = {file.relative_to(folder).as_posix(): file for file in files}
            times = _find_times(command, named.keys() & blobs.keys())
            return {named[name]: Commit(at, blobs[name]) for name, at in times.items()}
    return {}


def _list_blobs(command: list[str]) -> dict[str, str]:
    """Return the ids of the committed files, by their paths below the folder."""
    entries = (entry.partition(b"\t") for entry in _run(command, "ls-tree", "-r", "-z", "HEAD", ".").split(b"\0"))
    return {fsdecode(name): head.split()[2].decode() for head, _, name in entries if head.startswith(b"100")}


def _find_times(command: list[str], names: Collection[str]) -> Mapping[str, datetime]:
    """Return when each file was last changed. Reading ends as soon as all files are found."""
    found: dict[str, datetime] = {}
    log = ("log", f"--max-count={MAX_COMMITS}", "--format=%x01%at", "--name-only", "--relative", "--no-renames", "-z")
    safe = ("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-mailmap", "--ignore-submodules=all")
    with subprocess.Popen(  # noqa: S603 # nosec B603 (no argument comes from a repository)
        [*command, *log, *safe, "HEAD", "--", "."], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as git:
        try:
            at = datetime.fromtimestamp(0, UTC)
            for token in check_each(_split(git.stdout)) if names else ():
                if time := _TIME.fullmatch(token):
                    at = datetime.fromtimestamp(int(time[1]), UTC)
                elif (name := fsdecode(token.removeprefix(b"\n"))) in names:
                    found.setdefault(name, at)
                if len(found) == len(names):
                    break
        finally:
            git.kill()
    return found


def _split(stream: IO[bytes] | None) -> Iterator[bytes]:
    """Yield the parts of a stream between zero bytes."""
    rest = b""
    while stream is not None and (chunk := stream.read(READ_BYTES)):
        *parts, rest = (rest + chunk).split(b"\0")
        yield from parts


def _run(command: list[str], *arguments: str) -> bytes:
    done = subprocess.run(  # noqa: S603 # nosec B603 (as above)
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=SECONDS
    )
    return done.stdout


def _hash_blob(content: bytes, like: str) -> str:
    return _HASHES[len(like)](b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
