"""The similarity of a fact and a question is their cosine, or neutral without vectors."""

from dataclasses import replace

import numpy as np
import pytest

from unit.retrieval.samples import make_fact
from waylore.retrieval.graph.similarity import NEUTRAL, map_cosines
from waylore.types.knowledge import Vector

ADA, BYRON, KIEL = (
    make_fact("Ada", "knows", "Byron"),
    make_fact("Byron", "knows", "Kiel"),
    make_fact("Kiel", "has", "boats"),
)


def make_vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


def test_cosine_without_fact_vector_is_neutral() -> None:
    facts = [replace(ADA, vector=make_vector(0.6, 0.8)), BYRON, replace(KIEL, vector=make_vector(-1, 0))]
    assert map_cosines(make_vector(1, 0), facts) == pytest.approx({ADA.id: 0.6, BYRON.id: NEUTRAL, KIEL.id: -1.0})


def test_cosines_without_question_are_neutral() -> None:
    assert map_cosines(None, [replace(ADA, vector=make_vector(1, 0)), BYRON]) == {
        ADA.id: NEUTRAL,
        BYRON.id: NEUTRAL,
    }
    assert map_cosines(make_vector(1, 0), [ADA]) == {ADA.id: NEUTRAL}
    assert map_cosines(make_vector(1, 0), []) == {}


def test_map_cosines_accepts_iterator() -> None:
    assert map_cosines(make_vector(1, 0), (f for f in [ADA, BYRON])) == {ADA.id: NEUTRAL, BYRON.id: NEUTRAL}
