"""The one kind of table that commands print: a dim header over a line, and no other lines."""

from rich import box
from rich.table import Column, Table


def make_table(*columns: Column | str) -> Table:
    """Return a table without rows."""
    style = "dim"
    return Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style=style, border_style=style)
