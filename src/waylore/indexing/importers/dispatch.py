"""Imports what other programs know: chooses the importer by name or by content, and writes in batches.

Each importer gives contributions without vectors, and a refusal with its place and reason for whatever it
passes over; nothing in a file stops the rest of it. What was imported is known by what it says, so importing a
file again changes nothing and importing a grown one adds what is new. `exchange` reads Waylore's own exports.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from waylore.errors import ConfigError
from waylore.indexing.blocks import Limits, Refusal, Refused, Source, guarded
from waylore.indexing.importers.graphrag import output, tables
from waylore.indexing.importers.lightrag import TABLES, graph
from waylore.indexing.importers.mcp_memory import KINDS, memory
from waylore.indexing.importers.rdf import ntriples
from waylore.indexing.importers.research import findings, is_finding
from waylore.indexing.importers.rows import Row, json_rows
from waylore.indexing.importers.triples import PREDICATE, SUBJECT, triples
from waylore.indexing.pipeline import batches, write
from waylore.protocols import Embedder
from waylore.store.protocol import Store
from waylore.types.knowledge import Contribution, Document

Importer: TypeAlias = Callable[[Source, Document], Iterator[Contribution | Refusal]]
LIMITS = Limits(bytes=256_000_000, blocks=1_000_000)
BATCH = 256  # documents that one transaction writes
SHOWN = 1_000  # refusals that are kept; the others are counted
LOOKED_AT = 100  # rows in which a format may show itself
AUTO = "auto"


class Format(NamedTuple):
    """An importer, and the suffixes that tell it without a look inside."""

    importer: Importer
    suffixes: tuple[str, ...] = ()


FORMATS: dict[str, Format] = {
    "triples": Format(triples, (".csv", ".tsv")),
    "ntriples": Format(ntriples, (".nt",)),
    "research": Format(findings),
    "graphrag": Format(output, (".parquet",)),
    "lightrag": Format(graph),
    "mcp-memory": Format(memory),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file: documents read, how many of them were new or changed, and what was refused.

    `repeated` were said before in the same file, and count once. The first thousand refusals are kept.
    """

    format: str = ""
    documents: int = 0
    written: int = 0
    repeated: int = 0
    refused: int = 0
    refusals: tuple[Refusal, ...] = ()


def imported(
    store: Store,
    embedder: Embedder | None,
    path: Path,
    format_: str,
    frame: Document,
    *,
    uri: str = "",
    limits: Limits = LIMITS,
    progress: Callable[[int], None] = lambda _: None,
) -> Imported:
    """Embed and write what a file or folder says, a batch at a time, and say how far it is."""
    name, found = read(path, format_, frame, uri=uri, limits=limits)
    counts: Counter[str] = Counter()
    refusals: list[Refusal] = []
    distinct = _distinct(found, counts, refusals)
    for batch in batches(distinct, BATCH):
        counts["documents"] += len(batch)
        counts["written"] += write(store, embedder, batch)
        progress(counts["documents"])
    return Imported(name, **counts, refusals=tuple(refusals))


def read(
    path: Path, format_: str, frame: Document, *, uri: str = "", limits: Limits = LIMITS
) -> tuple[str, Iterator[Contribution | Refusal]]:
    """The name of a file's format, and what the file says; labels and metadata are the frame's."""
    if format_ not in (AUTO, *FORMATS):
        raise ConfigError(f"there is no format {format_!r}: use {AUTO}, {', '.join(FORMATS)}")
    if not path.exists():
        raise ConfigError(f"there is nothing to import at {path}: check the path")
    source = Source(path, uri or path.as_posix().encode("utf-8", "backslashreplace").decode(), limits)
    try:
        name = _format_of(source) if format_ == AUTO else format_
    except (Refused, OSError, ValueError) as error:
        return "", iter([Refusal(source.uri, str(error))])
    return name, guarded(source.uri, lambda: FORMATS[name].importer(source, frame))


def _distinct(
    found: Iterable[Contribution | Refusal], counts: Counter[str], refusals: list[Refusal]
) -> Iterator[Contribution]:
    """Each document once, as it came first: a second one would replace it, and be replaced the next time."""
    seen: set[int] = set()
    for item in found:
        if isinstance(item, Refusal):
            counts["refused"] += 1
            refusals += [item] if len(refusals) < SHOWN else []
        elif (key := int(item.document.id[:16], 16)) in seen:  # half of it tells them apart, at half the memory
            counts["repeated"] += 1
        else:
            seen.add(key)
            yield item


def _format_of(source: Source) -> str:
    """By what a folder holds, by suffix, or by the first row that shows it."""
    suffix = source.path.suffix.lower()
    if source.path.is_dir():
        shown = "graphrag" if tables(source.path) else ""
    else:
        shown = next((name for name, known in FORMATS.items() if suffix in known.suffixes), "")
        rows = () if shown else islice(json_rows(source), LOOKED_AT)
        shown = shown or next(filter(None, (_shown(row.value) for row in rows if isinstance(row, Row))), "")
    if not shown:
        raise Refused(f"its format cannot be told: pass format=, one of {', '.join(FORMATS)}")
    return shown


def _shown(value: Any) -> str:
    """The format that a row belongs to, as far as it shows."""
    if isinstance(value, list):
        return "triples" if len(value) == 3 else ""
    if not isinstance(value, dict):
        return ""
    if "waylore" in value:
        raise Refused("it is an export of Waylore's own: use import_")
    if value.get("type") in KINDS and ("name" in value or "from" in value):
        return "mcp-memory"
    if not value.keys().isdisjoint(SUBJECT) and not value.keys().isdisjoint(PREDICATE):
        return "triples"
    if any(isinstance(value.get(table), list) for table in TABLES):
        return "lightrag"
    return "research" if is_finding(value) else ""
