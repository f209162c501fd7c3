"""What every engine refuses: vectors of another length, another embedding model, a claim that something went.

Nothing here knows SQL.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from waylore.errors import DimensionMismatch, ModelMismatch
from waylore.types.knowledge import Contribution, Vector
from waylore.types.results import Receipt, Statistics


def checked(vector: Vector | None, dimension: int | None) -> Vector | None:
    """The vector, if it is of the collection's length."""
    if (vector is None) != (dimension is None) or (vector is not None and len(vector) != dimension):
        raise DimensionMismatch(
            f"every vector must have {dimension} dimensions, one has "
            f"{'none' if vector is None else len(vector)}: embed all that is written with one model"
        )
    return vector


def is_embedded(known: Statistics, vector: Vector) -> bool:
    """Whether a collection has vectors; the question's must be as long as they are."""
    if known.dimension is not None and len(vector) != known.dimension:
        raise DimensionMismatch(
            f"the question's vector has {len(vector)} dimensions, the collection's have {known.dimension}: "
            f"embed it with {known.model}"
        )
    return known.dimension is not None


def is_known(known: Statistics, model: str | None) -> bool:
    """Whether a collection has this model already; one that holds something takes no other."""
    if model == known.model:
        return True
    if known.documents:
        raise ModelMismatch(
            f"the collection was embedded with {known.model or 'no model'}, not with "
            f"{model or 'none'}: open it with {known.model or 'no embedder'}, or reembed it"
        )
    return False


def dimension_of(changed: Sequence[Contribution]) -> int:
    """How long the vectors of a first write are."""
    first = next((p.vector for c in changed for p in c.parts if p.vector is not None), None)
    if first is None:
        raise DimensionMismatch("the first write with a model must hold a vector to learn from")
    return len(first)


def still_there(receipt: Receipt, rows: Callable[[str, Sequence[str]], Iterable[Any]]) -> Iterator[str]:
    """What a receipt says went and is there all the same; `rows` runs a query over identities."""
    for kind, query, ids in (
        ("document", "digests", receipt.documents),
        ("passage", "passage_rows", receipt.passages),
        ("entity", "entity_rows", receipt.entities),
        ("fact", "fact_rows", receipt.facts),
    ):
        for id_, *_ in rows(query, ids):
            yield f"{kind} {id_.hex()} is there: it was not forgotten, or was added again"
