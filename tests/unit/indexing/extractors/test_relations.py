"""Facts of structure are about the entry, the row or the page that the author means."""

from pathlib import Path

import pytest

from unit.indexing.readers.reading import read_document
from waylore.indexing.extractors.facts import build_facts
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.extractors.structure import extract_declared
from waylore.types.knowledge import Document, Passage

LIST = """owner: Mara Lindqvist
services:
  - name: granite
    team: Harbour
    uses: [opal, Redis]
"""
KEYED = """teams:
  harbour:
    lead: Mara Lindqvist
    contact: {channel: "#boats"}
  quay:
    lead: Kofi Mensah
"""
NOT_KEYED = """build:
  image: granite
deploy:
  region: north
"""
LINES = """# Minutes

## Monday

**Chair:** Mara Lindqvist
**Present:** Kofi Mensah, Ana Silva
"""
NESTED = """services:
  - name: granite
    team:
      leads:
        - {name: Mara Lindqvist, mail: mara@example.org}
    contact:
      channel: "#boats"
      deputy: {name: Kofi Mensah, mail: kofi@example.org}
"""
NUMBERED = """PEP: 440
Title: Versions
Author: Ann Baker <ann@example.org>, Ben Carter <ben@example.org>, Cleo Dorn-Hammarskjöld <cleo@example.org>,
 Dan Ekberg <dan@example.org>, Eva Falk <eva@example.org>, Finn Grey <finn@example.org>, Gustav Adolf Hall <g@x.io>,
 Hana Ito <hana@example.org>
Replaces: 386, 12
Version: 2
"""
CELLS = """# Services

| Service | Owners | Guides |
|---|---|---|
| Granite | * [Mara](https://x), Inc<br>* [Kofi](https://x), Inc | [Start](https://x), [Stop it](https://x) |
| Opal | | |
"""
PROSE = """# Minutes

Chair: Mara Lindqvist opened the meeting.
She closed it at nine.
"""
DIALOGUE = "# Talk\n\nMara: is it up?\nKofi: yes\nMara: good\n"


def list_facts(path: Path, content: str) -> set[tuple[str, str, str]]:
    reading = read_document(path, content)
    document = Document("d", reading.title, reading.uri)
    passage = Passage("p", "d", reading.text, reading.title, end=len(reading.text))
    [found] = extract_declared(reading, document, [passage])
    return {(fact.subject, fact.predicate, fact.object) for fact in found.facts}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "plan.yaml",
            LIST,
            {
                ("plan.yaml", "owner", "Mara Lindqvist"),
                ("granite", "team", "Harbour"),
                ("granite", "uses", "opal"),
                ("granite", "uses", "Redis"),
            },
        ),
        (
            "plan.yaml",
            KEYED,
            {
                ("harbour", "lead", "Mara Lindqvist"),
                ("harbour", "channel", "#boats"),
                ("quay", "lead", "Kofi Mensah"),
            },
        ),
        ("plan.yaml", NOT_KEYED, {("plan.yaml", "image", "granite"), ("plan.yaml", "region", "north")}),
        (
            "a.md",
            LINES,
            {
                ("Minutes", "Chair", "Mara Lindqvist"),
                ("Minutes", "Present", "Kofi Mensah"),
                ("Minutes", "Present", "Ana Silva"),
            },
        ),
        ("a.md", PROSE, set()),
        ("a.md", DIALOGUE, set()),
    ],
)
def test_fields_are_about_what_they_stand_in(
    name: str, content: str, expected: set[tuple[str, str, str]], tmp_path: Path
) -> None:
    found = list_facts(tmp_path / name, content)
    assert {(subject.rpartition(" / ")[2], predicate, object_) for subject, predicate, object_ in found} == expected


def test_entries_belong_to_the_entry_around_them(tmp_path: Path) -> None:
    assert list_facts(tmp_path / "plan.yaml", NESTED) == {
        ("granite", "leads", "Mara Lindqvist"),
        ("Mara Lindqvist", "mail", "mara@example.org"),
        ("granite", "channel", "#boats"),
        ("granite", "deputy", "Kofi Mensah"),
        ("Kofi Mensah", "mail", "kofi@example.org"),
    }


def test_numbers_refer_to_pages_of_the_series(tmp_path: Path) -> None:
    found = list_facts(tmp_path / "0440.rst", NUMBERED + "\nAbstract\n========\n\nThe text.\n")
    assert {(predicate, object_) for _, predicate, object_ in found if predicate in {"Replaces", "Version"}} == {
        ("Replaces", "PEP 386"),
        ("Replaces", "PEP 12"),
        ("Version", "2"),
    }
    assert len([1 for subject, predicate, _ in found if (subject, predicate) == ("PEP 440", "Author")]) == 8


def test_lines_and_links_of_a_cell_are_values(tmp_path: Path) -> None:
    assert list_facts(tmp_path / "a.md", CELLS) == {
        ("Granite", "Owners", "Mara"),
        ("Granite", "Owners", "Kofi"),
        ("Granite", "Guides", "Start"),
        ("Granite", "Guides", "Stop it"),
    }


def test_row_alone_in_its_passage_is_about_its_first_cell(tmp_path: Path) -> None:
    reading = read_document(
        tmp_path / "a.md", "# A\n\n| Service | Owner |\n|---|---|\n| Granite | Mara |\n| Opal | Kofi |\n"
    )
    document = Document("d", reading.title, reading.uri)
    start, end = reading.text.index("| Opal"), len(reading.text)
    [found] = extract_declared(reading, document, [Passage("p", "d", "", start=start, end=end)])
    assert [(fact.subject, fact.predicate, fact.object) for fact in found.facts] == [("Opal", "Owner", "Kofi")]


def test_page_is_also_called_by_its_whole_title(tmp_path: Path) -> None:
    reading = read_document(tmp_path / "dns.md", "# Domain names (DNS) and records\n\nText.\n")
    [found] = extract_declared(reading, Document("d", reading.title, "dns.md"), [Passage("p", "d", reading.text)])
    assert found.aliases == {"Domain names and records": ("Domain names (DNS) and records",)}


def test_title_of_a_web_page_is_without_its_site(tmp_path: Path) -> None:
    html = "<title>{}</title><h1>Opening hours</h1><p>We open at nine.</p>"
    assert read_document(tmp_path / "a.html", html.format("Opening hours | Clock Museum")).title == "Opening hours"
    assert read_document(tmp_path / "b.html", html.format("Clock Museum")).title == "Clock Museum"


def test_words_before_a_link_begin_after_a_comma(tmp_path: Path) -> None:
    text = "# Login\n\nLogin checks passwords, and asks [[Sessions]] before it lets anyone in.\n"
    reading = read_document(tmp_path / "login.md", text)
    passage = Passage("p", "d", reading.text, reading.title, end=len(reading.text))
    [found] = RuleExtractor().extract_reading(reading, Document("d", reading.title, "login.md"), [passage])
    assert [(fact.subject, fact.predicate, fact.object) for fact in found.facts] == [("Login", "asks", "Sessions")]


MUSEUM_IS_RUN = ("Museum", "is run by", "Horology Foundation")


@pytest.mark.parametrize(
    ("sentence", "names", "expected"),
    [
        (
            "The guide was recorded by Radio Jura.",
            ["Radio Jura"],
            {("guide", "was recorded by", "Radio Jura")},
        ),
        ("The museum stands in Rotor Works.", ["Rotor Works"], set()),
        ("The museum is run by the Horology Foundation.", ["Horology Foundation"], {MUSEUM_IS_RUN}),
        ("The study is run by the Horology Foundation.", ["Horology Foundation"], {MUSEUM_IS_RUN}),
        (
            "Raw events go to Opal and Beryl.",
            ["Opal", "Beryl"],
            {("Raw events", "go to", n) for n in ("Opal", "Beryl")},
        ),
        (
            "Opal, the shop of Beryl, is run by Quartz.",
            ["Opal", "Beryl", "Quartz"],
            {("Opal", "shop of", "Beryl"), ("Opal", "is run by", "Quartz")},
        ),
        ("Opal is closed, the roof belongs to Beryl.", ["Opal", "Beryl"], set()),
        ("Tours are given by Salome Wyss.", ["Salome Wyss"], set()),  # a single noun without an article
        ("Check whether workers are raising errors to Opal.", ["Opal"], set()),
        ("The current advice is to use Opal.", ["Opal"], set()),
        (
            "Opal is made by Quartz Ltd and sold by Beryl Inc.",
            ["Opal", "Quartz Ltd", "Beryl Inc"],
            {("Opal", "is made by", "Quartz Ltd"), ("Opal", "sold by", "Beryl Inc")},
        ),
        ("If the guide was recorded by Radio Jura, ask.", ["Radio Jura"], set()),
        ("Opal returns the URL of Beryl.", ["Opal", "URL", "Beryl"], {("Opal", "returns the URL of", "Beryl")}),
        ("Opal returns the URL.", ["Opal", "URL"], set()),
        ("We like Opal, which is sold by Beryl.", ["Opal", "Beryl"], {("Opal", "is sold by", "Beryl")}),
        ("Ask Opal (v1), which talks to Beryl.", ["Opal", "Beryl"], {("Opal", "talks to", "Beryl")}),
        (
            "Opal (a shop) sells Beryl (Quartz) and Jade.",
            ["Opal", "Beryl", "Quartz", "Jade"],
            {("Opal", "sells", "Beryl"), ("Opal", "sells", "Jade")},
        ),
        ("A shop (Opal) is run by Beryl.", ["Opal", "Beryl"], {("Opal", "is run by", "Beryl")}),
        ("Opal, which Quartz sells to Beryl.", ["Opal", "Quartz", "Beryl"], {("Quartz", "sells to", "Beryl")}),
    ],
)
def test_sentences_say_relations(sentence: str, names: list[str], expected: set[tuple[str, str, str]]) -> None:
    found = build_facts("Museum", sentence, dict.fromkeys(names, ""))
    assert {(f.subject, f.predicate, f.object) for f in found if not f.is_pair} == expected


def test_keys_of_presentation_are_no_facts(tmp_path: Path) -> None:
    head = "---\ntitle: Opal\nlayout: wide\nowner: Mara Lindqvist\n---\n\nText.\n"
    assert list_facts(tmp_path / "a.md", head) == {("Opal", "owner", "Mara Lindqvist")}


def test_texts_and_measures_in_rows_are_values(tmp_path: Path) -> None:
    page = (
        "# 2.1. Boats\n\n| boat | use | about |\n|---|---|---|\n"
        "| Curlew | V:47, I:398 | small boat with sails for Norway |\n| Dunlin | V:2 | built by Harbour Works |\n"
    )
    reading = read_document(tmp_path / "a.md", page)
    document = Document("d", reading.title, reading.uri)
    passage = Passage("p", "d", reading.text, reading.title, end=len(reading.text))
    [found] = extract_declared(reading, document, [passage])
    assert {(fact.object, fact.is_value) for fact in found.facts} == {
        ("V:47, I:398", True),
        ("small boat with sails for Norway", True),
        ("V:2", True),
        ("built by Harbour Works", False),
    }


@pytest.mark.parametrize("between", ["et", "ou", "» et «", "de la", "und", "y"])
def test_conjunctions_and_prepositions_are_no_predicates(between: str) -> None:
    found = build_facts("Port", f"Le Courlis {between} Bécasseau.", {"Courlis": "", "Bécasseau": ""})
    assert not [fact for fact in found if not fact.is_pair]


def test_numbered_link_names_the_section(tmp_path: Path) -> None:
    page = "<h1>Chapter 6. Ports</h1><p>Text.</p><ul><li><a href=c.html>6.7. Going from One Port to the Next</a></ul>"
    reading = read_document(tmp_path / "a.html", page)
    document = Document("d", reading.title, reading.uri)
    passage = Passage("p", "d", reading.text, reading.title, end=len(reading.text))
    [found] = RuleExtractor().extract_reading(reading, document, [passage])
    assert set(found.names) == {"Ports", "Going from One Port to the Next"}
