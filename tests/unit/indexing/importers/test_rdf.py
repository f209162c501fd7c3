"""N-Triples: labels name things, types and descriptions describe them, literals are plain values."""

from pathlib import Path

import pytest

from unit.indexing.importers.imports import get_subjects, import_content, list_facts, list_texts

PREFIXES = {
    "ex:": "http://example.org/",
    "rdfs:": "http://www.w3.org/2000/01/rdf-schema#",
    "skos:": "http://www.w3.org/2004/02/skos/core#",
    "rdf:": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}


def make_statements(*written: str) -> str:
    """Return N-Triples from `ex:a rdfs:label "x" .`, one per line."""

    def term(part: str) -> str:
        prefix = next((p for p in PREFIXES if part.startswith(p)), "")
        return f"<{PREFIXES[prefix]}{part.removeprefix(prefix)}>" if prefix else part

    return "".join(" ".join(term(part) for part in line.split(" ")) + "\n" for line in written)


PEOPLE = make_statements(
    'ex:m1 rdfs:label "Mara"@sv .',
    'ex:m1 rdfs:label "Mara_Lindqvist"@en-GB .',
    'ex:m1 skos:altLabel "Em" .',
    "ex:m1 rdf:type ex:ResearchFellow .",
    "ex:m1 rdf:type ex:Person .",
    'ex:m1 rdfs:comment "A\\u0020smith." .',
    "ex:m1 ex:birthPlace ex:New_York%20City .",
    'ex:m1 ex:age "41" .',
    "ex:m1 ex:k7 ex:acme .",
    'ex:k7 rdfs:label "works\\u0020for" .',
    'ex:acme skos:prefLabel "Acme" .',
    'ex:acme rdfs:label "Acme\\u0020Corporation" .',
)


def test_facts_use_labels_as_names(tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "a.nt", PEOPLE)
    assert not skipped
    assert list_facts(found) == [
        "Mara_Lindqvist —birth_place→ New York City | Mara_Lindqvist birth place New York City",
        "Mara_Lindqvist —age→ 41 | Mara_Lindqvist age 41",
        "Mara_Lindqvist —works for→ Acme | Mara_Lindqvist works for Acme",
    ]
    assert [bool(f.object_id) for c in found for f in c.facts] == [True, False, True]


def test_described_thing_becomes_a_document(tmp_path: Path) -> None:
    found, _ = import_content(tmp_path / "a.nt", PEOPLE)
    cards = [c for c in found if not c.facts]
    assert list_texts(cards) == [("Mara_Lindqvist", ["A smith."]), ("Acme", ["Acme"])]
    assert get_subjects(cards[0]) == {"Mara_Lindqvist"}
    [mara], [acme] = (c.entities for c in cards)
    assert (mara.type, mara.description, set(mara.aliases)) == ("research fellow", "A smith.", {"Mara", "Em"})
    assert acme.aliases == ("Acme Corporation",)


def test_labels_may_come_after_the_facts(tmp_path: Path) -> None:
    backwards = "".join(reversed(PEOPLE.splitlines(keepends=True)))
    found, _ = import_content(tmp_path / "a.nt", backwards)
    assert "Mara_Lindqvist —works for→ Acme | Mara_Lindqvist works for Acme" in list_facts(found)


def test_things_with_equal_labels_stay_distinct(tmp_path: Path) -> None:
    content = make_statements(
        'ex:Q90 rdfs:label "Paris" .',
        'ex:Q167646 rdfs:label "Paris" .',
        "ex:Q90 ex:in ex:France .",
        "ex:Q167646 ex:abducts ex:Helen .",
    )
    found, _ = import_content(tmp_path / "a.nt", content)
    assert [fact.split(" | ")[0] for fact in list_facts(found)] == [
        "Paris —in→ France",
        "Paris (Q167646) —abducts→ Helen",
    ]
    assert [e.aliases for c in found if not c.facts for e in c.entities] == [(), ("Paris",)]


def test_unstorable_characters_are_replaced(tmp_path: Path) -> None:
    content = make_statements('ex:a rdfs:label "A\\u0000" .', "ex:a ex:b ex:c%00 .", 'ex:a ex:b "\\u0000" .')
    found, _ = import_content(tmp_path / "a.nt", content)
    assert [fact.split(" | ")[0] for fact in list_facts(found)] == ["A\ufffd —b→ c\ufffd", "A\ufffd —b→ \ufffd"]


def test_blank_nodes_of_two_files_stay_distinct(tmp_path: Path) -> None:
    content = make_statements("_:b0 ex:knows _:b1 .")
    left, _ = import_content(tmp_path / "left.nt", content)
    right, _ = import_content(tmp_path / "right.nt", content)
    assert list_facts(left) == ["b0 of left —knows→ b1 of left | b0 of left knows b1 of left"]
    assert left[0].facts[0].id != right[0].facts[0].id


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "it is not N-Triples: Parser error between columns 1 and 9"),
        ("<http://a> <http://b> <http://c>", "it is not N-Triples"),
        ("<http://a> <b> <http://c> .", "it is not N-Triples"),
        ('<http://a> <http://b> "" .', "object must not be empty"),
        ('<http://a> <http://b> "\x80\xff" .', "it is not UTF-8"),
        ("<http://a> <http://b> <<( <http://a> <http://b> <http://c> )>> .", "its object is a statement"),
        (f"<http://a/{'a' * 1_001}> <http://b> <http://c> .", "its name has more than 1,000 characters"),
    ],
)
def test_broken_line_is_skipped_and_next_is_read(line: str, reason: str, tmp_path: Path) -> None:
    content = f"# a comment\n\n{line}\n".encode("latin-1") + make_statements("ex:a ex:b ex:c .").encode()
    found, skipped = import_content(tmp_path / "a.nt", content)
    assert list(skipped) == ["#line=3"]
    assert skipped["#line=3"].startswith(reason)
    assert list_facts(found) == ["a —b→ c | a b c"]
