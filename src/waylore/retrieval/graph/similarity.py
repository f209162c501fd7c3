"""How much a fact bears on a question: a cosine, or neither here nor there where there is no vector."""

from collections.abc import Iterable, Sequence

import numpy as np

from waylore.types.knowledge import Fact, Vector

NEUTRAL = 0.6  # the cosine at which something is worth no more and no less for the question


def each_cosine(question: Vector | None, facts: Sequence[Fact]) -> list[float]:
    """The cosine of each fact to a question, in order."""
    scores = [NEUTRAL] * len(facts)
    embedded = [(place, f.vector) for place, f in enumerate(facts) if f.vector is not None]
    if question is not None and embedded:
        near = np.einsum("ij,j->i", np.stack([vector for _, vector in embedded]), question)
        for (place, _), score in zip(embedded, near.tolist(), strict=True):
            scores[place] = score
    return scores


def cosines(question: Vector | None, facts: Iterable[Fact]) -> dict[str, float]:
    """The same by the identity of the fact."""
    facts = list(facts)
    return dict(zip([fact.id for fact in facts], each_cosine(question, facts), strict=True))
