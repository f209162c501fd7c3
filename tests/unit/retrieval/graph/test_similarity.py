"""A fact bears on a question by the cosine of their vectors; without one it is neither here nor there."""

from dataclasses import replace

import numpy as np
import pytest

from unit.retrieval.finding import fact
from waylore.retrieval.graph.similarity import NEUTRAL, cosines
from waylore.types.knowledge import Vector

ADA, BYRON, KIEL = fact("Ada", "knows", "Byron"), fact("Byron", "knows", "Kiel"), fact("Kiel", "has", "boats")


def vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


def test_each_fact_has_its_own_cosine_and_one_without_a_vector_is_neutral() -> None:
    facts = [replace(ADA, vector=vector(0.6, 0.8)), BYRON, replace(KIEL, vector=vector(-1, 0))]
    assert cosines(vector(1, 0), facts) == pytest.approx({ADA.id: 0.6, BYRON.id: NEUTRAL, KIEL.id: -1.0})


def test_without_a_question_all_are_neutral() -> None:
    assert cosines(None, [replace(ADA, vector=vector(1, 0)), BYRON]) == {ADA.id: NEUTRAL, BYRON.id: NEUTRAL}
    assert cosines(vector(1, 0), [ADA]) == {ADA.id: NEUTRAL}
    assert cosines(vector(1, 0), []) == {}


def test_facts_may_come_one_by_one() -> None:
    assert cosines(vector(1, 0), (f for f in [ADA, BYRON])) == {ADA.id: NEUTRAL, BYRON.id: NEUTRAL}
