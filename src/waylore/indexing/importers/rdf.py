"""Imports N-Triples, a statement a line, with pyoxigraph.

The file is read twice: first for what things are called (`rdfs:label`, `skos:prefLabel`, `skos:altLabel`), what
they are (`rdf:type`) and what is said of them (`rdfs:comment` and its like), then for the facts. What names a
thing is a document of its own, and so is each fact. Literals are plain values. A thing without a label goes by
the last part of its address. It infers nothing.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

from waylore.indexing.blocks import Refusal, Refused, Source, required
from waylore.indexing.encoding import storable
from waylore.indexing.importers.parts import card, entity, told
from waylore.indexing.importers.rows import LONGEST_REASON, Row, each, lines, name_in
from waylore.text import normalise
from waylore.types.knowledge import Claim, Contribution, Document

RDFS, SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
DCTERMS, SCHEMA = "http://purl.org/dc/terms/", "https://schema.org/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABELS = (f"{SKOS}prefLabel", f"{RDFS}label", f"{SKOS}altLabel")  # the best name first
TEXTS = frozenset((f"{RDFS}comment", f"{SKOS}definition", f"{DCTERMS}description", f"{SCHEMA}description"))
KNOWN = frozenset((*LABELS, *TEXTS, TYPE))
OWN_LANGUAGES = ("", "en")
MOST_ALIASES = 50
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Known:
    """What a file says of things, by address: labels with their rank, types, texts; and the names chosen."""

    labels: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    types: dict[str, str] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    predicates: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)


def ntriples(source: Source, frame: Document) -> Iterator[Contribution | Refusal]:
    """Each fact, then each thing that has a label, a type or a description."""
    known = Known()
    for row in _statements(source):
        if isinstance(row, Row):
            _learn(known, row.value)
    _name(known)
    yield from each(_statements(source), partial(_facts, known, source, frame))
    things = dict.fromkeys((*known.labels, *known.types, *known.texts))
    rows = (Row(f"{source.uri}#{thing}", thing) for thing in things if thing not in known.predicates)
    yield from each(rows, partial(_thing, known, source, frame))


def _statements(source: Source) -> Iterator[Row | Refusal]:
    library = required("pyoxigraph", "rdf")
    for uri, line in lines(source):
        if isinstance(line, Refusal):
            yield line
            continue
        try:
            statements = list(library.parse(line.encode(), format=library.RdfFormat.N_TRIPLES))
        except (SyntaxError, ValueError) as error:
            yield Refusal(uri, f"it is not N-Triples: {_why(error)}"[:LONGEST_REASON])
        else:
            yield from (Row(uri, statement) for statement in statements)


def _why(error: Exception) -> str:
    """What the parser says, which counts lines in what it was given: in one line."""
    return str(getattr(error, "msg", error)).replace(" at line 1", "")


def _learn(known: Known, statement: Any) -> None:
    thing, predicate, value = _key(statement.subject), statement.predicate.value, statement.object
    known.predicates.add(predicate)
    if predicate == TYPE and _key(value):
        known.types.setdefault(thing, _words(_last_part(_key(value))).lower())
    elif predicate in KNOWN and hasattr(value, "datatype") and value.value.strip():
        text = storable(value.value).strip()
        is_foreign = (value.language or "").lower().partition("-")[0] not in OWN_LANGUAGES
        if predicate in LABELS:
            known.labels[thing].append((LABELS.index(predicate) + len(LABELS) * is_foreign, text))
        elif predicate in TEXTS:
            known.texts[thing].append(text)


def _name(known: Known) -> None:
    """Give each labelled thing its best name; of two that share one, the later adds its address's last part."""
    taken: set[str] = set()
    for thing, labels in known.labels.items():
        name = min(labels, key=lambda label: label[0])[1]
        if normalise(name) in taken:
            name = f"{name} ({_last_part(thing)})"
        taken.add(normalise(name))
        known.names[thing] = name


def _facts(known: Known, source: Source, frame: Document, statement: Any) -> Iterable[Contribution]:
    predicate, value = statement.predicate.value, statement.object
    is_value = hasattr(value, "datatype")
    if predicate in KNOWN and (is_value or predicate == TYPE):
        return ()
    if not is_value and not _key(value):
        raise Refused("its object is a statement: only addresses, blank nodes and literals are read")
    subject = _named(known, source, _key(statement.subject))
    object_ = storable(value.value).strip() if is_value else _named(known, source, _key(value))
    said = known.names.get(predicate) or _words(_last_part(predicate)).lower().replace(" ", "_")
    return [told(Claim(subject, said, object_, source=frame.source, is_value=is_value), frame)]


def _thing(known: Known, source: Source, frame: Document, thing: str) -> Iterable[Contribution]:
    name = _named(known, source, thing)
    aliases = [label for _, label in known.labels.get(thing, ())][:MOST_ALIASES]
    description = "\n\n".join(dict.fromkeys(known.texts.get(thing, ())))
    return [card(entity(name, known.types.get(thing, ""), description, aliases), frame)]


def _named(known: Known, source: Source, thing: str) -> str:
    """The name of a thing; a blank node without a label is told apart from those of other files."""
    nameless = f"{thing.removeprefix('_:')} of {source.name}" if thing.startswith("_:") else _last_part(thing)
    return name_in({"name": known.names.get(thing) or nameless}, "name")


def _key(term: Any) -> str:
    """The address of a thing, or a blank node's; nothing for a literal or a statement."""
    if hasattr(term, "datatype") or not hasattr(term, "value"):
        return ""
    return str(term) if str(term).startswith("_:") else str(term.value)


def _last_part(address: str) -> str:
    parts = re.split(r"[/#:]", address.rstrip("/#"))
    return storable(unquote(parts[-1])).replace("_", " ").strip() or address


def _words(name: str) -> str:
    return _WORD_BEGINS.sub(" ", name)
