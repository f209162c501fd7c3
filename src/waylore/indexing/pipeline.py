"""Index texts and facts: build indexed documents, embed them and write them to the store.

A text becomes a document with passages. Its facts come from the caller or from an extractor. A fact without a
text becomes a document of its own, so that it can be found, explained and forgotten like any other. The module
reads no files; `indexing.files.add` does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import numpy as np

from waylore.deadline import check_each
from waylore.errors import ArgumentError, DimensionMismatch
from waylore.indexing.assembly import (
    assemble_document,
    assign_facts_to_passages,
    compute_fact_id,
    get_statement,
    merge_extractions,
)
from waylore.indexing.blocks import Reading
from waylore.indexing.chunking import split_into_passages
from waylore.indexing.extractors.definitions import apply_definitions
from waylore.indexing.readers.plain import find_paragraphs
from waylore.protocols import Embedder, Extraction, Extractor, Vectors
from waylore.relations import find_relation
from waylore.store.checks import admit_documents
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.identity import add_scope, entity_id, identity
from waylore.types.knowledge import SAME, Document, Embeddable, IndexedDocument, NewFact, Passage
from waylore.types.messages import Message
from waylore.types.search import NO_FILTER, Filter

EMBED_TEXTS = 1_024  # texts in one call of an embedder; the deadline is checked between calls
PAGE = 1_000  # documents in one page of a list
T = TypeVar("T")


def index_text(
    document: Document,
    text: str,
    facts: Sequence[NewFact] = (),
    *,
    extractor: Extractor | None = None,
    stated: Extraction | None = None,
) -> IndexedDocument:
    """Split a text into passages and index it with the given facts, or with facts that the extractor finds.

    stated: the facts that rules found in a turn of a conversation. Only these rules read their relations.
    """
    blocks = find_paragraphs(text, max_blocks=len(text))
    passages = split_into_passages(Reading(document.uri, document.title, text, blocks), document)
    if not passages:
        raise ArgumentError("text must not be empty")
    if facts or extractor is None:
        extractions = assign_facts_to_passages(passages, facts)
    else:
        extractions = apply_definitions(document, passages, extractor.extract(document, passages))
    if stated is not None and stated.facts:
        extractions = _add_stated(passages, extractions, stated)
    return assemble_document(document, passages, extractions)


def _add_stated(passages: Sequence[Passage], extractions: Sequence[Extraction], stated: Extraction) -> list[Extraction]:
    """Add the facts that rules found in a turn to the passages that state them."""
    merged = []
    for found, own in zip(extractions, assign_facts_to_passages(passages, stated.facts), strict=True):
        kept = tuple(fact for fact in found.facts if find_relation(fact.predicate) is None)
        names = {end for fact in own.facts for end in (fact.subject, fact.object)}
        aliases = {name: bare for name, bare in stated.aliases.items() if name in names}
        merged.append(merge_extractions(replace(found, facts=kept), replace(own, aliases=aliases)))
    return merged


def index_message(
    document: Document,
    message: Message,
    position: int,
    facts: Sequence[NewFact] = (),
    *,
    extractor: Extractor | None = None,
    stated: Extraction | None = None,
) -> IndexedDocument:
    """Index a message as a turn; `stated` are the facts that rules found in it."""
    indexed = index_text(document, message.content, facts, extractor=extractor, stated=stated)
    speaker = get_speaker(document, message)
    passages = (replace(each, speaker=speaker, role=message.role, position=position) for each in indexed.passages)
    return replace(indexed, passages=tuple(passages))


def get_speaker(document: Document, message: Message) -> str:
    """Return the speaker of a message: its name, else the user or the agent of the document, else the role."""
    return message.name or (document.user if message.role == "user" else document.agent) or message.role


def get_scope(document: Document) -> tuple[str, ...]:
    """Return the scope in the identity of a document: user, agent, session, and the day if there is no session."""
    day = f"{document.at:%Y-%m-%d}" if document.at and not document.session else ""
    return document.user, document.agent, document.session, day


def build_fact_document(fact: NewFact, document: Document) -> IndexedDocument:
    """Index a fact without a text as a separate document. One fact with two periods becomes two documents."""
    statement = get_statement(fact)
    period = tuple(str(moment or "") for moment in (fact.valid_from, fact.valid_to))
    said = identity("document", "fact", compute_fact_id(fact), *sorted(document.labels))
    own = add_scope(add_scope(said, period), get_scope(document))
    return index_text(replace(document, id=own), statement, [replace(fact, statement=statement)])


def build_distinct_document(one: str, other: str, document: Document) -> IndexedDocument:
    """Index that two names mean different entities: a document with `same_as` retracted in both directions."""
    if entity_id(one) == entity_id(other):
        raise ArgumentError(f"{one!r} and {other!r} are the same name: pass two different names")
    own = identity("document", "parted", *sorted(map(entity_id, (one, other))), *sorted(document.labels))
    statement = f"{one} is not the same as {other}."
    facts = [
        NewFact(*ends, statement=statement, weight=10.0, source=document.source, status="retracted")
        for ends in ((one, SAME, other), (other, SAME, one))
    ]
    return index_text(replace(document, id=own), statement, facts)


def find_changed(store: Store, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Return the documents that are new or differ from the stored version."""
    digests = store.digests([d.document.id for d in documents])
    return [d for d in documents if digests.get(d.document.id) != d.digest]


def write(store: Store, embedder: Embedder | None, documents: Sequence[IndexedDocument], *, author: Author) -> int:
    """Embed and write new and changed documents; return their number. Unchanged documents cost one lookup."""
    changed = find_changed(store, admit_documents(author, documents))
    if not changed:
        return 0
    if embedder is None:
        return store.write(changed, author=author, model=None)
    return store.write(embed_documents(changed, embedder), author=author, model=embedder.name)


def list_documents(
    store: Store, under: str = "", *, where: Filter = NO_FILTER, after: tuple[str, str] = ("", ""), size: int = PAGE
) -> Iterator[Document]:
    """Yield the documents whose addresses begin with a text, by address, read `size` at a time."""
    while page := store.list_documents(under=under, after=after, limit=size, where=where):
        yield from page
        after = (page[-1].uri, page[-1].id)


def split_into_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` items, in order; the last one may be shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def report_progress(items: Iterable[T], progress: Callable[[int], None]) -> Iterator[T]:
    """Yield the items, and call `progress` with the number of items so far."""
    for number, item in enumerate(items, 1):
        progress(number)
        yield item


def embed_documents(documents: Sequence[IndexedDocument], embedder: Embedder) -> list[IndexedDocument]:
    """Return the documents with vectors of their passages, entities and facts; each text is embedded once."""
    vectors = embed_texts((part for d in documents for part in d.parts), embedder)
    return [
        replace(
            d,
            passages=tuple(p if p.is_silent else replace(p, vector=vectors[p.embeddable]) for p in d.passages),
            entities=tuple(replace(e, vector=vectors[e.embeddable]) for e in d.entities),
            facts=tuple(replace(f, vector=vectors[f.embeddable]) for f in d.facts),
            pairs=tuple(replace(p, vector=vectors[p.embeddable]) for p in d.pairs),
        )
        for d in check_each(documents)
    ]


def embed_texts(parts: Iterable[Embeddable], embedder: Embedder) -> dict[str, Vectors]:
    """Return the vector of each distinct text."""
    texts = list(dict.fromkeys(part.embeddable for part in parts))
    if not texts:  # an embedder may load its model for the first text
        return {}
    rows = np.concatenate(
        [embedder.embed_passages(some) for some in check_each(split_into_batches(texts, EMBED_TEXTS))]
    )
    if rows.shape != (len(texts), embedder.dimension):
        raise DimensionMismatch(
            f"{embedder.name} returned vectors of shape {rows.shape} for {len(texts)} texts, "
            f"expected {(len(texts), embedder.dimension)}"
        )
    return dict(zip(texts, rows.astype(np.float32), strict=True))
