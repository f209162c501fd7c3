"""Figures and lists that people are shown: how much a collection holds, what was passed over.

Pure functions to what rich prints, as in `cli_shown`.
"""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from waylore.indexing.blocks import Refusal
from waylore.surfaces.terminal.hits import DIM, NAME, line
from waylore.types.knowledge import Document
from waylore.types.results import Statistics

LISTED = 10  # documents or refusals; the others are counted


def statistics(known: Statistics, *, store: str, collection: str, size: int | None) -> RenderableType:
    """How much a collection holds."""
    counts = ("documents", "passages", "entities", "facts", "mentions")
    most = max((getattr(known, name) for name in counts), default=0) or 1
    table = Table.grid(padding=(0, 2))
    table.add_column(style=DIM)
    table.add_column(justify="right", style=NAME)
    table.add_column()
    for name in counts:
        number = getattr(known, name)
        table.add_row(name, f"{number:,}", Text("━" * max(round(30 * number / most), number > 0), "green"))
    model = f"{known.model} ({known.dimension} dimensions)" if known.model else "none: only words are searched"
    rest = {"model": model, "size": "" if size is None else bytes_of(size), "version": f"{known.version:,}"}
    return Group(Text.assemble((collection, "bold green"), (f"  {store}", DIM)), Text(), table, pairs(rest))


def pairs(told: Mapping[str, str]) -> RenderableType:
    """Names and values, those that there are."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style=DIM, min_width=9)
    table.add_column()
    for name, value in told.items():
        if value:
            table.add_row(name, Text(line(value)))
    return table


def bytes_of(size: int) -> str:
    """A number of bytes as people say it."""
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= of:
            return f"{size / of:.1f} {unit}"
    return f"{size} bytes"


def documents(listed: Sequence[Document], most: int = LISTED) -> Iterator[Text]:
    """What a document is called, a line each."""
    for document in listed[:most]:
        yield Text(f"  {line(document.uri or document.title or document.id)}")
    if len(listed) > most:
        yield Text(f"  and {len(listed) - most:,} more", DIM)


def refusals(refused: Sequence[Refusal], count: int | None = None) -> Iterator[Text]:
    """What was passed over, and why."""
    number = len(refused) if count is None else count
    for refusal in refused[:LISTED]:
        yield Text.assemble(("passed over ", "yellow"), line(refusal.uri), (f": {line(refusal.reason)}", DIM))
    if number > LISTED:
        yield Text(f"and {number - LISTED:,} more; --json lists them", DIM)
