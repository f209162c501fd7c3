"""Read one document of a file, and show its blocks, for the tests of readers."""

from pathlib import Path

from waylore.indexing.blocks import Block, Reading
from waylore.indexing.files.formats import read


def read_document(path: Path, content: str | bytes) -> Reading:
    """Return the only document of a file with this content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    [found] = read(path, root=path.parent)
    assert isinstance(found, Reading), found
    return found


def show(found: Reading, *kinds: str) -> list[tuple[str, str]]:
    """Return the kind and the text of each block, in one line."""
    blocks = [block for block in found.blocks if not kinds or block.kind in kinds]
    return [(block.kind, " ".join(found.strip_markup(block)[0].split())) for block in blocks]


def show_marks(found: Reading, block: Block) -> list[tuple[str, str, str]]:
    """Return the kind, text and target of each mark of a block, without markup."""
    marks = [mark for mark in block.marks if mark.kind != "markup"]
    return [(mark.kind, found.text[mark.start : mark.end], mark.target) for mark in marks]
