"""Read the files of an export: a single file, a folder, or a zip file, unpacked one part at a time.

`Limits.bytes` limits each file, and `Limits.unpacked_bytes` all bytes that are unpacked from a zip file; the sizes
stated in it are not trusted. Nothing is unpacked to disk. The module knows no format.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from waylore.indexing.blocks import ReadError, Source, describe_limit, describe_open_error
from waylore.indexing.encoding import LINE_END, detect_bom

_MAX_CUT_BYTES = 3  # of a character at the end of a file that was cut
_PATTERNS = ("*", "*/*")  # the files of a folder: Slack has a folder for each channel
_ZIP_START = b"PK\x03\x04"
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, KeyError, ValueError)


class ExportText(NamedTuple):
    """The text of one file of an export, with its address and its name without folder and suffix."""

    uri: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Export:
    """An export: the names of its files, relative to it, and a function that returns the bytes of one."""

    source: Source
    names: tuple[str, ...]
    read_bytes: Callable[[str], bytes]
    is_file: bool = False

    def get_uri(self, name: str) -> str:
        """Return the address of a file."""
        return self.source.uri if self.is_file else f"{self.source.uri}/{name}"

    def read_text(self, name: str) -> ExportText:
        """Return the text of a file. Raise ReadError if it cannot be opened, is too large, empty or not text."""
        try:
            text = _decode(self.read_bytes(name))
        except OSError as error:
            raise ReadError(describe_open_error(error)) from error
        if not text.strip():
            raise ReadError("it has no text")
        return ExportText(self.get_uri(name), self._get_title(name), text)

    def _get_title(self, name: str) -> str:
        """Return the name of a file without its suffix; `_chat.txt` has the name of its zip file or folder."""
        stem = posixpath.splitext(posixpath.basename(name))[0]
        if stem != "_chat":
            return stem
        return (Path(self.source.uri).parent.name if self.is_file else self.source.name) or stem


@contextmanager
def open_export(source: Source) -> Iterator[Export]:
    """Open a file, folder or zip file. Raise ReadError if a zip file is broken, encrypted or too large."""
    if source.path.is_dir():
        yield Export(source, tuple(sorted(_list_folder(source.path))), lambda name: _read_file(source, name))
    elif not _is_zip(source.path):
        yield Export(source, (source.path.name,), lambda _: source.read_bytes(), is_file=True)
    else:
        with _open_archive(source.path) as archive:
            yield Export(source, tuple(sorted(_list_archive(archive))), _Unpacker(source, archive).read_bytes)


class _Unpacker:
    """Reads parts of a zip file and counts their bytes."""

    def __init__(self, source: Source, archive: zipfile.ZipFile) -> None:
        self._limits, self._archive = source.limits, archive
        self._left = source.limits.unpacked_bytes

    def read_bytes(self, name: str) -> bytes:
        """Return the bytes of a part; at most the limit is unpacked, even if the zip file states another size."""
        part = self._archive.getinfo(name)
        if part.flag_bits & 1:
            raise ReadError("it is encrypted: save it without a password")
        most = max(min(self._limits.bytes, self._left), 0)
        try:
            with self._archive.open(part) as unpacked:
                content = unpacked.read(most + 1)
        except _BROKEN_ZIP as error:
            raise ReadError(f"it cannot be unpacked: {error}"[:300]) from error
        self._left -= len(content)
        if len(content) > self._limits.bytes:
            raise ReadError(describe_limit("bytes", self._limits.bytes))
        if self._left < 0:
            raise ReadError(describe_limit("unpacked_bytes", self._limits.unpacked_bytes))
        return content


def split_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line, without a list of all lines."""
    start = number = 0
    for number, end in enumerate(LINE_END.finditer(text), start=1):
        yield number, text[start : end.start()]
        start = end.end()
    if start < len(text):
        yield number + 1, text[start:]


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ZIP_START)) == _ZIP_START


def _open_archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _BROKEN_ZIP as error:
        raise ReadError("it is a zip file that is damaged or cut: download it again") from error


def _list_folder(folder: Path) -> Iterator[str]:
    for pattern in _PATTERNS:
        for path in folder.glob(pattern):
            if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                yield path.relative_to(folder).as_posix()


def _list_archive(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the names of the parts, without folders and without the copies that macOS adds."""
    for part in archive.infolist():
        name = posixpath.basename(part.filename)
        if name and not name.startswith(".") and not part.filename.startswith("__MACOSX/"):
            yield part.filename


def _read_file(source: Source, name: str) -> bytes:
    return Source(source.path / name, name, source.limits).read_bytes()


def _decode(content: bytes) -> str:
    """Decode by byte order mark, else as UTF-8; an incomplete character at the end of the file is dropped."""
    encoding = detect_bom(content) or "utf-8"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start < len(content) - _MAX_CUT_BYTES:
            raise ReadError("it is not UTF-8: save the file as UTF-8") from error
        return content[: error.start].decode(encoding)
