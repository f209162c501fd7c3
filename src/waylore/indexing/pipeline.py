"""From what a caller adds to what the store holds: contributions, their vectors, one write.

A text becomes a document with passages, and what it states is either said by the caller or found by an
extractor. A claim that comes without a text is its own document, so that it can be found, explained and
forgotten like any other. Files and folders of them come in through `ingesting`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import numpy as np

from waylore.errors import DimensionMismatch, QueryError
from waylore.indexing.assembly import assembled, claim_id, placed, statement_of
from waylore.indexing.blocks import Reading
from waylore.indexing.chunking import passages
from waylore.indexing.extractors.definitions import resolved
from waylore.indexing.readers.plain import paragraphs
from waylore.protocols import Embedder, Extractor, Vectors
from waylore.store.protocol import Store
from waylore.types.identity import entity_id, identity
from waylore.types.knowledge import SAME, Claim, Contribution, Document, Embeddable

T = TypeVar("T")


def contribution(
    document: Document, text: str, claims: Sequence[Claim] = (), *, extractor: Extractor | None = None
) -> Contribution:
    """A document with its text cut into passages, and what they state: as claimed, or as extracted."""
    blocks = paragraphs(text, most=len(text))
    cut = passages(Reading(document.uri, document.title, text, blocks), document)
    if not cut:
        raise QueryError("there is nothing to add: the text is empty")
    if claims or extractor is None:
        return assembled(document, cut, placed(cut, claims))
    return assembled(document, cut, resolved(document, cut, extractor.extract(document, cut)))


def stated(claim: Claim, document: Document) -> Contribution:
    """A claim that comes without a text, as a document of its own."""
    statement = statement_of(claim)
    own = identity("document", "fact", claim_id(claim), *sorted(document.labels))
    return contribution(replace(document, id=own), statement, [replace(claim, statement=statement)])


def parted(one: str, other: str, document: Document) -> Contribution:
    """That two names are not of one thing, as a document of its own: `same_as`, retracted both ways."""
    if entity_id(one) == entity_id(other):
        raise QueryError(f"{one!r} and {other!r} are one name: there is nothing to part")
    own = identity("document", "parted", *sorted(map(entity_id, (one, other))), *sorted(document.labels))
    statement = f"{one} is not the same as {other}."
    claims = [
        Claim(*ends, statement=statement, weight=10.0, source=document.source, status="retracted")
        for ends in ((one, SAME, other), (other, SAME, one))
    ]
    return contribution(replace(document, id=own), statement, claims)


def changed(store: Store, contributions: Sequence[Contribution]) -> list[Contribution]:
    """Those that are new or say something else than the store has."""
    digests = store.digests([c.document.id for c in contributions])
    return [c for c in contributions if digests.get(c.document.id) != c.digest]


def write(store: Store, embedder: Embedder | None, contributions: Sequence[Contribution]) -> int:
    """Embed what is new or changed and write it; what is there already costs a look."""
    fresh = changed(store, contributions)
    if not fresh:
        return 0
    if embedder is None:
        return store.write(fresh, model=None)
    return store.write(embedded(fresh, embedder), model=embedder.name)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """So many at a time, in order."""
    rest = iter(items)
    while few := list(islice(rest, size)):
        yield few


def counted(items: Iterable[T], progress: Callable[[int], None]) -> Iterator[T]:
    """The same items; `progress` is told how many so far."""
    for number, item in enumerate(items, 1):
        progress(number)
        yield item


def embedded(contributions: Sequence[Contribution], embedder: Embedder) -> list[Contribution]:
    """Contributions with the vectors of their passages, entities and facts; each text is embedded once."""
    vectors = vectors_of((p for c in contributions for p in c.parts), embedder)
    return [
        replace(
            c,
            passages=tuple(replace(p, vector=vectors[p.embeddable]) for p in c.passages),
            entities=tuple(replace(e, vector=vectors[e.embeddable]) for e in c.entities),
            facts=tuple(replace(f, vector=vectors[f.embeddable]) for f in c.facts),
        )
        for c in contributions
    ]


def vectors_of(parts: Iterable[Embeddable], embedder: Embedder) -> dict[str, Vectors]:
    """The vector of each distinct text."""
    texts = list(dict.fromkeys(part.embeddable for part in parts))
    rows = embedder.embed_passages(texts)
    if rows.shape != (len(texts), embedder.dimension):
        raise DimensionMismatch(
            f"{embedder.name} gave vectors of shape {rows.shape} for {len(texts)} texts, "
            f"not {(len(texts), embedder.dimension)}"
        )
    return dict(zip(texts, rows.astype(np.float32), strict=True))
