"""Import triples from lines of JSON and from tables: the meaning of each field, and the skipped rows."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from unit.indexing.importers.imports import import_content, lines, list_facts, list_texts
from waylore.indexing.blocks import Limits
from waylore.types.identity import entity_id


def test_objects_lists_and_short_names_are_read(tmp_path: Path) -> None:
    content = lines(
        {"subject": "Mara", "predicate": "works_at", "object": "Acme"},
        ["Acme", "based_in", "Oslo"],
        "",
        {"s": "Oslo", "p": "part_of", "o": "Norway", "statement": "Oslo lies in Norway."},
        {"head": "Mara", "relation": "knows", "tail": "Kofi"},
    )
    found, skipped = import_content(tmp_path / "a.jsonl", content)
    assert not skipped
    assert list_facts(found) == [
        "Mara —works_at→ Acme | Mara works at Acme",
        "Acme —based_in→ Oslo | Acme based in Oslo",
        "Oslo —part_of→ Norway | Oslo lies in Norway.",
        "Mara —knows→ Kofi | Mara knows Kofi",
    ]
    assert all(c.document.labels == {"team"} and c.document.metadata == {"by": "test"} for c in found)


def test_every_field_is_read(tmp_path: Path) -> None:
    row = {
        "subject": "Mara", "predicate": "works_at", "object": "Acme", "weight": 7, "confidence": "0.5",
        "source": "conversation", "status": "staged", "valid_from": "2020-01-31",
        "valid_to": "2024-05-01T12:00:00+02:00", "subject_type": "person", "object_type": "company",
        "title": "Mara", "uri": "https://acme.example/mara", "page": 4, "by": "other", "deep": {"a": 1},
    }  # fmt: skip
    [[made], skipped] = import_content(tmp_path / "a.jsonl", lines(row))
    [fact] = made.facts
    assert not skipped
    assert (fact.weight, fact.confidence, fact.source, fact.status) == (7.0, 0.5, "conversation", "staged")
    assert fact.valid_from == datetime(2020, 1, 31, tzinfo=UTC)
    assert fact.valid_to == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert {e.name: e.type for e in made.entities} == {"Mara": "person", "Acme": "company"}
    document = made.document
    assert (document.title, document.uri, document.source) == ("Mara", row["uri"], "conversation")
    assert document.metadata == {"page": 4, "by": "test"}, "what the caller says of all counts more"


def test_unknown_source_becomes_metadata(tmp_path: Path) -> None:
    [[made], _] = import_content(tmp_path / "a.jsonl", lines({"s": "a", "p": "b", "o": "c", "source": "wikipedia"}))
    assert (made.facts[0].source, made.document.metadata["source"]) == ("file", "wikipedia")


@pytest.mark.parametrize(
    ("row", "value"),
    [({"o": 41}, "41"), ({"o": True}, "true"), ({"o": "tall", "is_value": True}, "tall"), ({"o": 1.5}, "1.5")],
)
def test_plain_values_are_not_entities(row: dict[str, object], value: str, tmp_path: Path) -> None:
    [[made], _] = import_content(tmp_path / "a.jsonl", lines({"s": "Mara", "p": "is", **row}))
    assert (made.facts[0].object, made.facts[0].object_id) == (value, "")
    assert [e.id for e in made.entities] == [entity_id("Mara")]


def test_triples_with_same_text_or_address_share_a_document(tmp_path: Path) -> None:
    content = lines(
        {"s": "Mara", "p": "runs", "o": "Acme", "text": "Mara runs Acme in Oslo."},
        {"s": "Kofi", "p": "knows", "o": "Mara"},
        {"s": "Kofi", "p": "sings_in", "o": "Rome", "text": "Kofi sings in Rome.", "uri": "u", "title": "Kofi"},
        {"s": "Acme", "p": "based_in", "o": "Oslo", "text": "Mara runs Acme in Oslo."},
        {"s": "Kofi", "p": "eats", "o": "figs", "text": "He eats figs.", "uri": "u", "title": "Kofi"},
    )
    found, skipped = import_content(tmp_path / "a.jsonl", content)
    assert not skipped
    assert list_texts(found) == [
        ("", ["Kofi knows Mara"]),
        ("", ["Mara runs Acme in Oslo."]),
        ("Kofi", ["Kofi sings in Rome.", "He eats figs."]),
    ]
    assert list_facts(found)[1:] == [
        "Mara —runs→ Acme | Mara runs Acme in Oslo.",
        "Acme —based_in→ Oslo | Mara runs Acme in Oslo.",
        "Kofi —sings_in→ Rome | Kofi sings in Rome.",
        "Kofi —eats→ figs | He eats figs.",
    ]


def test_number_of_held_texts_is_limited(tmp_path: Path) -> None:
    content = lines(*({"s": "a", "p": "b", "o": f"c{n}", "text": "t"} for n in range(3)), ["a", "b", "c"])
    found, skipped = import_content(tmp_path / "a.jsonl", content, limits=Limits(blocks=2))
    assert [len(c.facts) for c in found] == [1, 2]
    assert list(skipped) == ["#line=3"]
    assert "raise the limit `blocks`" in skipped["#line=3"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{broken", "it is not JSON: Expecting property name enclosed in double quotes at character 2"),
        (["a", "b"], "it is a list of 2: a triple is [subject, predicate, object]"),
        ('"abc"', "it is neither"),
        ({"s": "a", "p": "b"}, "it has no object"),
        ({"s": "  ", "p": "b", "o": "c"}, "it has no subject"),
        ({"s": ["a"], "p": "b", "o": "c"}, "it has no subject"),
        ({"s": "a" * 1_001, "p": "b", "o": "c"}, "its subject has more than 1,000 characters"),
        ({"s": "a", "p": "b", "o": "c", "weight": 11}, "weight must be a number from 1 to 10, got 11.0"),
        ({"s": "a", "p": "b", "o": "c", "weight": "heavy"}, "could not convert"),
        ({"s": "a", "p": "b", "o": "c", "weight": [1]}, "float() argument"),
        (
            {"s": "a", "p": "b", "o": "c", "status": "gone"},
            "status must be one of staged, confirmed, retracted, got 'gone'",
        ),
        ({"s": "a", "p": "b", "o": "c", "valid_to": "soon"}, "its valid_to 'soon' is not a date"),
        ({"s": "a", "p": "b", "o": "c", "valid_from": "0001-01-01T00:00:00+14:00"}, "date value out of range"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_broken_line_is_skipped_and_next_is_read(row: object, reason: str, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "a.jsonl", lines(row, ["a", "b", "c"]), "triples")
    assert list(skipped) == ["#line=1"]
    assert skipped["#line=1"].startswith(reason)
    assert list_facts(found) == ["a —b→ c | a b c"]


def test_invalid_bytes_and_long_lines_are_skipped_alone(tmp_path: Path) -> None:
    content = b'["a", "b", "\xff"]\n["a", "b", "' + b"x" * 70_000 + b'"]\n["a", "b", "c"]'
    found, skipped = import_content(tmp_path / "a.jsonl", content, limits=Limits(line=1_000))
    assert skipped["#line=1"] == "it is not UTF-8: save the file as UTF-8"
    assert "raise the limit `line`" in skipped["#line=2"]
    assert list_facts(found) == ["a —b→ c | a b c"]


def test_unstorable_characters_are_replaced(tmp_path: Path) -> None:
    [[made], _] = import_content(tmp_path / "a.jsonl", '{"s": "a\\ud800", "p": "b", "o": "c\\u0000", "k": "\\udfff"}')
    assert str(made.facts[0]) == "a\ufffd —b→ c\ufffd"
    assert made.document.metadata["k"] == "\ufffd"


@pytest.mark.parametrize("content", [[["a", "b", "c"], {"s": "d", "p": "e", "o": "f"}]])
@pytest.mark.parametrize("indent", [None, 1])
def test_json_file_may_be_one_list(content: list[object], indent: int | None, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "a.json", json.dumps(content, indent=indent))
    assert not skipped
    assert list_facts(found) == ["a —b→ c | a b c", "d —e→ f | d e f"]


# -- tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "comma"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")])
@pytest.mark.parametrize("header", ["s,p,o,weight,is_value", "Subject,Predicate,Object,weight,is_value"])
def test_first_row_of_table_names_columns(name: str, comma: str, header: str, tmp_path: Path) -> None:
    rows = [header, 'Mara,is,"tall,\r\nvery",7,true', "", "Mara,knows,Kofi,,"]
    content = "\ufeff" + "\r\n".join(rows)
    if comma != ",":
        content = content.replace("tall,", "tall").replace(",", comma)
    found, skipped = import_content(tmp_path / name, content)
    assert not skipped
    first, second = (c.facts[0] for c in found)
    assert (first.object.split()[-1], first.object_id, first.weight) == ("very", "", 7.0)
    assert (str(second), second.weight) == ("Mara —knows→ Kofi", 5.0)


def test_broken_table_rows_are_skipped_with_line_number(tmp_path: Path) -> None:
    rows = [b"s,p,o", b"a,b", b"a,b,\xff", b"a,b,c", b"a,b,c,d", b",b,c", b"d,e,f"]
    found, skipped = import_content(tmp_path / "a.csv", b"\n".join(rows))
    assert {place: reason.split(":")[0] for place, reason in skipped.items()} == {
        "#line=2": "it has 2 cells, the first row has 3",
        "#line=3": "it is not UTF-8",
        "#line=5": "it has 4 cells, the first row has 3",
        "#line=6": "it has no subject",
    }
    assert list_facts(found) == ["a —b→ c | a b c", "d —e→ f | d e f"]


def test_too_long_field_does_not_end_the_table(tmp_path: Path) -> None:
    content = "s,p,o\na,b," + "x" * 140_000 + "\nd,e,f\n"
    found, skipped = import_content(tmp_path / "a.csv", content)
    assert skipped == {"#line=2": "it is not a row of a table: field larger than field limit (131072)"}
    assert list_facts(found) == ["d —e→ f | d e f"]


def test_table_without_columns_is_skipped(tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "a.csv", "name,city\nMara,Oslo\n")
    assert not found
    assert skipped == {"": "its first row must name the columns: subject, predicate, object (or s, p, o)"}
