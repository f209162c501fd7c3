"""Adding a text or a fact gives passages, entities, mentions and facts; each distinct text is embedded once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from waylore.errors import DimensionMismatch
from waylore.indexing.pipeline import build_fact_document, embed_documents, index_text
from waylore.protocols import Vectors
from waylore.types.identity import document_id, entity_id, fact_id, passage_id
from waylore.types.knowledge import Document, IndexedDocument, NewFact, Vector

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DOCUMENT = Document(document_id(uri="u"), recorded_at=NOON)
FILLER = " ".join(["filler"] * 135)
OTHER = " ".join(["padding"] * 135)


def mentions(added: IndexedDocument, name: str) -> list[tuple[str, int, bool]]:
    """Return the text, count and ownership of each passage that mentions an entity."""
    text = {p.id: p.text for p in added.passages}
    return [(text[m.passage_id], m.count, m.is_own) for m in added.mentions if m.entity_id == entity_id(name)]


def find_places(added: IndexedDocument) -> list[str]:
    """Return the text of the passage of each fact."""
    text = {p.id: p.text for p in added.passages}
    return [text[f.passage_id] for f in added.facts]


# -- texts ---------------------------------------------------------------------------------------------


def test_text_becomes_passages_with_offsets() -> None:
    text = f"  First.\n\n{FILLER}\n\n{OTHER} Last."
    added = index_text(replace(DOCUMENT, title="Title"), text)
    assert [p.position for p in added.passages] == [*range(len(added.passages))]
    assert len(added.passages) > 1
    for passage in added.passages:
        assert passage.text == text[passage.start : passage.end]
        assert passage.id == passage_id(DOCUMENT.id, passage.text)
        assert (passage.title, passage.document_id) == ("Title", DOCUMENT.id)
    assert (added.entities, added.mentions, added.facts) == ((), (), ())


def test_repeated_passage_is_stored_once() -> None:
    added = index_text(DOCUMENT, f"{FILLER}\n\n{FILLER}")
    assert len(added.passages) == 1


def test_repeated_passage_has_its_first_offset() -> None:
    added = index_text(DOCUMENT, f"{FILLER}\n\n{OTHER}\n\n{FILLER}")
    assert [(p.position, p.start) for p in added.passages] == [(0, 0), (1, len(FILLER) + 2)]


# -- mentions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Ada wrote. ADA, they say; and Ada's notes.", 3),
        ("Adam and Nevada, then Ada.", 1),
        ("Nobody wrote.", 1),  # a passage mentions both ends of its facts
        ("Ada, Ada, Ada!", 3),
    ],
)
def test_mentions_count_whole_names(text: str, count: int) -> None:
    added = index_text(DOCUMENT, text, [NewFact("Ada", "wrote", "the first program", is_value=True)])
    assert mentions(added, "Ada") == [(text, count, False)]


def test_every_passage_with_a_name_mentions_the_entity() -> None:
    text = f"Ada knows Bob. {FILLER}\n\n{OTHER}\n\nBob left. {FILLER}"
    added = index_text(DOCUMENT, text, [NewFact("Ada", "knows", "Bob")])
    first, _, last = (p.text for p in added.passages)
    assert [(text, count) for text, count, _ in mentions(added, "Bob")] == [(first, 1), (last, 1)]
    assert [text for text, _, _ in mentions(added, "Ada")] == [first]


def test_names_are_counted_in_scripts_without_spaces() -> None:
    added = index_text(DOCUMENT, "北京是首都，北京很大。", [NewFact("北京", "is", "首都")])
    assert [count for _, count, _ in mentions(added, "北京")] == [2]


@pytest.mark.parametrize(
    ("title", "name", "is_own"),
    [
        ("Mercury", "mercury", True),
        ("Mercury (planet)", "Mercury", True),
        ("Mercury (planet) (old)", "Mercury", True),
        ("Mercury Records", "Mercury", False),
        ("", "Mercury", False),
        ("Mercury (planet)", "Mercury (planet)", True),
    ],
)
def test_title_decides_whether_a_mention_is_own(title: str, name: str, is_own: bool) -> None:
    added = index_text(replace(DOCUMENT, title=title), "It is hot.", [NewFact(name, "is", "hot", is_value=True)])
    assert mentions(added, name) == [("It is hot.", 1, is_own)]


# -- facts ---------------------------------------------------------------------------------------------


def test_new_fact_becomes_fact_with_two_entities() -> None:
    new_fact = NewFact("Ada", "knows", "Bob", weight=7, confidence=0.5, source="system", valid_from=NOON)
    added = index_text(DOCUMENT, "Ada knows Bob.", [new_fact])
    (fact,) = added.facts
    assert fact.id == fact_id(entity_id("Ada"), "knows", entity_id("Bob"), is_entity=True)
    assert (fact.subject_id, fact.object_id) == (entity_id("Ada"), entity_id("Bob"))
    assert (fact.weight, fact.confidence, fact.source) == (7, 0.5, "system")
    assert (fact.valid_from, fact.valid_to, fact.recorded_at) == (NOON, None, NOON)
    assert [e.name for e in added.entities] == ["Ada", "Bob"]


def test_value_is_not_an_entity() -> None:
    added = index_text(DOCUMENT, "Ada was born in 1815.", [NewFact("Ada", "born", "1815", is_value=True)])
    assert [e.name for e in added.entities] == ["Ada"]
    assert (added.facts[0].object, added.facts[0].object_id) == ("1815", "")
    assert added.facts[0].id == fact_id(entity_id("Ada"), "born", "1815", is_entity=False)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (NewFact("Ada", "knows", "Bob"), 1),
        (NewFact("Ada", "knows", "Zoe"), 0),
        (NewFact("Zoe", "knows", "Bob", statement="Bob, too"), 2),
        (NewFact("Yan", "knows", "Zoe"), 0),
    ],
)
def test_fact_belongs_to_passage_with_most_of_its_parts(fact: NewFact, expected: int) -> None:
    texts = [f"Ada came. {FILLER}", f"Ada met Bob. {FILLER}", f"Bob, too, left. {FILLER}"]
    added = index_text(DOCUMENT, "\n\n".join(texts), [fact])
    assert find_places(added) == [texts[expected]]


def test_parts_of_words_do_not_place_a_fact() -> None:
    text = f"The annual metal article. {FILLER}\n\nAnn met Art. {FILLER}"
    added = index_text(DOCUMENT, text, [NewFact("Ann", "met", "Art")])
    assert find_places(added) == [added.passages[1].text]


def test_repeated_fact_is_stored_once() -> None:
    facts = [NewFact("Ada", "knows", "Bob"), NewFact("ADA", "Knows", "bob")]
    added = index_text(DOCUMENT, "Ada knows Bob.", facts)
    assert len(added.facts) == 1
    assert [e.name for e in added.entities] == ["Ada", "Bob"]
    assert len(added.mentions) == 2


def test_fact_in_two_passages_has_two_assertions() -> None:
    first, second = f"Ada met Bob. {FILLER}", f"Ada has met Bob. {FILLER}"
    facts = [NewFact("Ada", "met", "Bob", statement=s) for s in ("Ada met Bob.", "Ada has met Bob.")]
    assert find_places(index_text(DOCUMENT, f"{first}\n\n{second}", facts)) == [first, second]


def test_fact_belongs_to_passage_with_its_statement() -> None:
    first, second = f"Ada and Bob; who knows? {FILLER}", f"Ada has met Bob. {FILLER}"
    fact = NewFact("Ada", "knows", "Bob", statement="Ada has met Bob.")
    assert find_places(index_text(DOCUMENT, f"{first}\n\n{second}", [fact])) == [second]


def test_entity_keeps_type_from_any_fact() -> None:
    facts = [
        NewFact("Ada", "knows", "Bob", object_type="person"),
        NewFact("bob", "knows", "ada", object_type="poet", subject_type="dog"),
    ]
    added = index_text(DOCUMENT, "They know each other.", facts)
    assert {e.name: e.type for e in added.entities} == {"Ada": "poet", "Bob": "person"}


# -- facts without a text -----------------------------------------------------------------------------


def test_fact_without_text_becomes_a_document() -> None:
    added = build_fact_document(NewFact("Ada", "mother_of", "Byron"), DOCUMENT)
    (passage,) = added.passages
    assert passage.text == "Ada mother of Byron"
    assert passage.document_id == added.document.id != DOCUMENT.id
    assert added.facts[0].statement == passage.text
    assert {m.entity_id for m in added.mentions} == {entity_id("Ada"), entity_id("Byron")}
    assert (
        build_fact_document(NewFact("Ada", "knows", "Bob", statement="They met."), DOCUMENT).passages[0].text
        == "They met."
    )


def test_same_fact_gives_same_document() -> None:
    once, again = (build_fact_document(NewFact(name, "knows", "Bob"), DOCUMENT) for name in ("Ada", "Ada"))
    assert once == again
    assert build_fact_document(NewFact("ada", "Knows", "Bob"), DOCUMENT).document == once.document
    assert build_fact_document(NewFact("Ada", "knows", "Bob", is_value=True), DOCUMENT).document != once.document


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((), ("a",)),
        (("a",), ("b",)),
        (("a",), ("a", "b")),
        (("a,b",), ("a", "b")),
    ],
)
def test_labels_change_the_document_of_a_fact(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    fact = NewFact("Ada", "knows", "Bob")
    ids = {
        build_fact_document(fact, replace(DOCUMENT, labels=frozenset(labels))).document.id for labels in (one, other)
    }
    assert len(ids) == 2


# -- vectors -------------------------------------------------------------------------------------------


@dataclass
class Lengths:
    """Embeds a text as its length, and records the texts."""

    name: str = "lengths"
    dimension: int = 2
    width: int = 2
    asked: list[str] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.array([[len(text)] * self.width for text in texts], dtype=np.float64).astype(np.float32)

    def embed_query(self, text: str) -> Vector:
        row: Vector = self.embed_passages([text])[0]
        return row


def test_each_distinct_text_is_embedded_once() -> None:
    facts = [NewFact("Ada", "knows", "Bob"), NewFact("Bob", "knows", "Ada")]
    added = [
        index_text(DOCUMENT, "Ada knows Bob", facts),
        build_fact_document(NewFact("Ada", "likes", "tea"), DOCUMENT),
    ]
    model = Lengths()
    done = embed_documents(added, model)
    assert sorted(model.asked) == ["Ada knows Bob", "Ada likes tea", "Bob knows Ada", "ada", "bob", "tea"]
    assert done == added
    for part in (part for c in done for part in c.parts):
        assert part.vector is not None
        assert part.vector.dtype == np.float32
        assert part.vector.tolist() == [len(part.embeddable)] * 2


def test_vectors_of_wrong_shape_raise_dimension_mismatch() -> None:
    added = index_text(DOCUMENT, "Ada knows Bob.")
    with pytest.raises(DimensionMismatch, match=r"lengths returned .*\(1, 3\).* expected \(1, 2\)"):
        embed_documents([added], Lengths(width=3))
    with pytest.raises(DimensionMismatch):
        embed_documents([added], Lengths(dimension=3))
