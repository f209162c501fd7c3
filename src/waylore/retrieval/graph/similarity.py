"""Cosine similarity of facts and a question. Facts without a vector get a neutral value."""

import numpy as np

from waylore.types.columns import FactColumns, Numbers
from waylore.types.knowledge import Vector

NEUTRAL = 0.6  # the cosine that neither raises nor lowers the weight of a fact or passage


def compute_cosines(question: Vector | None, facts: FactColumns) -> Numbers:
    """Return the cosine of each fact and a question, in order."""
    cosines = np.full(facts.size, NEUTRAL)
    if question is not None and facts.has_vector.any():
        near = np.einsum("ij,j->i", facts.vectors, question)
        cosines[facts.has_vector] = near[facts.has_vector]
    return cosines
