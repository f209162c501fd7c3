"""Choose the address of each file, and find the addresses under which it may already be stored.

An address is relative to a folder: the given `root`, or else the folder of `waylore.toml` if the file is below it. The
address of any other file is its absolute path. The fingerprint of a file names the folder, so a file whose address
changes is recognised. Links are not resolved in an address, because a path such as `current/docs` should keep its
addresses when its link changes. The module opens no file and no store.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self
from urllib.parse import unquote

from waylore.errors import ArgumentError
from waylore.project import find_project_folder
from waylore.types.identity import identity

UPLOAD_PLACE = "sent"  # place of uploaded files; stored in fingerprints, so the value stays


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The stored data of a file: the folder that its address is relative to, and an id of its content.

    `content` is empty until the file is read to its end. Until then `former` has its former addresses.
    """

    place: str
    content: str = ""
    former: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return a stored fingerprint."""
        head, *former = text.split("\n")
        place, _, content = head.rpartition(":")
        return cls(place, content, tuple(former))

    def __str__(self) -> str:
        return "\n".join([f"{self.place}:{self.content}", *self.former])


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a file, and its place: the folder that it is relative to, or the disk for an absolute path."""

    uri: str
    place: str

    def append(self, name: str) -> "Address":
        """Return the address of a file in this folder; the name is already escaped."""
        return Address(self.uri + name, self.place)

    def names(self, fingerprint: Fingerprint) -> bool:
        """Return whether a fingerprint stored under this address belongs to the same file."""
        return fingerprint.place in (self.place, _make_old_place(self.place))

    def find_file(self, place: str) -> Path | None:
        """Return the file that has this address in another place, if the place is a folder."""
        folder = Path(place)
        return folder / unquote(self.uri) if folder.is_absolute() else None


def locate(path: Path, root: Path | None) -> tuple[Path, Path | None]:
    """Return the absolute paths of a file or folder and of its root. Raise ArgumentError if the root is elsewhere."""
    top = _make_absolute(path)
    if root is None:
        return top, None
    for below, folder in ((top, _make_absolute(root)), (top.resolve(), root.resolve())):
        if folder == below or folder in below.parents:
            return below, folder
    raise ArgumentError(f"root must be a folder that contains {path}, got {str(root)!r:.60}")


def make_address(file: Path, folder: Path | None) -> Address:
    """Return the address of an absolute path: relative to a folder if the path is below it, else the path itself."""
    return begin(file.parent, folder).append(escape(file.name))


def begin(parent: Path, folder: Path | None) -> Address:
    """Return the beginning of the addresses of all files in `parent`: in a folder, or on the disk."""
    if folder is not None:
        for path in (parent, parent.resolve()):
            if folder == path or folder in path.parents:
                return _begin_in(folder, path)
    return _begin_in(Path(parent.anchor), parent)


def find_address(name: str) -> str:
    """Return the address of a file or folder that is added from the working folder without a root."""
    try:
        return make_address(_make_absolute(Path(name)), find_project_folder()).uri
    except (OSError, RuntimeError):  # the working folder was removed, or links lead in a circle
        return name


def list_beginnings(parent: Path) -> Iterator[Address]:
    """Yield the possible beginnings of addresses of files in `parent`, for any root and working folder."""
    for path in dict.fromkeys((parent, parent.resolve())):
        yield from (_begin_in(folder, path) for folder in (path, *path.parents))
    with suppress(FileNotFoundError):  # the working folder was removed
        here = Path.cwd()
        if here != parent and here not in parent.parents and here.anchor == parent.anchor:
            yield Address(f"{escape(Path(os.path.relpath(parent, here)).as_posix())}/", make_place(here))


def escape(path: str) -> str:
    """Return a path with slashes as an address; a # is escaped, because # begins a place inside the file."""
    address = path.replace("%", "%25").replace("#", "%23")
    return address.encode("utf-8", "backslashreplace").decode()


def _begin_in(folder: Path, parent: Path) -> Address:
    path = parent if folder == Path(parent.anchor) else parent.relative_to(folder)
    start = "" if path == Path() else f"{escape(path.as_posix()).rstrip('/')}/"
    return Address(start, make_place(folder))


def _make_absolute(path: Path) -> Path:
    return path.resolve() if ".." in path.parts else path.absolute()


def make_place(folder: Path) -> str:
    """Return the stored form of the place of addresses in a folder."""
    return str(folder).replace("\n", "%0A")  # a line break ends the place in a fingerprint


@lru_cache
def _make_old_place(place: str) -> str:
    """Return the place as version 0.1 stored it: an id of the folder."""
    return identity("place", place)[:8]
