"""The similarity of a fact and a question is their cosine, or neutral without vectors."""

from dataclasses import replace

import numpy as np
import pytest

from unit.retrieval.samples import make_fact
from waylore.types.columns import NEUTRAL, to_fact_columns
from waylore.types.knowledge import Fact, Vector
from waylore.types.search import Query

ADA, BYRON, KIEL = (
    make_fact("Ada", "knows", "Byron"),
    make_fact("Byron", "knows", "Kiel"),
    make_fact("Kiel", "has", "boats"),
)


def make_vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


def compute(question: Vector | None, *facts: Fact) -> list[float]:
    return list(to_fact_columns({"": facts}).compute_cosines(Query("", question)))


def test_cosine_without_fact_vector_is_neutral() -> None:
    facts = [replace(ADA, vector=make_vector(0.6, 0.8)), BYRON, replace(KIEL, vector=make_vector(-1, 0))]
    assert compute(make_vector(1, 0), *facts) == pytest.approx([0.6, NEUTRAL, -1.0])


def test_cosines_without_question_are_neutral() -> None:
    assert compute(None, replace(ADA, vector=make_vector(1, 0)), BYRON) == [NEUTRAL, NEUTRAL]
    assert compute(make_vector(1, 0), ADA) == [NEUTRAL]
    assert compute(make_vector(1, 0)) == []
