"""Parts that others cut become one contribution, whose identity is what it says and who may read it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from unit.indexing.importers.imports import FRAME
from waylore.indexing.importers.parts import Part, assembled, card, entity, framed, told
from waylore.indexing.pipeline import stated
from waylore.types.knowledge import Claim

CLAIM = Claim("Mara", "works_at", "Acme")
LONG = " ".join(f"Word{n} of a long text." for n in range(200))


def test_parts_become_passages_in_their_order_and_place() -> None:
    made = assembled(framed(FRAME, "test", "a"), [Part("One."), Part(LONG), Part("Two."), Part("One.")])
    whole = "\n\n".join(["One.", LONG, "Two."])
    assert [p.position for p in made.passages] == [*range(len(made.passages))]
    assert len(made.passages) > 3
    assert all(whole[p.start : p.end] == p.text for p in made.passages)


def test_a_part_may_know_where_it_begins() -> None:
    made = assembled(framed(FRAME, "test", "a"), [Part("later", start=40), Part("first", start=3)])
    assert [(p.text, p.start, p.end) for p in made.passages] == [("first", 3, 8), ("later", 40, 45)]


def test_a_claim_is_placed_in_its_part_though_another_names_more_of_it() -> None:
    made = assembled(framed(FRAME, "test", "a"), [Part("She does.", (CLAIM,)), Part("Mara works at Acme.")])
    [fact] = made.facts
    assert {p.id: p.text for p in made.passages}[fact.passage_id] == "She does."


def test_what_is_named_is_mentioned_where_it_stands_or_first_if_nowhere() -> None:
    named = (entity("Word7", "number"), entity("Kofi"))
    made = assembled(framed(FRAME, "test", "a"), [Part(LONG, named=named)])
    text, name = {p.id: p.text for p in made.passages}, {e.id: e.name for e in made.entities}
    found = {(name[m.entity_id], "Word7 " in text[m.passage_id], m.is_own) for m in made.mentions}
    assert found == {("Word7", True, False), ("Kofi", made.passages[0].text.count("Word7 ") > 0, False)}


def test_what_a_document_is_about_owns_every_passage() -> None:
    about = entity("Mara", "person", "A smith.", ["MARA", "Em", "em"])
    made = assembled(framed(FRAME, "test", "a"), [Part("Mara, Mara!", (CLAIM,)), Part("Sings.")], [about])
    mine = [m for m in made.mentions if m.entity_id == about.id]
    assert [(m.count, m.is_own) for m in mine] == [(2, True), (1, True)]
    assert [(e.type, e.aliases) for e in made.entities if e.id == about.id] == [("person", ("em",))]


def test_a_claim_of_a_file_does_not_replace_the_users_own() -> None:
    edited, from_file = stated(CLAIM, FRAME), told(CLAIM, FRAME)
    assert edited.document.id != from_file.document.id
    assert edited.facts[0].id == from_file.facts[0].id
    assert [p.text for p in from_file.passages] == ["Mara works at Acme"]


def test_identity_is_what_is_said_and_to_whom() -> None:
    first = told(CLAIM, FRAME).document.id
    assert told(replace(CLAIM, weight=9.0, status="retracted"), FRAME).document.id == first
    others = [
        told(replace(CLAIM, statement="She works there."), FRAME),
        told(replace(CLAIM, is_value=True), FRAME),
        told(CLAIM, replace(FRAME, labels=frozenset())),
        card(entity("Mara works_at Acme"), FRAME),
    ]
    assert len({first, *(c.document.id for c in others)}) == 5


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_no_two_things_that_are_said_share_an_identity(left: list[str], right: list[str]) -> None:
    same = framed(FRAME, "test", *left).id == framed(FRAME, "test", *right).id
    assert same == (left == right)
