"""How much a vector bears on a question: a cosine, or neither here nor there where there is no vector."""

from collections.abc import Iterable

import numpy as np

from weft.types import Fact, Vector

NEUTRAL = 0.6  # the cosine at which something is worth no more and no less for the question


def cosines(question: Vector | None, facts: Iterable[Fact]) -> dict[str, float]:
    """The cosine of each fact to a question, by identity."""
    vectors = {fact.id: fact.vector for fact in facts}
    embedded = {id_: vector for id_, vector in vectors.items() if vector is not None}
    neutral = dict.fromkeys(vectors, NEUTRAL)
    if question is None or not embedded:
        return neutral
    scores = np.stack(list(embedded.values())) @ question
    return neutral | dict(zip(embedded, scores.tolist(), strict=True))
