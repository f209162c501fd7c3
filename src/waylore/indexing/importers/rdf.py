"""Import N-Triples, one statement per line, with pyoxigraph.

The file is read twice: first for the names of things (`rdfs:label`, `skos:prefLabel`, `skos:altLabel`), their types
(`rdf:type`) and their descriptions (`rdfs:comment` and similar), then for the facts. Each described thing and each fact
becomes a document. Literals are plain values. The name of a thing without a label is the last part of its address. The
module infers nothing.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

from waylore.indexing.blocks import ReadError, Skipped, Source, require_library
from waylore.indexing.encoding import make_storable
from waylore.indexing.importers.parts import make_entity, make_entity_document, make_fact_document
from waylore.indexing.importers.rows import MAX_REASON_CHARACTERS, ImportRow, convert_rows, get_name, read_lines
from waylore.text import normalise
from waylore.types.knowledge import Document, IndexedDocument, NewFact

RDFS, SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
DCTERMS, SCHEMA = "http://purl.org/dc/terms/", "https://schema.org/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABELS = (f"{SKOS}prefLabel", f"{RDFS}label", f"{SKOS}altLabel")  # the best name first
TEXTS = frozenset((f"{RDFS}comment", f"{SKOS}definition", f"{DCTERMS}description", f"{SCHEMA}description"))
DESCRIBING = frozenset((*LABELS, *TEXTS, TYPE))
OWN_LANGUAGES = ("", "en")
MAX_ALIASES = 50
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class RdfNames:
    """Labels with their rank, types, texts and chosen names of things, by address."""

    labels: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    types: dict[str, str] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    predicates: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)


def import_ntriples(source: Source, template: Document) -> Iterator[IndexedDocument | Skipped]:
    """Yield each fact, then each thing that has a label, a type or a description."""
    known = RdfNames()
    for row in _read_statements(source):
        if isinstance(row, ImportRow):
            _learn(known, source, row.value)
    _choose_names(known)
    yield from convert_rows(_read_statements(source), partial(_build_fact, known, source, template))
    things = dict.fromkeys((*known.labels, *known.types, *known.texts))
    rows = (ImportRow(f"{source.uri}#{thing}", thing) for thing in things if thing not in known.predicates)
    yield from convert_rows(rows, partial(_build_entity, known, source, template))


def _read_statements(source: Source) -> Iterator[ImportRow | Skipped]:
    library = require_library("pyoxigraph", "rdf")
    for uri, line in read_lines(source):
        if isinstance(line, Skipped):
            yield line
            continue
        try:
            statements = list(library.parse(line.encode(), format=library.RdfFormat.N_TRIPLES))
        except (SyntaxError, ValueError) as error:
            yield Skipped(uri, f"it is not N-Triples: {_describe(error)}"[:MAX_REASON_CHARACTERS])
        else:
            yield from (ImportRow(uri, statement) for statement in statements)


def _describe(error: Exception) -> str:
    """Return the parser's message without its line number, which is always 1."""
    return str(getattr(error, "msg", error)).replace(" at line 1", "")


def _learn(known: RdfNames, source: Source, statement: Any) -> None:
    thing, predicate, value = _get_address(statement.subject), statement.predicate.value, statement.object
    known.predicates.add(predicate)
    if predicate == TYPE and _get_address(value):
        known.types.setdefault(thing, _split_words(_get_last_part(_get_address(value))).lower())
    elif predicate in DESCRIBING and hasattr(value, "datatype") and value.value.strip():
        text = source.clean(make_storable(value.value).strip())
        is_foreign = (value.language or "").lower().partition("-")[0] not in OWN_LANGUAGES
        if predicate in LABELS:
            known.labels[thing].append((LABELS.index(predicate) + len(LABELS) * is_foreign, text))
        elif predicate in TEXTS:
            known.texts[thing].append(text)


def _choose_names(known: RdfNames) -> None:
    """Choose the best label of each thing as its name, with the last part of the address if it is taken."""
    taken: set[str] = set()
    for thing, labels in known.labels.items():
        name = min(labels, key=lambda label: label[0])[1]
        if normalise(name) in taken:
            name = f"{name} ({_get_last_part(thing)})"
        taken.add(normalise(name))
        known.names[thing] = name


def _build_fact(known: RdfNames, source: Source, template: Document, statement: Any) -> Iterable[IndexedDocument]:
    predicate, value = statement.predicate.value, statement.object
    is_value = hasattr(value, "datatype")
    if predicate in DESCRIBING and (is_value or predicate == TYPE):
        return ()
    if not is_value and not _get_address(value):
        raise ReadError("its object is a statement: only addresses, blank nodes and literals are read")
    subject = _get_name(known, source, _get_address(statement.subject))
    literal = source.clean(make_storable(value.value).strip()) if is_value else ""
    object_ = literal if is_value else _get_name(known, source, _get_address(value))
    name = known.names.get(predicate) or _split_words(_get_last_part(predicate)).lower().replace(" ", "_")
    return [make_fact_document(NewFact(subject, name, object_, source=template.source, is_value=is_value), template)]


def _build_entity(known: RdfNames, source: Source, template: Document, thing: str) -> Iterable[IndexedDocument]:
    name = _get_name(known, source, thing)
    aliases = [label for _, label in known.labels.get(thing, ())][:MAX_ALIASES]
    description = "\n\n".join(dict.fromkeys(known.texts.get(thing, ())))
    return [make_entity_document(make_entity(name, known.types.get(thing, ""), description, aliases), template)]


def _get_name(known: RdfNames, source: Source, thing: str) -> str:
    """Return the name of a thing; the name of a blank node without a label includes the file's name."""
    nameless = f"{thing.removeprefix('_:')} of {source.name}" if thing.startswith("_:") else _get_last_part(thing)
    return get_name({"name": known.names.get(thing) or source.clean(nameless)}, "name")


def _get_address(term: Any) -> str:
    """Return the address of a thing or blank node, or an empty string for a literal or a statement."""
    if hasattr(term, "datatype") or not hasattr(term, "value"):
        return ""
    return str(term) if str(term).startswith("_:") else str(term.value)


def _get_last_part(address: str) -> str:
    parts = re.split(r"[/#:]", address.rstrip("/#"))
    return make_storable(unquote(parts[-1])).replace("_", " ").strip() or address


def _split_words(name: str) -> str:
    return _WORD_BEGINS.sub(" ", name)
