"""Test ids, embedded texts, indexed documents, digests, new facts and explanations."""

from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import types
from waylore.errors import ArgumentError
from waylore.types.identity import document_id, entity_id, fact_id, identity, passage_id
from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, Mention, NewFact, Passage
from waylore.types.search import Explanation, GraphPath, Hit, Placement, Step

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
VECTOR = np.ones(3, dtype=np.float32)


# -- ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (identity("kind", "part"), "97c6d2a890158200f4781be0b4dbe695"),
        (document_id(uri="https://example.org/a"), "6923479abc54b8d4e02ad9721326c9ff"),
        (document_id(text="A text.", labels=frozenset({"b", "a"})), "5054c2ddb7faddbe5685d18e6fb0a34d"),
        (passage_id("d", "A text."), "f9d30917d98f4795071afbfd5e6966ff"),
        (entity_id("Ermengarde of Tours"), "87b053570265bb8a394896904ff61de2"),
        (entity_id("Mercury", "planet"), "350857280fdbd25725e7dfc7449e7753"),
        (fact_id("e1", "mother_of", "e2", is_entity=True), "38f88d478192980a1985b0d34f864852"),
        (fact_id("e1", "born", "825", is_entity=False), "fcbded7caa24e0c1ccd4ee54d60f5b45"),
    ],
)
def test_ids_never_change(found: str, expected: str) -> None:
    assert found == expected, "stores hold these identities: a change makes every one of them a stranger"


@given(st.lists(st.text()), st.lists(st.text()))
def test_different_parts_have_different_ids(one: list[str], other: list[str]) -> None:
    assert (identity("kind", *one) == identity("kind", *other)) == (one == other)
    assert len(bytes.fromhex(identity("kind", *one))) == 16


def test_ids_separate_their_parts() -> None:
    assert identity("kind", "ab", "c") != identity("kind", "a", "bc")
    assert identity("kind", "") != identity("kind")
    assert identity("entity", "a") != identity("fact", "a")


def test_labels_are_part_of_a_document_id() -> None:
    alike = [frozenset[str](), frozenset({"a"}), frozenset({"a", "b"}), frozenset({"ab"})]
    assert len({document_id(text="t", labels=labels) for labels in alike}) == 4


def test_document_id_with_address_ignores_the_text() -> None:
    assert document_id(uri="u", text="one", labels=frozenset("a")) == document_id(uri="u", text="two")
    assert document_id(uri="u") != document_id(text="u")


def test_entity_id_ignores_the_spelling() -> None:
    assert entity_id("Lothair II.") == entity_id("LOTHAIR  ii")
    assert entity_id("Mercury", "planet") != entity_id("Mercury")


def test_entity_and_equal_value_make_two_facts() -> None:
    assert fact_id("e", "p", "o", is_entity=True) != fact_id("e", "p", "o", is_entity=False)
    assert fact_id("e", "born_in", "o", is_entity=True) == fact_id("e", "Born in", "o", is_entity=True)
    assert fact_id("e", "p", "o", is_entity=True) != fact_id("o", "p", "e", is_entity=True)


# -- embedded texts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Passage("p", "d", "A text."), "A text."),
        (Passage("p", "d", "A text.", title="Title"), "Title\nA text."),
        (Entity("e", "Lothair II."), "lothair ii"),
        (Fact("f", "e", "A", "knows", "B"), "A knows B"),
        (Fact("f", "e", "A", "knows", "B", statement="A has met B."), "A has met B."),
    ],
)
def test_embedded_text_of_each_part(part: types.Embeddable, expected: str) -> None:
    assert part.embeddable == expected


# -- indexed documents ---------------------------------------------------------------------------------

WHOLE = IndexedDocument(
    document=Document("d"),
    passages=(Passage("p", "d", "A knows B."),),
    entities=(Entity("a", "A"), Entity("b", "B")),
    mentions=(Mention("a", "p"),),
    facts=(Fact("f", "a", "A", "knows", "B", object_id="b", passage_id="p"),),
)


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        ({"passages": ()}, "'p'"),
        ({"passages": (), "mentions": ()}, "'p'"),
        ({"passages": (), "facts": ()}, "'p'"),
        ({"entities": WHOLE.entities[1:], "facts": ()}, "'a'"),
        ({"entities": WHOLE.entities[1:], "mentions": ()}, "'a'"),
        ({"entities": WHOLE.entities[:1]}, "'b'"),
    ],
)
def test_indexed_document_contains_what_it_refers_to(without: dict[str, Any], missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        replace(WHOLE, **without)


@pytest.mark.parametrize("value", [None, {"nested": 1}, [None], b"bytes", [["list"]]])
def test_metadata_holds_scalars_and_lists_of_scalars(value: Any) -> None:
    with pytest.raises(ValueError, match="'key' must be"):
        Document("d", metadata={"key": value})


def test_value_refers_to_no_entity() -> None:
    value = replace(WHOLE.facts[0], object_id="")
    assert replace(WHOLE, entities=WHOLE.entities[:1], facts=(value,)).facts == (value,)


def test_parts_are_everything_with_a_vector() -> None:
    assert [part.id for part in WHOLE.parts] == ["p", "a", "b", "f"]


# -- digests -------------------------------------------------------------------------------------------

IGNORED = {
    "passages": 9,
    "vector": VECTOR,
    "recorded_at": NOON,
    "author": "other",
    "access_count": 7,
    "last_accessed": NOON,
}
CHANGED: dict[str, Any] = {
    "metadata": {"year": 1843},
    "labels": frozenset({"secret"}),
    "source": "user_edit",
    "status": "staged",
    "valid_from": NOON,
    "valid_to": NOON,
    "aliases": ("Ay",),
    "headings": ("Chapter",),
    "is_own": True,
    "at": NOON,
    "expires": NOON,
}


def change_field(field: str, at: str, value: Any) -> IndexedDocument:
    """Return WHOLE with one field of one part changed."""
    if at == "document":
        return replace(WHOLE, document=replace(WHOLE.document, **{field: value}))
    first, *others = getattr(WHOLE, at)
    change: dict[str, Any] = {at: (replace(first, **{field: value}), *others)}
    return replace(WHOLE, **change)


SAMPLES = {"document": WHOLE.document} | {
    at: getattr(WHOLE, at)[0] for at in ("passages", "entities", "mentions", "facts")
}
POINTERS = {("document", "id"), ("passages", "document_id"), ("passages", "id"), ("entities", "id")} | {
    (at, f"{end}_id") for at in ("mentions", "facts") for end in ("entity", "passage", "subject", "object")
}
PLACES = [(at, field.name) for at, part in SAMPLES.items() for field in fields(part)]
DERIVED = ("facts", "at")  # that of the passage


@pytest.mark.parametrize(("at", "field"), [place for place in PLACES if place[1] in IGNORED])
def test_digest_ignores_authors_times_and_vectors(at: str, field: str) -> None:
    assert change_field(field, at, IGNORED[field]).digest == WHOLE.digest


def test_digest_has_the_time_of_a_passage_once() -> None:
    assert change_field("at", "facts", NOON).digest == WHOLE.digest != change_field("at", "passages", NOON).digest


@pytest.mark.parametrize(
    ("at", "field"), [place for place in PLACES if place[1] not in IGNORED and place not in {*POINTERS, DERIVED}]
)
def test_digest_depends_on_the_content(at: str, field: str) -> None:
    old = getattr(SAMPLES[at], field)
    new = CHANGED.get(field) or (f"{old}!" if isinstance(old, str) else old + 1)
    assert change_field(field, at, new).digest != WHOLE.digest


@pytest.mark.parametrize(
    "change",
    [
        {"mentions": (Mention("b", "p"),)},
        {"mentions": ()},
        {"facts": (replace(WHOLE.facts[0], subject_id="b"),)},
        {"facts": (replace(WHOLE.facts[0], object_id=""),)},
        {"facts": ()},
        {"facts": (), "mentions": (), "entities": ()},
        {"passages": (*WHOLE.passages, Passage("q", "d", "B knows A."))},
    ],
)
def test_digest_depends_on_references(change: dict[str, Any]) -> None:
    assert replace(WHOLE, **change).digest != WHOLE.digest


class Clash(str):
    """A label with the hash of every other, so that a set of them is in the order of insertion."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 0


def test_digest_ignores_the_order_of_labels() -> None:
    one, other = (frozenset(map(Clash, labels)) for labels in ("ab", "ba"))
    assert list(one) != list(other)
    assert change_field("labels", "document", one).digest == change_field("labels", "document", other).digest


@pytest.mark.parametrize(
    ("at", "field", "one", "other"),
    [
        ("document", "metadata", {"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ("facts", "weight", 5, 5.0),
    ],
)
def test_equal_documents_have_equal_digests(at: str, field: str, one: object, other: object) -> None:
    assert change_field(field, at, one) == change_field(field, at, other)
    assert change_field(field, at, one).digest == change_field(field, at, other).digest


# -- new facts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subject": " "}, "subject must not be empty"),
        ({"predicate": ""}, "predicate must not be empty"),
        ({"object": "\n"}, "object must not be empty"),
        ({"weight": 0.9}, "weight must be a number from 1 to 10"),
        ({"weight": 10.1}, "weight must be a number from 1 to 10"),
        ({"weight": float("nan")}, "weight must be a number from 1 to 10"),
        ({"confidence": -0.1}, "confidence must be a number from 0 to 1"),
        ({"confidence": 1.1}, "confidence must be a number from 0 to 1"),
        ({"source": "rumour"}, "user_edit"),
        ({"status": "doubted"}, "retracted"),
    ],
)
def test_invalid_facts_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(NewFact("A", "knows", "B"), **wrong)


@pytest.mark.parametrize(("weight", "confidence"), [(1, 0), (10, 1)])
def test_facts_may_have_values_at_their_limits(weight: float, confidence: float) -> None:
    assert NewFact("A", "knows", "B", weight=weight, confidence=confidence).weight == weight


# -- explanations --------------------------------------------------------------------------------------


def test_explanation_is_an_indented_tree() -> None:
    leaf = Explanation(0.25, "leaf")
    tree = Explanation(1, "root", (Explanation(0.5, "branch", (leaf,)), leaf))
    assert str(tree) == "1.0000  root\n  0.5000  branch\n    0.2500  leaf\n  0.2500  leaf"


def test_unknown_source_is_refused() -> None:
    source: Any = "web"
    with pytest.raises(ArgumentError, match="source must be one of"):
        Document("d", source=source)


def test_hit_explains_its_searches_and_path() -> None:
    hit = Hit(
        passage=WHOLE.passages[0],
        document=WHOLE.document,
        score=0.75,
        placements=(Placement("vector", 1, 0.9, 0.7), Placement("keyword", 3, 4.2, 0.05)),
        path=GraphPath("A", tuple(map(Step, WHOLE.facts))),
    )
    assert str(hit.explanation).splitlines() == [
        "0.7500  the sum of its shares",
        "  0.7000  vector: rank 1, score 0.9000",
        "  0.0500  keyword: rank 3, score 4.2000",
        "  path: A —knows→ B → this passage",
        "    A knows B",
    ]
    assert len(replace(hit, path=None).explanation.details) == 2


def test_explanation_of_anchored_shares_names_the_best_scores() -> None:
    placements = (
        Placement("vector", None, 0.71, 0.61, best=0.75),
        Placement("keyword", 2, 9.1, 0.22, best=12.4),
    )
    hit = Hit(WHOLE.passages[0], WHOLE.document, 0.83, placements)
    assert str(hit.explanation).splitlines() == [
        "0.8300  the sum of its shares",
        "  0.6100  vector: not among the first, cosine 0.7100, best 0.7500",
        "  0.2200  keyword: rank 2, BM25 9.1000, best 12.4000",
    ]


# -- all types -----------------------------------------------------------------------------------------

CLASSES = [kind for kind in vars(types).values() if isinstance(kind, type) and is_dataclass(kind)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: str(kind.__name__))
def test_types_are_frozen(kind: Any) -> None:
    name = fields(kind)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(kind.__new__(kind), name, "other")
