"""What a caller adds becomes passages, entities, mentions and facts; each distinct text is embedded once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from waylore.errors import DimensionMismatch
from waylore.indexing.pipeline import contribution, embedded, stated
from waylore.protocols import Vectors
from waylore.types.identity import document_id, entity_id, fact_id, passage_id
from waylore.types.knowledge import Claim, Contribution, Document, Vector

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DOCUMENT = Document(document_id(uri="u"), recorded_at=NOON)
FILLER = " ".join(["filler"] * 135)
OTHER = " ".join(["padding"] * 135)


def mentions(added: Contribution, name: str) -> list[tuple[str, int, bool]]:
    """The text, count and ownership of each passage that mentions an entity."""
    text = {p.id: p.text for p in added.passages}
    return [(text[m.passage_id], m.count, m.is_own) for m in added.mentions if m.entity_id == entity_id(name)]


def places(added: Contribution) -> list[str]:
    """The text of the passage that each fact is placed in."""
    text = {p.id: p.text for p in added.passages}
    return [text[f.passage_id] for f in added.facts]


# -- texts ---------------------------------------------------------------------------------------------


def test_a_text_becomes_passages_that_know_their_place() -> None:
    text = f"  First.\n\n{FILLER}\n\n{OTHER} Last."
    added = contribution(replace(DOCUMENT, title="Title"), text)
    assert [p.position for p in added.passages] == [*range(len(added.passages))]
    assert len(added.passages) > 1
    for passage in added.passages:
        assert passage.text == text[passage.start : passage.end]
        assert passage.id == passage_id(DOCUMENT.id, passage.text)
        assert (passage.title, passage.document_id) == ("Title", DOCUMENT.id)
    assert (added.entities, added.mentions, added.facts) == ((), (), ())


def test_a_passage_that_is_repeated_is_one() -> None:
    added = contribution(DOCUMENT, f"{FILLER}\n\n{FILLER}")
    assert len(added.passages) == 1


def test_a_passage_that_is_repeated_stays_where_it_came_first() -> None:
    added = contribution(DOCUMENT, f"{FILLER}\n\n{OTHER}\n\n{FILLER}")
    assert [(p.position, p.start) for p in added.passages] == [(0, 0), (1, len(FILLER) + 2)]


# -- mentions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Ada wrote. ADA, they say; and Ada's notes.", 3),
        ("Adam and Nevada, then Ada.", 1),
        ("Nobody wrote.", 1),  # a claim that the passage supports mentions its ends
        ("Ada, Ada, Ada!", 3),
    ],
)
def test_mentions_count_whole_names(text: str, count: int) -> None:
    added = contribution(DOCUMENT, text, [Claim("Ada", "wrote", "the first program", is_value=True)])
    assert mentions(added, "Ada") == [(text, count, False)]


def test_every_passage_that_names_an_entity_mentions_it() -> None:
    text = f"Ada knows Bob. {FILLER}\n\n{OTHER}\n\nBob left. {FILLER}"
    added = contribution(DOCUMENT, text, [Claim("Ada", "knows", "Bob")])
    first, _, last = (p.text for p in added.passages)
    assert [(text, count) for text, count, _ in mentions(added, "Bob")] == [(first, 1), (last, 1)]
    assert [text for text, _, _ in mentions(added, "Ada")] == [first]


def test_a_name_is_counted_in_a_script_without_spaces() -> None:
    added = contribution(DOCUMENT, "北京是首都，北京很大。", [Claim("北京", "is", "首都")])
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
def test_a_passage_is_an_entity_s_own_if_its_title_names_it(title: str, name: str, is_own: bool) -> None:
    added = contribution(
        replace(DOCUMENT, title=title), "It is hot.", [Claim(name, "is", "hot", is_value=True)]
    )
    assert mentions(added, name) == [("It is hot.", 1, is_own)]


# -- facts ---------------------------------------------------------------------------------------------


def test_a_claim_becomes_a_fact_with_two_ends() -> None:
    claim = Claim("Ada", "knows", "Bob", weight=7, confidence=0.5, source="system", valid_from=NOON)
    added = contribution(DOCUMENT, "Ada knows Bob.", [claim])
    (fact,) = added.facts
    assert fact.id == fact_id(entity_id("Ada"), "knows", entity_id("Bob"), is_entity=True)
    assert (fact.subject_id, fact.object_id) == (entity_id("Ada"), entity_id("Bob"))
    assert (fact.weight, fact.confidence, fact.source) == (7, 0.5, "system")
    assert (fact.valid_from, fact.valid_to, fact.recorded_at) == (NOON, None, NOON)
    assert [e.name for e in added.entities] == ["Ada", "Bob"]


def test_a_value_is_no_entity() -> None:
    added = contribution(DOCUMENT, "Ada was born in 1815.", [Claim("Ada", "born", "1815", is_value=True)])
    assert [e.name for e in added.entities] == ["Ada"]
    assert (added.facts[0].object, added.facts[0].object_id) == ("1815", "")
    assert added.facts[0].id == fact_id(entity_id("Ada"), "born", "1815", is_entity=False)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (Claim("Ada", "knows", "Bob"), 1),
        (Claim("Ada", "knows", "Zoe"), 0),
        (Claim("Zoe", "knows", "Bob", statement="Bob, too"), 2),
        (Claim("Yan", "knows", "Zoe"), 0),
    ],
)
def test_a_fact_is_placed_in_the_passage_that_says_most_of_it(claim: Claim, expected: int) -> None:
    texts = [f"Ada came. {FILLER}", f"Ada met Bob. {FILLER}", f"Bob, too, left. {FILLER}"]
    added = contribution(DOCUMENT, "\n\n".join(texts), [claim])
    assert places(added) == [texts[expected]]


def test_a_fact_is_not_placed_by_parts_of_words() -> None:
    text = f"The annual metal article. {FILLER}\n\nAnn met Art. {FILLER}"
    added = contribution(DOCUMENT, text, [Claim("Ann", "met", "Art")])
    assert places(added) == [added.passages[1].text]


def test_a_claim_made_twice_is_one_fact() -> None:
    claims = [Claim("Ada", "knows", "Bob"), Claim("ADA", "Knows", "bob")]
    added = contribution(DOCUMENT, "Ada knows Bob.", claims)
    assert len(added.facts) == 1
    assert [e.name for e in added.entities] == ["Ada", "Bob"]
    assert len(added.mentions) == 2


def test_a_fact_that_two_passages_state_has_two_supports() -> None:
    first, second = f"Ada met Bob. {FILLER}", f"Ada has met Bob. {FILLER}"
    claims = [Claim("Ada", "met", "Bob", statement=s) for s in ("Ada met Bob.", "Ada has met Bob.")]
    assert places(contribution(DOCUMENT, f"{first}\n\n{second}", claims)) == [first, second]


def test_a_fact_is_placed_where_its_statement_stands() -> None:
    first, second = f"Ada and Bob; who knows? {FILLER}", f"Ada has met Bob. {FILLER}"
    claim = Claim("Ada", "knows", "Bob", statement="Ada has met Bob.")
    assert places(contribution(DOCUMENT, f"{first}\n\n{second}", [claim])) == [second]


def test_a_type_is_kept_whoever_gives_it() -> None:
    claims = [
        Claim("Ada", "knows", "Bob", object_type="person"),
        Claim("bob", "knows", "ada", object_type="poet", subject_type="dog"),
    ]
    added = contribution(DOCUMENT, "They know each other.", claims)
    assert {e.name: e.type for e in added.entities} == {"Ada": "poet", "Bob": "person"}


# -- claims without a text -----------------------------------------------------------------------------


def test_a_claim_alone_is_a_document_of_its_own() -> None:
    added = stated(Claim("Ada", "mother_of", "Byron"), DOCUMENT)
    (passage,) = added.passages
    assert passage.text == "Ada mother of Byron"
    assert passage.document_id == added.document.id != DOCUMENT.id
    assert added.facts[0].statement == passage.text
    assert {m.entity_id for m in added.mentions} == {entity_id("Ada"), entity_id("Byron")}
    assert stated(Claim("Ada", "knows", "Bob", statement="They met."), DOCUMENT).passages[0].text == "They met."


def test_the_same_claim_is_the_same_document() -> None:
    once, again = (stated(Claim(name, "knows", "Bob"), DOCUMENT) for name in ("Ada", "Ada"))
    assert once == again
    assert stated(Claim("ada", "Knows", "Bob"), DOCUMENT).document == once.document
    assert stated(Claim("Ada", "knows", "Bob", is_value=True), DOCUMENT).document != once.document


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((), ("a",)),
        (("a",), ("b",)),
        (("a",), ("a", "b")),
        (("a,b",), ("a", "b")),
    ],
)
def test_who_may_read_a_claim_makes_another_document(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    claim = Claim("Ada", "knows", "Bob")
    ids = {stated(claim, replace(DOCUMENT, labels=frozenset(labels))).document.id for labels in (one, other)}
    assert len(ids) == 2


# -- vectors -------------------------------------------------------------------------------------------


@dataclass
class Lengths:
    """Embeds a text as its length, and remembers what it was asked."""

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


def test_each_distinct_text_is_embedded_once_and_every_part_has_its_own() -> None:
    claims = [Claim("Ada", "knows", "Bob"), Claim("Bob", "knows", "Ada")]
    added = [contribution(DOCUMENT, "Ada knows Bob", claims), stated(Claim("Ada", "likes", "tea"), DOCUMENT)]
    model = Lengths()
    done = embedded(added, model)
    assert sorted(model.asked) == ["Ada knows Bob", "Ada likes tea", "Bob knows Ada", "ada", "bob", "tea"]
    assert done == added
    for part in (part for c in done for part in c.parts):
        assert part.vector is not None
        assert part.vector.dtype == np.float32
        assert part.vector.tolist() == [len(part.embeddable)] * 2


def test_vectors_of_the_wrong_shape_are_refused() -> None:
    added = contribution(DOCUMENT, "Ada knows Bob.")
    with pytest.raises(DimensionMismatch, match=r"lengths gave .*\(1, 3\).* not \(1, 2\)"):
        embedded([added], Lengths(width=3))
    with pytest.raises(DimensionMismatch):
        embedded([added], Lengths(dimension=3))
