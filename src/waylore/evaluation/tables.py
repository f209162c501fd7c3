"""Format tables: aligned columns for a terminal, or aligned Markdown."""

from collections.abc import Sequence

Row = Sequence[str]


def format_columns(head: Row, rows: Sequence[Row], *, names: int = 1) -> str:
    """Format a table for a terminal. The first `names` columns are aligned left, the others right."""
    lines = ["  ".join(cells).rstrip() for cells in _align([head, *rows], names)]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def format_markdown(head: Row, rows: Sequence[Row], *, names: int = 1) -> str:
    """Format a table in Markdown. The first `names` columns are aligned left, the others right."""
    aligned = _align([head, *rows], names)
    rule = ["-" * len(cell) if i < names else "-" * (len(cell) - 1) + ":" for i, cell in enumerate(aligned[0])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [aligned[0], rule, *aligned[1:]])


def _align(rows: Sequence[Row], names: int) -> list[list[str]]:
    widths = [max(2, *(len(row[i]) for row in rows)) for i in range(len(rows[0]))]
    return [
        [
            cell.ljust(width) if i < names else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
