"""The rules find names and facts in prose, notes, source code and scripts without capitals."""

import pytest

from waylore.indexing.extractors.facts import MAX_FACTS
from waylore.indexing.extractors.rules import RuleExtractor, add_known_names, find_known_names, list_possible_names
from waylore.protocols import Extraction, Extractor
from waylore.types.knowledge import Document, NewFact, Passage


def extract(text: str, title: str = "", uri: str = "") -> Extraction:
    passage = Passage("p", "d", text, title, end=len(text))
    return RuleExtractor().extract(Document("d", title, uri), [passage])[0]


def to_triples(extraction: Extraction) -> list[tuple[str, str, str]]:
    return [(c.subject, c.predicate, c.object) for c in extraction.facts]


def test_rule_extractor_is_an_extractor() -> None:
    assert isinstance(RuleExtractor(), Extractor)
    assert RuleExtractor().extract(Document("d"), []) == []


def test_sentence_gives_facts_about_page_subject() -> None:
    extraction = extract("She was queen of Lotharingia. Her father was Boso the Elder.", "Teutberga (queen)")
    assert to_triples(extraction) == [
        ("Teutberga", "was queen of", "Lotharingia"),
        ("Teutberga", "", "Boso the Elder"),
    ]
    assert [c.statement for c in extraction.facts] == [
        "Teutberga was queen of Lotharingia.",
        "Teutberga's father was Boso the Elder.",
    ]


def test_statement_is_prefixed_with_missing_subject() -> None:
    assert extract("The editor is Jan Solovej.", "Physics").facts[0].statement == (
        "Physics: The editor is Jan Solovej."
    )


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("api", "A rapid change by Boto is planned."),
        ("config", "The configuration of SECRET_KEY is read once."),
        ("cli", "You can click from Flask to see it."),
    ],
)
def test_name_is_not_found_inside_words(title: str, text: str) -> None:
    """T28: a page called `api` says nothing by the word "rapid"."""
    assert not [fact for fact in extract(text, title).facts if fact.predicate]


def test_first_name_is_subject_without_title() -> None:
    extraction = extract("Kofi works at Waylore Labs in Lisbon.")
    assert to_triples(extraction) == [("Kofi", "works at", "Waylore Labs"), ("Kofi", "", "Lisbon")]


def test_last_name_stands_for_full_name() -> None:
    extraction = extract("Carl Rogers developed it. Rogers wrote more in Chicago.", "Therapy")
    assert list(extraction.names) == ["Therapy", "Carl Rogers", "Chicago"]


@pytest.mark.parametrize(
    "sentence",
    [
        "It is possible to use Debian.",
        "It is then often necessary to install Debian.",
        "It seems that Debian starts.",
        "It is said that Debian starts.",
    ],
)
def test_impersonal_sentence_says_nothing_of_the_page(sentence: str) -> None:
    [pair] = extract(sentence, "Packages").facts
    assert (pair.predicate, pair.statement) == ("", f"Packages: {sentence}")


def test_pronoun_stands_for_the_page() -> None:
    [fact] = extract("It is used by Debian.", "Packages").facts
    assert (fact.predicate, fact.statement) == ("is used by", "Packages is used by Debian.")


def test_number_of_facts_is_limited() -> None:
    text = " ".join(f"It met Name{n}." for n in range(3 * MAX_FACTS))
    assert len(extract(text, "Page").facts) == MAX_FACTS


def test_front_matter_gives_typed_facts() -> None:
    text = (
        "---\ntitle: S\nowner: Mara Lind\ntags: [auth, 'tokens']\nsince: 2024-03-01\n"
        "related:\n  - '[[Login]]'\n---\nNo more."
    )
    extraction = extract(text, "Sessions", "notes/sessions.md")
    assert to_triples(extraction) == [
        ("Sessions", "owner", "Mara Lind"),
        ("Sessions", "tags", "auth"),
        ("Sessions", "tags", "tokens"),
        ("Sessions", "since", "2024-03-01"),
        ("Sessions", "related", "Login"),
    ]
    assert [c.is_value for c in extraction.facts] == [False, False, False, True, False]
    assert "2024-03-01" not in extraction.names


def test_links_give_facts_and_images_do_not() -> None:
    text = "See [[Login#top|this page]], [deployments](x/deployments.md), [here](a.md) and ![a plan](plan.png)."
    extraction = extract(text, "Sessions")
    assert [c.object for c in extraction.facts if c.is_pair] == ["Login", "deployments"]
    assert extraction.facts[0].statement == "Sessions: See this page, deployments, here and a plan."


@pytest.mark.parametrize(
    ("uri", "code", "imports", "defines"),
    [
        (
            "a.py",
            "import re\nfrom os.path import join\nclass A:\n    async def b(self): ...\n",
            "re os.path",
            "A b",
        ),
        ("a.ts", "import x from './x'\nconst y = require('fs')\nexport class A {}\n", "./x fs", "A"),
        ("a.go", 'import (\n\t"fmt"\n)\nfunc (s *A) Run() {\n}\ntype A struct {\n', "fmt", "Run A"),
        ("a.rs", "use std::io;\npub(crate) fn go() {}\n", "std::io", "go"),
        ("A.java", "import java.util.List;\npublic final class A {\n", "java.util.List", "A"),
        ("a.c", "#include <stdio.h>\nstatic int *run(int x) {\n", "stdio.h", "run"),
        ("a.rb", "require 'json'\nclass A\n  def self.b\n", "json", "A b"),
    ],
)
def test_source_code_gives_imports_and_definitions(uri: str, code: str, imports: str, defines: str) -> None:
    facts = extract(code, "", f"src/{uri}").facts
    assert " ".join(c.object for c in facts if c.predicate == "imports") == imports
    assert sorted(c.object for c in facts if c.predicate == "defines") == sorted(defines.split())
    assert {c.subject for c in facts} == {uri}


def test_known_names_are_matched_longest_first() -> None:
    known = {"new york", "new york times", "times"}
    assert find_known_names("The New York Times, of New York", known) == ["new york times", "new york"]
    assert find_known_names("他住在绍兴市，写了狂人日记", {"绍兴", "狂人日记"}) == ["狂人日记", "绍兴"]


def test_small_words_are_not_known_names() -> None:
    assert not {"the", "of the", "in 1999"}.intersection(list_possible_names("of the year in 1999").values())


def test_missed_known_names_are_added_as_spelled() -> None:
    text = "It needs person-centered therapy. 绍兴很美。"
    passage = Passage("p", "d", text, "Care", end=len(text))
    extraction = Extraction((NewFact("Care", "is", "Help"),), {"Care": "", "Help": ""})
    more = add_known_names(extraction, Document("d", "Care"), passage, {"person centered therapy", "绍兴", "care"})
    assert to_triples(more) == [
        ("Care", "is", "Help"),
        ("Care", "needs", "person-centered therapy"),
        ("Care", "", "绍兴"),
    ]
    assert list(more.names) == ["Care", "Help", "person-centered therapy", "绍兴"]


def test_empty_passage_gives_no_facts() -> None:
    assert extract("") == Extraction()


@pytest.mark.parametrize("title", ["", " ", "(1999)", "…", "[x](y)", "他"])
@pytest.mark.parametrize("text", ["[x](y) [[ ]]", "---\na: b\nc:\n---\n", "他。[[他]]", "(1999) [[…]] A. A.", "''"])
def test_facts_connect_two_different_names(title: str, text: str) -> None:
    for fact in extract(text, title).facts:
        assert fact.subject.strip() != fact.object.strip() != ""


def test_known_names_are_recognised_in_any_script() -> None:
    extractor = RuleExtractor(known=["東京タワー", "grid operator"])
    document = Document("d", title="観光案内")
    texts = ["昨日は東京タワーに行きました。", "A report by the grid operator came in."]
    tower, report = extractor.extract(document, [Passage(t, "d", t, "観光案内") for t in texts])
    assert "東京タワー" in tower.names
    assert [(c.subject, c.object) for c in tower.facts] == [("観光案内", "東京タワー")]
    assert "grid operator" in report.names
    assert extractor.name not in (RuleExtractor().name, RuleExtractor(known=["東京"]).name)
