"""Render documents for people at a terminal: a list, and one with its passages and facts.

Texts come from other people, so control and invisible characters are removed before they reach the terminal.
"""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from waylore.dates import format_day
from waylore.fence import neutralize, to_line
from waylore.surfaces.terminal.hits import DIM, NAME, count, render_facts
from waylore.types.author import LOCAL
from waylore.types.knowledge import Document, IndexedDocument


def render_documents(documents: Sequence[Document], *, has_more: bool) -> RenderableType:
    """Render documents as a table: address, title and date."""
    if not documents:
        return Text("no documents; `waylore add PATH` adds some", "yellow")
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for document in documents:
        day = format_day(document.at) if document.at else ""
        address = to_line(document.uri or document.id)
        table.add_row(Text(address, NAME), Text(to_line(document.title)), Text(day, DIM))
    more = f"; --after {documents[-1].id} shows the next ones" if has_more else ""
    return Group(table, Text(), Text(f"{count(len(documents), 'document')}{more}", DIM))


def render_document(indexed: IndexedDocument) -> RenderableType:
    """Render a document: its title and where it is from, its passages, and its facts."""
    document = indexed.document
    parts: list[RenderableType] = [Text(to_line(document.title or document.uri or document.id), NAME)]
    parts += [Text(line, DIM) for line in _describe(document)]
    for passage in indexed.passages:
        speaker = f"{to_line(passage.speaker)}: " if passage.speaker else ""
        text = Text.assemble((speaker, DIM), neutralize(passage.text).text)
        parts += [Text(), Padding(text, (0, 0, 0, 3))]
    if indexed.facts:
        parts += [Text(), render_facts(indexed.facts)]
    return Group(*parts)


def _describe(document: Document) -> Iterator[str]:
    """Yield the fields of a document that have a value."""
    fields = {
        "address": document.uri,
        "id": document.id,
        "date": format_day(document.at) if document.at else "",
        "added": format_day(document.recorded_at),
        "written by": "" if document.author == LOCAL else document.author,
        "expires": format_day(document.expires) if document.expires else "",
        "user": document.user,
        "session": document.session,
        "labels": ", ".join(sorted(document.labels)),
        **{key: str(value) for key, value in document.metadata.items()},
    }
    return (f"{to_line(name)}: {to_line(value)}" for name, value in fields.items() if value)
