"""Check zip files before they are read: real sizes, numbers of tags and encryption."""

import io
import zipfile

from waylore.indexing.blocks import Limits, ReadError, describe_limit

_STEP_BYTES = 1_000_000
_TAGS_PER_BLOCK = 10  # approximate limit; the memory of a tree grows with its tags, not with its bytes
_MARKUP = (".xml", ".rels", ".opf", ".xhtml", ".html", ".htm", ".ncx")


def check_archive(content: bytes, limits: Limits) -> None:
    """Unpack every part once and check its size, because the sizes in a zip file may be wrong."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        left, tags = limits.unpacked_bytes, 0
        if sum(part.file_size for part in archive.infolist()) > left:
            raise ReadError(describe_limit("unpacked_bytes", left))
        for part in archive.infolist():
            if part.flag_bits & 1:
                raise ReadError("it is encrypted: save it without a password")
            with archive.open(part) as unpacked:
                while step := unpacked.read(_STEP_BYTES):
                    tags += step.count(b"<") if part.filename.endswith(_MARKUP) else 0
                    if tags > limits.blocks * _TAGS_PER_BLOCK:
                        raise ReadError(describe_limit("blocks", limits.blocks))
                    left -= len(step)
                    if left < 0:
                        raise ReadError(describe_limit("unpacked_bytes", limits.unpacked_bytes))
