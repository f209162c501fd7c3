"""Import files of other programs: choose the importer by name or by content, and write in batches.

An importer returns indexed documents without vectors, and a `Skipped` with place and reason for each row that it cannot
read; a broken row never stops the rest. The id of a document is computed from its content, so importing a file again
changes nothing, and importing a longer version adds only the new rows. Waylore's own exports are read by
`indexing.exports`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from waylore.errors import ConfigError
from waylore.indexing.blocks import MAX_REPORTED_SKIPS, Limits, ReadError, Skipped, Source, catch_read_errors
from waylore.indexing.pipeline import split_into_batches, write
from waylore.plugins import import_later
from waylore.protocols import Embedder, Extractor
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.knowledge import Document, IndexedDocument

if TYPE_CHECKING:  # a search starts without it
    from waylore.indexing.secrets.sieve import Sieve

Importer: TypeAlias = Callable[..., Iterator[IndexedDocument | Skipped]]  # called with a source and a template
IMPORT_LIMITS = Limits(bytes=256_000_000, blocks=1_000_000)
BATCH_DOCUMENTS = 256  # documents in one transaction
AUTO = "auto"
PACKAGE = "waylore.indexing.importers"


class Format(NamedTuple):
    """An importer, the file suffixes that select it, and whether it takes an extractor for texts without facts."""

    importer: Importer
    suffixes: tuple[str, ...] = ()
    takes_extractor: bool = False


FORMATS: dict[str, Format] = {
    "triples": Format(import_later(f"{PACKAGE}.triples", "import_triples"), (".csv", ".tsv")),
    "ntriples": Format(import_later(f"{PACKAGE}.rdf", "import_ntriples"), (".nt",)),
    "research": Format(import_later(f"{PACKAGE}.research", "import_research")),
    "graphrag": Format(import_later(f"{PACKAGE}.graphrag", "import_graphrag"), (".parquet",)),
    "lightrag": Format(import_later(f"{PACKAGE}.lightrag", "import_lightrag")),
    "mcp-memory": Format(import_later(f"{PACKAGE}.mcp_memory", "import_mcp_memory")),
    "mem0": Format(import_later(f"{PACKAGE}.mem0", "import_mem0"), takes_extractor=True),
    "zep": Format(import_later(f"{PACKAGE}.zep", "import_zep"), takes_extractor=True),
}


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import: the number of documents, and of new or changed ones (`written`).

    `repeated` is the number of documents that occurred earlier in the same file. `skipped` lists the first thousand
    skipped rows with their reasons, `skipped_count` is the number of all. `left_out` counts the omitted secrets of each
    kind.
    """

    format: str = ""
    documents: int = 0
    written: int = 0
    repeated: int = 0
    skipped_count: int = 0
    skipped: tuple[Skipped, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def import_file(
    store: Store,
    embedder: Embedder | None,
    path: Path,
    format_: str,
    template: Document,
    *,
    author: Author,
    sieve: "Sieve",
    extractor: Extractor | None = None,
    uri: str = "",
    limits: Limits = IMPORT_LIMITS,
    progress: Callable[[int], None] = lambda _: None,
) -> ImportReport:
    """Import a file or folder in batches; `progress` is called with the number of documents so far."""
    name, items = read(path, format_, template, extractor=extractor, uri=uri, limits=limits, clean=sieve.clean_row)
    counts: Counter[str] = Counter()
    skipped: list[Skipped] = []
    distinct = _drop_repeated(items, counts, skipped)
    for batch in split_into_batches(distinct, BATCH_DOCUMENTS):
        counts["documents"] += len(batch)
        counts["written"] += write(store, embedder, batch, author=author)
        progress(counts["documents"])
    return ImportReport(name, **counts, skipped=tuple(skipped), left_out=sieve.left_out)


def read(
    path: Path,
    format_: str,
    template: Document,
    *,
    extractor: Extractor | None = None,
    uri: str = "",
    limits: Limits = IMPORT_LIMITS,
    clean: Callable[[Any], Any] = lambda value: value,
) -> tuple[str, Iterator[IndexedDocument | Skipped]]:
    """Return the format of a file and its documents, with labels, metadata and user of the template.

    clean: leaves secrets out of each value that is read.
    """
    if format_ not in (AUTO, *FORMATS):
        raise ConfigError(f"unknown format {format_!r}: use {AUTO}, {', '.join(FORMATS)}")
    if not path.exists():
        raise ConfigError(f"no file or folder {path}: check the path")
    source = Source(path, uri or path.as_posix().encode("utf-8", "backslashreplace").decode(), limits, clean)
    try:
        name = _detect_format(source) if format_ == AUTO else format_
    except (ReadError, OSError, ValueError) as error:
        return "", iter([Skipped(source.uri, str(error))])
    arguments = (source, template, extractor) if FORMATS[name].takes_extractor else (source, template)
    return name, catch_read_errors(source.uri, lambda: FORMATS[name].importer(*arguments))


def _drop_repeated(
    items: Iterable[IndexedDocument | Skipped], counts: Counter[str], skipped: list[Skipped]
) -> Iterator[IndexedDocument]:
    """Yield each document once, in the version that occurs first.

    A second version would replace the first one, and the next import would swap them again.
    """
    seen: set[int] = set()
    for item in items:
        if isinstance(item, Skipped):
            counts["skipped_count"] += 1
            skipped += [item] if len(skipped) < MAX_REPORTED_SKIPS else []
        elif (key := int(item.document.id[:16], 16)) in seen:  # half of the id is unique enough
            counts["repeated"] += 1
        else:
            seen.add(key)
            yield item


_detect = import_later(f"{PACKAGE}.detect", "detect_format")


def _detect_format(source: Source) -> str:
    """Return the format of a folder by its tables, of a file by its suffix or its first typical row."""
    suffix = source.path.suffix.lower()
    by_suffix = next((name for name, known in FORMATS.items() if suffix in known.suffixes), "")
    if by_suffix and not source.path.is_dir():
        return by_suffix
    format_: str = _detect(source)
    if not format_:
        raise ReadError(f"its format cannot be detected: name it, one of {', '.join(FORMATS)}")
    return format_
