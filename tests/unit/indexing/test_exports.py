"""An export reads back as it was written, byte for byte; other files are rejected by their first line."""

import base64
import io
import json
import string
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ConfigError
from waylore.indexing.exports import FORMAT, read_export, write_export
from waylore.types.knowledge import (
    SOURCES,
    STATUSES,
    Document,
    Entity,
    Fact,
    IndexedDocument,
    Mention,
    Passage,
    Vector,
)
from waylore.types.results import Statistics

STATISTICS = Statistics(0, 0, 0, 0, 0, model="toy", dimension=3, version=1)
HEADER = '{"dimension":3,"model":"toy","waylore":2}\n'
ALICE = IndexedDocument(Document("d", labels=frozenset({"b", "a"}), metadata={"z": 1, "a": [1, 2]}))

TEXT = st.text(max_size=8)
WORD = st.text(min_size=1, max_size=8)
NAMES = st.tuples(TEXT, TEXT) | st.just(())
MOMENTS = st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC))
SCALARS = TEXT | st.integers() | st.booleans() | st.floats(allow_nan=False)
UNIT = st.floats(0, 1)


@st.composite
def draw_vector(draw: st.DrawFn) -> Vector | None:
    drawn = draw(st.none() | st.lists(st.integers(-64, 64).map(lambda n: n / 64), min_size=3, max_size=3))
    return None if drawn is None else np.array(drawn, dtype=np.float32)


@st.composite
def draw_document(draw: st.DrawFn) -> IndexedDocument:
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
        "p",
        "d",
        draw(WORD),
        draw(TEXT),
        draw(number),
        draw(number),
        draw(number),
        draw(NAMES),
        draw(draw_vector()),
    )
    entity = Entity("e", draw(WORD), draw(TEXT), draw(TEXT), draw(NAMES), draw(TEXT), draw(number), draw(draw_vector()))
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
        draw(draw_vector()),
    )
    mention = Mention("e", "p", draw(number), draw(st.booleans()))
    pair = Fact("e", "e", draw(WORD), "", draw(WORD), "e", "p", draw(TEXT), vector=draw(draw_vector()))
    return IndexedDocument(document, (passage,), (entity,), (mention,), (fact,), (pair,))


def export(*added: IndexedDocument) -> str:
    file = io.StringIO()
    assert write_export(STATISTICS, added, file) == len(added)
    return file.getvalue()


def read_back(text: str) -> list[IndexedDocument]:
    model, found = read_export(io.StringIO(text))
    assert model == "toy"
    return list(found)


def is_near(one: Vector | None, other: Vector | None) -> bool:
    """Return whether two vectors point the same way; the length of a vector is not stored."""
    if one is None or other is None:
        return one is other
    lengths = max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12)
    return not one.any() or float(one @ other) / lengths > 0.99


@given(st.lists(draw_document(), max_size=2))
def test_export_reads_back_equal(added: list[IndexedDocument]) -> None:
    text = export(*added)
    found = read_back(text)
    assert found == added
    assert export(*found) == text
    for new, old in zip(found, added, strict=True):
        for one, other in zip(new.parts, old.parts, strict=True):
            assert is_near(one.vector, other.vector)


@given(draw_document())
def test_vectors_of_format_1_are_read_in_half_precision(added: IndexedDocument) -> None:
    header, line, _ = export(added).split("\n")
    plain = json.loads(line)
    for kind, part in (("passages", added.passages[0]), ("entities", added.entities[0])):
        if part.vector is not None:
            plain[kind][0]["vector"] = base64.b64encode(part.vector.astype(np.float16).tobytes()).decode()
    [found] = read_back(header.replace('"waylore":2', '"waylore":1') + "\n" + json.dumps(plain))
    assert (found.passages, found.entities, found.facts) == (added.passages, added.entities, added.facts)
    np.testing.assert_array_equal(found.passages[0].vector, added.passages[0].vector)
    np.testing.assert_array_equal(found.entities[0].vector, added.entities[0].vector)
    assert is_near(found.facts[0].vector, added.facts[0].vector)


def test_untyped_facts_of_format_1_become_pairs() -> None:
    entities = (Entity("a" * 32, "Ada"), Entity("b" * 32, "Byron"))
    named = Fact("f", "a" * 32, "Ada", "mentions", "Byron", "b" * 32, "p", "Ada met Byron.", 5.0, 0.9)
    linked = replace(named, id="g", predicate="links_to", statement="")
    knows = replace(named, id="h", predicate="knows")
    value = replace(named, id="i", object="1815", object_id="")
    retracted = replace(named, id="j", subject_id="b" * 32, object_id="a" * 32, status="retracted")
    facts = (named, linked, knows, value, retracted)
    old = IndexedDocument(Document("d"), (Passage("p", "d", "Ada met Byron."),), entities, (), facts)
    [found] = read_back(export(old).replace('"waylore":2', '"waylore":1'))
    assert found.facts == (knows, value)
    [pair] = found.pairs
    assert (pair.id, pair.predicate, pair.weight, pair.confidence) == ("a" * 16 + "b" * 16, "", 4.0, 0.6)
    assert read_back(export(old)) == [old]


@given(st.permutations(string.ascii_lowercase[:5]))
def test_equal_documents_give_equal_bytes(order: list[str]) -> None:
    document = Document("d", labels=frozenset(order), metadata=dict.fromkeys(order, 1))
    assert export(IndexedDocument(document)) == export(
        IndexedDocument(replace(document, metadata=dict.fromkeys("abcde", 1)))
    )


def test_first_line_has_model_and_others_documents() -> None:
    text = export(ALICE, replace(ALICE, document=Document("e", title="a\nb\u2028c")))
    assert text.startswith(HEADER)
    assert text.count("\n") == 3
    assert "{" not in text.split("\n")[-1]


def test_blank_lines_are_ignored() -> None:
    assert read_back(HEADER) == []
    assert read_back(export(ALICE).replace("\n", "\n \n")) == [ALICE]


def test_export_without_model_has_null_model() -> None:
    file = io.StringIO()
    write_export(replace(STATISTICS, model=None, dimension=None), [], file)
    assert read_export(io.StringIO(file.getvalue()))[0] is None


@pytest.mark.parametrize(
    "text", ["", "\n", "not JSON", "[]", "7", '"waylore"', "null", '{"waylore":1}', '{"model":null}']
)
def test_other_text_raises_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="not a Waylore export"):
        read_export(io.StringIO(text))


def test_newer_format_raises_error_with_remedy() -> None:
    with pytest.raises(ConfigError, match=f"format {FORMAT + 1}, this Waylore reads up to {FORMAT}: upgrade Waylore"):
        read_export(io.StringIO(HEADER.replace('"waylore":2', f'"waylore":{FORMAT + 1}')))


@pytest.mark.parametrize("line", ['{"document":', '{"passages":[]}', '{"document":{"labels":[]}}', "[]"])
def test_damaged_line_raises_config_error(line: str) -> None:
    with pytest.raises(ConfigError):
        read_back(HEADER + line)


def test_empty_fields_are_restored() -> None:
    blank = replace(ALICE, passages=(Passage("p", "d", ""),), entities=(Entity("e", ""),))
    assert read_back(export(blank)) == [blank]
