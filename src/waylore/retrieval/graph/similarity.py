"""Cosine similarity of facts and a question. Facts without a vector get a neutral value."""

from collections.abc import Iterable, Sequence

import numpy as np

from waylore.types.knowledge import Fact, Vector

NEUTRAL = 0.6  # the cosine that neither raises nor lowers the weight of a fact or passage


def compute_cosines(question: Vector | None, facts: Sequence[Fact]) -> list[float]:
    """Return the cosine of each fact and a question, in order."""
    scores = [NEUTRAL] * len(facts)
    embedded = [(place, f.vector) for place, f in enumerate(facts) if f.vector is not None]
    if question is not None and embedded:
        near = np.einsum("ij,j->i", np.stack([vector for _, vector in embedded]), question)
        for (place, _), score in zip(embedded, near.tolist(), strict=True):
            scores[place] = score
    return scores


def map_cosines(question: Vector | None, facts: Iterable[Fact]) -> dict[str, float]:
    """Return the cosine of each fact and a question, by the id of the fact."""
    facts = list(facts)
    return dict(zip([fact.id for fact in facts], compute_cosines(question, facts), strict=True))
