"""Check authors, vectors, models, receipts and counts of terms, the same on every engine.

A write outside of an author's labels, a vector of another length and a second embedding model are refused. This
module knows no SQL.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from waylore.errors import DimensionMismatch, Forbidden, ModelMismatch
from waylore.types.author import Author
from waylore.types.knowledge import Fact, IndexedDocument, Vector
from waylore.types.results import Receipt, Statistics


def admit_documents(author: Author, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Return documents as the author may write them: with labels of its own, and no source above its own."""
    return [_admit(author, each) for each in documents]


def _admit(author: Author, indexed: IndexedDocument) -> IndexedDocument:
    given = indexed.document
    document = replace(
        given,
        labels=author.choose_labels(given.labels),
        source=author.cap(given.source),
        user=author.choose_user(given.user),
        author=author.identity if author.is_limited or not given.author else given.author,
    )
    facts = tuple(_cap_fact(author, fact) for fact in indexed.facts)
    is_unchanged = (document, document.author, facts) == (given, given.author, indexed.facts)
    return indexed if is_unchanged else replace(indexed, document=document, facts=facts)


def _cap_fact(author: Author, fact: Fact) -> Fact:
    source = author.cap(fact.source)
    return fact if source == fact.source else replace(fact, source=source)


def check_changes(author: Author, stored: Iterable[Sequence[str]]) -> None:
    """Raise Forbidden if the author may not change one of the stored documents, given by labels in JSON and user."""
    if not all(author.may_change(frozenset(json.loads(labels)), user) for labels, user in set(map(tuple, stored))):
        raise Forbidden(
            "a document that this would change is public, has a label that you have not, or is of another user; "
            "choose another address, or use a key without labels"
        )


def check_vector(vector: Vector | None, dimension: int | None) -> Vector | None:
    """Return the vector if it has the dimension of the collection."""
    if (vector is None) != (dimension is None) or (vector is not None and len(vector) != dimension):
        raise DimensionMismatch(
            f"every vector must have {dimension} dimensions, one has "
            f"{'none' if vector is None else len(vector)}: embed all documents with one model"
        )
    return vector


def is_embedded(known: Statistics, vector: Vector) -> bool:
    """Return whether a collection has vectors. The vector of a question must have the same dimension."""
    if known.dimension is not None and len(vector) != known.dimension:
        raise DimensionMismatch(
            f"the vector of the question has {len(vector)} dimensions, those of the collection have "
            f"{known.dimension}: embed the question with {known.model}"
        )
    return known.dimension is not None


def has_model(known: Statistics, model: str | None) -> bool:
    """Return whether a collection already has this model. A collection with documents accepts no other."""
    if model == known.model:
        return True
    if known.documents:
        raise ModelMismatch(
            f"the collection was embedded with {known.model or 'no model'}, not with "
            f"{model or 'none'}: open it with {known.model or 'no embedder'}, or reembed it"
        )
    return False


def find_dimension(changed: Sequence[IndexedDocument]) -> int:
    """Return the dimension of the vectors of a first write."""
    first = next((p.vector for c in changed for p in c.parts if p.vector is not None), None)
    if first is None:
        raise DimensionMismatch("the first write with a model must have vectors: embed the documents")
    return len(first)


def check_terms(
    counted: Counter[tuple[int, int]], totals: Mapping[int, int], by_access: Iterable[tuple[int, int, int]]
) -> Iterator[str]:
    """Yield a line if stored counts of terms differ from the passages: in total, or for a permission.

    `counted` is the number of passages by term and permission. `totals` and `by_access` are stored.
    """
    of_term: Counter[int] = Counter()
    for (term, _), passages in counted.items():
        of_term[term] += passages
    wrong = sum(of_term[term] != passages for term, passages in totals.items())
    if wrong:
        yield f"{wrong} terms are counted in passages that do not exist"
    stored = {(term, access): passages for term, access, passages in by_access}
    wrong = sum(counted.get(key) != stored.get(key) for key in counted.keys() | stored.keys())
    if wrong:
        yield f"{wrong} counts of terms are not those of their labels"


def list_still_stored(receipt: Receipt, rows: Callable[[str, Sequence[str]], Iterable[Any]]) -> Iterator[str]:
    """Yield a line for each item of a receipt that is stored. `rows` runs a query over ids."""
    for kind, query, ids in (
        ("document", "digests", receipt.documents),
        ("passage", "passage_rows", receipt.passages),
        ("entity", "entity_rows", receipt.entities),
        ("fact", "fact_rows", receipt.facts),
    ):
        for id_, *_ in rows(query, ids):
            yield describe_still_stored(kind, id_.hex())


def describe_still_stored(kind: str, id_: str) -> str:
    """Return the line for an item of a receipt that is stored."""
    return f"{kind} {id_} is stored: it was not forgotten, or was added again"
