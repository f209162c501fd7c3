"""Write blocks one after another into one text, for formats whose own text is mostly markup."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from waylore.indexing.blocks import Block, BlockKind, Mark, ReadError, describe_limit
from waylore.indexing.encoding import make_storable

_LINES = ("item", "term", "row", "field")  # blocks of these kinds follow each other without a blank line


class TextWriter:
    """Collects the text of a document and its blocks; offsets of marks are given within a block."""

    def __init__(self, max_blocks: int) -> None:
        self.blocks: list[Block] = []
        self._max_blocks = max_blocks
        self._pieces: list[str] = []
        self._length = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add(
        self,
        kind: BlockKind,
        text: str,
        headings: tuple[str, ...] = (),
        *,
        key: str = "",
        cells: Iterable[tuple[str, str]] = (),
        marks: Sequence[Mark] = (),
        about: str = "",
    ) -> None:
        """Add a block, unless its text is blank. Raise ReadError if there are too many."""
        shown = make_storable(text)
        if not shown.strip():
            return
        if len(self.blocks) >= self._max_blocks:
            raise ReadError(describe_limit("blocks", self._max_blocks))
        if self.blocks:
            last = self.blocks[-1].kind
            is_list = kind in _LINES and (last in _LINES or (kind == "field" and last == "heading"))
            self._write("\n" if is_list else "\n\n")
        start = self._length
        self._write(shown)
        pairs = tuple((make_storable(column), make_storable(cell)) for column, cell in cells)
        placed = (replace(m, start=start + m.start, end=start + m.end) for m in marks if m.start < m.end)
        ordered = tuple(sorted(placed, key=lambda mark: (mark.start, -mark.end)))
        self.blocks.append(Block(kind, start, self._length, headings, make_storable(key), pairs, ordered, about))

    def _write(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)


def format_row(cells: Sequence[tuple[str, str]]) -> str:
    """Return a row as text: its first cell, then each other cell with the name of its column."""
    first, *others = cells
    named = (f"{column}: {cell}" if column else cell for column, cell in others if cell)
    return " | ".join([first[1], *named])
