"""Imported parts become one document, with an id made of its content and labels."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from unit.indexing.importers.imports import FRAME
from waylore.indexing.importers.parts import (
    ImportedPart,
    assemble_parts,
    make_document,
    make_entity,
    make_entity_document,
    make_fact_document,
)
from waylore.indexing.pipeline import build_fact_document
from waylore.types.knowledge import NewFact

CLAIM = NewFact("Mara", "works_at", "Acme")
LONG = " ".join(f"Word{n} of a long text." for n in range(200))


def test_parts_become_passages_in_order() -> None:
    made = assemble_parts(
        make_document(FRAME, "test", "a"),
        [ImportedPart("One."), ImportedPart(LONG), ImportedPart("Two."), ImportedPart("One.")],
    )
    whole = "\n\n".join(["One.", LONG, "Two."])
    assert [p.position for p in made.passages] == [*range(len(made.passages))]
    assert len(made.passages) > 3
    assert all(whole[p.start : p.end] == p.text for p in made.passages)


def test_part_may_have_an_offset() -> None:
    made = assemble_parts(
        make_document(FRAME, "test", "a"), [ImportedPart("later", start=40), ImportedPart("first", start=3)]
    )
    assert [(p.text, p.start, p.end) for p in made.passages] == [("first", 3, 8), ("later", 40, 45)]


def test_fact_stays_in_its_part() -> None:
    made = assemble_parts(
        make_document(FRAME, "test", "a"),
        [ImportedPart("She does.", (CLAIM,)), ImportedPart("Mara works at Acme.")],
    )
    [fact] = made.facts
    assert {p.id: p.text for p in made.passages}[fact.passage_id] == "She does."


def test_entity_is_mentioned_where_named_or_in_first_passage() -> None:
    named = (make_entity("Word7", "number"), make_entity("Kofi"))
    made = assemble_parts(make_document(FRAME, "test", "a"), [ImportedPart(LONG, entities=named)])
    text, name = {p.id: p.text for p in made.passages}, {e.id: e.name for e in made.entities}
    found = {(name[m.entity_id], "Word7 " in text[m.passage_id], m.is_own) for m in made.mentions}
    assert found == {("Word7", True, False), ("Kofi", made.passages[0].text.count("Word7 ") > 0, False)}


def test_subject_is_mentioned_as_own_in_every_passage() -> None:
    about = make_entity("Mara", "person", "A smith.", ["MARA", "Em", "em"])
    made = assemble_parts(
        make_document(FRAME, "test", "a"),
        [ImportedPart("Mara, Mara!", (CLAIM,)), ImportedPart("Sings.")],
        [about],
    )
    mine = [m for m in made.mentions if m.entity_id == about.id]
    assert [(m.count, m.is_own) for m in mine] == [(2, True), (1, True)]
    assert [(e.type, e.aliases) for e in made.entities if e.id == about.id] == [("person", ("em",))]


def test_imported_fact_does_not_replace_users_fact() -> None:
    edited, from_file = build_fact_document(CLAIM, FRAME), make_fact_document(CLAIM, FRAME)
    assert edited.document.id != from_file.document.id
    assert edited.facts[0].id == from_file.facts[0].id
    assert [p.text for p in from_file.passages] == ["Mara works at Acme"]


def test_id_depends_on_content_and_labels() -> None:
    first = make_fact_document(CLAIM, FRAME).document.id
    assert make_fact_document(replace(CLAIM, weight=9.0, status="retracted"), FRAME).document.id == first
    others = [
        make_fact_document(replace(CLAIM, statement="She works there."), FRAME),
        make_fact_document(replace(CLAIM, is_value=True), FRAME),
        make_fact_document(CLAIM, replace(FRAME, labels=frozenset())),
        make_entity_document(make_entity("Mara works_at Acme"), FRAME),
    ]
    assert len({first, *(c.document.id for c in others)}) == 5


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_different_contents_have_different_ids(left: list[str], right: list[str]) -> None:
    same = make_document(FRAME, "test", *left).id == make_document(FRAME, "test", *right).id
    assert same == (left == right)
