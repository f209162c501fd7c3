"""An export reads back as what was written, to the byte; what is no export is refused by its first line."""

import io
import string
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ConfigError
from waylore.indexing.exports import FORMAT, dump, load
from waylore.types.knowledge import (
    SOURCES,
    STATUSES,
    Contribution,
    Document,
    Entity,
    Fact,
    Mention,
    Passage,
    Vector,
)
from waylore.types.results import Statistics

STATISTICS = Statistics(0, 0, 0, 0, 0, model="toy", dimension=3, version=1)
HEADER = '{"dimension":3,"model":"toy","waylore":1}\n'
ALICE = Contribution(Document("d", labels=frozenset({"b", "a"}), metadata={"z": 1, "a": [1, 2]}))

TEXT = st.text(max_size=8)
WORD = st.text(min_size=1, max_size=8)
NAMES = st.tuples(TEXT, TEXT) | st.just(())
MOMENTS = st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC))
SCALARS = TEXT | st.integers() | st.booleans() | st.floats(allow_nan=False)
UNIT = st.floats(0, 1)


@st.composite
def vectors(draw: st.DrawFn) -> Vector | None:
    drawn = draw(st.none() | st.lists(st.integers(-64, 64).map(lambda n: n / 64), min_size=3, max_size=3))
    return None if drawn is None else np.array(drawn, dtype=np.float32)


@st.composite
def contributions(draw: st.DrawFn) -> Contribution:
    document = Document(
        "d",
        draw(TEXT),
        draw(TEXT),
        draw(st.sampled_from(SOURCES)),
        draw(st.dictionaries(TEXT, SCALARS | st.lists(SCALARS, max_size=2), max_size=3)),
        draw(st.frozensets(TEXT, max_size=3)),
        draw(MOMENTS),
    )
    number = st.integers(0, 99)
    passage = Passage(
        "p", "d", draw(WORD), draw(TEXT), draw(number), draw(number), draw(number), draw(NAMES), draw(vectors())
    )
    entity = Entity(
        "e", draw(WORD), draw(TEXT), draw(TEXT), draw(NAMES), draw(TEXT), draw(number), draw(vectors())
    )
    fact = Fact(
        "f",
        "e",
        draw(WORD),
        draw(WORD),
        draw(WORD),
        draw(st.sampled_from(["", "e"])),
        "p",
        draw(TEXT),
        draw(st.floats(1, 10)),
        draw(UNIT),
        draw(st.sampled_from(SOURCES)),
        draw(st.sampled_from(STATUSES)),
        draw(st.none() | MOMENTS),
        draw(st.none() | MOMENTS),
        draw(MOMENTS),
        draw(number),
        draw(st.none() | MOMENTS),
        draw(vectors()),
    )
    mention = Mention("e", "p", draw(number), draw(st.booleans()))
    return Contribution(document, (passage,), (entity,), (mention,), (fact,))


def exported(*added: Contribution) -> str:
    file = io.StringIO()
    assert dump(STATISTICS, added, file) == len(added)
    return file.getvalue()


def imported(text: str) -> list[Contribution]:
    model, found = load(io.StringIO(text))
    assert model == "toy"
    return list(found)


def is_near(one: Vector | None, other: Vector | None) -> bool:
    """Whether two vectors point the same way: a fact's length is not kept."""
    if one is None or other is None:
        return one is other
    lengths = max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12)
    return not one.any() or float(one @ other) / lengths > 0.99


@given(st.lists(contributions(), max_size=2))
def test_what_is_written_is_read_back(added: list[Contribution]) -> None:
    text = exported(*added)
    found = imported(text)
    assert found == added
    assert exported(*found) == text
    for new, old in zip(found, added, strict=True):
        for one, other in zip(new.parts, old.parts, strict=True):
            assert is_near(one.vector, other.vector)
        np.testing.assert_array_equal(new.passages[0].vector, old.passages[0].vector)


@given(st.permutations(string.ascii_lowercase[:5]))
def test_the_same_knowledge_gives_the_same_bytes(order: list[str]) -> None:
    document = Document("d", labels=frozenset(order), metadata=dict.fromkeys(order, 1))
    assert exported(Contribution(document)) == exported(
        Contribution(replace(document, metadata=dict.fromkeys("abcde", 1)))
    )


def test_a_document_is_a_line_and_the_first_says_what_made_the_vectors() -> None:
    text = exported(ALICE, replace(ALICE, document=Document("e", title="a\nb\u2028c")))
    assert text.startswith(HEADER)
    assert text.count("\n") == 3
    assert "{" not in text.split("\n")[-1]


def test_blank_lines_are_passed_over_and_no_documents_are_none() -> None:
    assert imported(HEADER) == []
    assert imported(exported(ALICE).replace("\n", "\n \n")) == [ALICE]


def test_a_collection_without_a_model_says_so() -> None:
    file = io.StringIO()
    dump(replace(STATISTICS, model=None, dimension=None), [], file)
    assert load(io.StringIO(file.getvalue()))[0] is None


@pytest.mark.parametrize(
    "text", ["", "\n", "not JSON", "[]", "7", '"waylore"', "null", '{"waylore":1}', '{"model":null}']
)
def test_what_is_no_export_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not a Waylore export"):
        load(io.StringIO(text))


def test_a_format_of_the_future_is_refused_and_the_remedy_named() -> None:
    with pytest.raises(ConfigError, match=f"format {FORMAT + 1}, this Waylore reads {FORMAT}: upgrade Waylore"):
        load(io.StringIO(HEADER.replace('"waylore":1', f'"waylore":{FORMAT + 1}')))


@pytest.mark.parametrize("line", ['{"document":', '{"passages":[]}', '{"document":{"labels":[]}}', "[]"])
def test_a_damaged_line_is_refused_as_ours(line: str) -> None:
    with pytest.raises(ConfigError):
        imported(HEADER + line)


def test_blanks_are_put_back() -> None:
    blank = replace(ALICE, passages=(Passage("p", "d", ""),), entities=(Entity("e", ""),))
    assert imported(exported(blank)) == [blank]
