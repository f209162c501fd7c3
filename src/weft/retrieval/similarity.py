"""How much a vector bears on a question: a cosine, or neither here nor there where there is no vector."""

from weft.types import Vector

NEUTRAL = 0.6  # the cosine at which something is worth no more and no less for the question


def cosine(question: Vector | None, vector: Vector | None) -> float:
    """The cosine of two unit vectors; neutral where one is missing."""
    return NEUTRAL if question is None or vector is None else float(question @ vector)
