"""Render statistics and lists for people: the size of a collection, documents, skipped files.

Pure functions that return objects of rich, as in `terminal.hits`.
"""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from waylore.dates import format_time
from waylore.fence import to_line
from waylore.indexing.blocks import Skipped
from waylore.surfaces.terminal.hits import DIM, NAME
from waylore.surfaces.terminal.tables import make_table
from waylore.types.audit import AuditEntry
from waylore.types.knowledge import Document
from waylore.types.results import DayCounts, Statistics

MAX_EQUAL_REASONS = 3  # skipped files with one reason that are listed by name
LEVELS = "·▁▂▃▄▅▆▇█"  # height of a part of the growth; the first means none
MAX_PARTS = 30  # characters of the drawn growth
MAX_LISTED = 10  # listed documents or skipped files; the others are counted


def render_statistics(
    known: Statistics, growth: Sequence[DayCounts], *, store: str, collection: str, size: int | None
) -> RenderableType:
    """Render the size of a collection."""
    counts = ("documents", "passages", "entities", "facts", "mentions")
    largest = max((getattr(known, name) for name in counts), default=0) or 1
    table = Table.grid(padding=(0, 2))
    table.add_column(style=DIM)
    table.add_column(justify="right", style=NAME)
    table.add_column()
    for name in counts:
        number = getattr(known, name)
        table.add_row(name, f"{number:,}", Text("━" * max(round(30 * number / largest), number > 0), "green"))
    model = f"{known.model} ({known.dimension} dimensions)" if known.model else "none: only words are searched"
    rest = {
        "growth": draw_growth(growth),
        "model": model,
        "size": "" if size is None else format_bytes(size),
        "version": f"{known.version:,}",
    }
    return Group(Text.assemble((collection, "bold green"), (f"  {store}", DIM)), Text(), table, _render_pairs(rest))


def draw_growth(growth: Sequence[DayCounts]) -> str:
    """Draw the number of documents written over time, one character for each equal period; empty for one day."""
    if len(growth) < 2:
        return ""
    first, last = growth[0].day, growth[-1].day
    days = -(-((last - first).days + 1) // MAX_PARTS)  # days of a period, rounded up
    counts = [0] * ((last - first).days // days + 1)
    for each in growth:
        counts[(each.day - first).days // days] += each.documents
    drawn = "".join(LEVELS[-(-count * (len(LEVELS) - 1) // max(counts))] for count in counts)
    return f"{drawn} {first} to {last}"


def _render_pairs(values: Mapping[str, str]) -> RenderableType:
    """Render names and values, without empty ones."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style=DIM, min_width=9)
    table.add_column()
    for name, value in values.items():
        if value:
            table.add_row(name, Text(to_line(value)))
    return table


def format_bytes(size: int) -> str:
    """Return a number of bytes with its unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"


def render_audit(entries: Sequence[AuditEntry], *, is_whole: bool | None) -> Group:
    """Return a table of changes and, if the log was checked, whether it is intact."""
    table = make_table("when", "author", "what", Column("documents", justify="right"), "labels")
    for entry in entries:
        labels = " → ".join(", ".join(each) or "public" for each in _list_labels(entry))
        when, count = format_time(entry.at), "" if entry.key else f"{entry.count:,}"
        what = f"{entry.verb.replace('_', ' ')} {entry.key}".rstrip()
        table.add_row(when, to_line(entry.author), what, count, to_line(labels))
    verdicts = {True: ("the log is whole", "green"), False: ("an entry was changed or taken out", "bold red")}
    checked = [] if is_whole is None else [Text(*verdicts[is_whole])]
    return Group(table if entries else Text("no changes"), *checked)


def _list_labels(entry: AuditEntry) -> list[tuple[str, ...]]:
    """Return the labels of changed documents: before and after the change, if they differ."""
    if entry.verb in ("forget", "expire", "quarantine"):
        return [entry.labels_before]
    is_new = entry.verb in ("write", "release", "create_key")
    is_changed = entry.labels_before != entry.labels_after and not is_new
    return [entry.labels_before, entry.labels_after] if is_changed else [entry.labels_after]


def list_documents(documents: Sequence[Document], limit: int = MAX_LISTED) -> Iterator[Text]:
    """Yield a line for each document."""
    for document in documents[:limit]:
        yield Text(f"  {to_line(document.uri or document.title or document.id)}")
    if len(documents) > limit:
        yield Text(f"  and {len(documents) - limit:,} more", DIM)


def list_skipped(skipped: Sequence[Skipped], count: int | None = None) -> Iterator[Text]:
    """Yield a line for each skipped file or part, with the reason; `count` is their total number.

    Several files with the same reason share a line.
    """
    number = len(skipped) if count is None else count
    by_reason: dict[str, list[str]] = {}
    for item in skipped:
        by_reason.setdefault(item.reason, []).append(item.uri)
    lines = list[tuple[str, str, int]]()
    for reason, names in by_reason.items():
        is_many = len(names) > MAX_EQUAL_REASONS
        lines += [(f"{len(names):,} files", reason, len(names))] if is_many else [(name, reason, 1) for name in names]
    for name, reason, _ in lines[:MAX_LISTED]:
        yield Text.assemble(("skipped ", "yellow"), to_line(name), (f": {to_line(reason)}", DIM))
    if rest := number - sum(total for *_, total in lines[:MAX_LISTED]):
        yield Text(f"and {rest:,} more; --json lists them", DIM)
