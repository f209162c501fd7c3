"""Rules find names and claims in prose, notes, source code and scripts without capitals."""

import pytest

from waylore.indexing.extractors.rules import (
    MOST_CLAIMS,
    RuleExtractor,
    known_names,
    names_in,
    possible_names,
    sentences,
    with_known,
)
from waylore.protocols import Extraction, Extractor
from waylore.types.knowledge import Claim, Document, Passage


def extracted(text: str, title: str = "", uri: str = "") -> Extraction:
    passage = Passage("p", "d", text, title, end=len(text))
    return RuleExtractor().extract(Document("d", title, uri), [passage])[0]


def told(said: Extraction) -> list[tuple[str, str, str]]:
    return [(c.subject, c.predicate, c.object) for c in said.claims]


def test_it_is_an_extractor() -> None:
    assert isinstance(RuleExtractor(), Extractor)
    assert RuleExtractor().extract(Document("d"), []) == []


def test_sentences_end_neither_at_initials_nor_at_titles_of_people() -> None:
    text = "Mr. J. R. Smith left. He saw the U.S. Navy!  (It was late.) 他来了。他走了。"
    found = ["Mr. J. R. Smith left.", "He saw the U.S. Navy!", "(It was late.)", "他来了。", "他走了。"]
    assert sentences(text) == found


def test_items_and_headings_are_sentences_of_their_own() -> None:
    assert sentences("# Plan\n\n- first\n- second line\n  goes on\n") == [
        "Plan",
        "first",
        "second line goes on",
    ]


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("The University of Copenhagen is in Denmark.", ["University of Copenhagen", "Denmark"]),
        ("However, Ludwig van Beethoven's mother moved.", ["Ludwig van Beethoven"]),
        ("Then Dr. Kim met Mrs. Lee, Bob and 3 others.", ["Dr. Kim", "Lee", "Bob"]),
        ("It is called ``Hello Love ''.", ["Hello Love"]),
        ("Василий III жил в Москве.", ["Василий III", "Москве"]),
        ("他写了《狂人日记》。", ["狂人日记"]),
        ("nothing here 42 times", []),
    ],
)
def test_names_by_spelling(sentence: str, names: list[str]) -> None:
    assert list(names_in(sentence)) == names


def test_identifiers_are_code() -> None:
    found = names_in("It calls `store_token`, parseQuery() or MAX_SIZE.")
    assert found == {"store_token": "code", "parseQuery": "code", "MAX_SIZE": "code"}


def test_a_sentence_claims_what_it_names_of_what_the_page_is_about() -> None:
    said = extracted("She was queen of Lotharingia. Her father was Boso the Elder.", "Teutberga (queen)")
    assert told(said) == [
        ("Teutberga", "was queen of", "Lotharingia"),
        ("Teutberga", "mentions", "Boso the Elder"),
    ]
    assert [c.statement for c in said.claims] == [
        "Teutberga was queen of Lotharingia.",
        "Teutberga's father was Boso the Elder.",
    ]


def test_a_sentence_that_does_not_name_its_page_is_prefixed_with_it() -> None:
    assert extracted("The editor is Jan Solovej.", "Physics").claims[0].statement == (
        "Physics: The editor is Jan Solovej."
    )


def test_without_a_title_a_sentence_is_about_the_first_that_it_names() -> None:
    said = extracted("Kofi works at Waylore Labs in Lisbon.")
    assert told(said) == [("Kofi", "works at", "Waylore Labs"), ("Kofi", "mentions", "Lisbon")]


def test_a_last_name_is_whose_it_is() -> None:
    said = extracted("Carl Rogers developed it. Rogers wrote more in Chicago.", "Therapy")
    assert list(said.names) == ["Therapy", "Carl Rogers", "Chicago"]


def test_claims_are_capped() -> None:
    text = " ".join(f"It met Name{n}." for n in range(3 * MOST_CLAIMS))
    assert len(extracted(text, "Page").claims) == MOST_CLAIMS


def test_front_matter_is_typed() -> None:
    text = (
        "---\ntitle: S\nowner: Mara Lind\ntags: [auth, 'tokens']\nsince: 2024-03-01\n"
        "related:\n  - '[[Login]]'\n---\nNo more."
    )
    said = extracted(text, "Sessions", "notes/sessions.md")
    assert told(said) == [
        ("Sessions", "owner", "Mara Lind"),
        ("Sessions", "tags", "auth"),
        ("Sessions", "tags", "tokens"),
        ("Sessions", "since", "2024-03-01"),
        ("Sessions", "related", "Login"),
    ]
    assert [c.is_value for c in said.claims] == [False, False, False, True, False]
    assert "2024-03-01" not in said.names


def test_links_are_typed_and_pictures_are_not_links() -> None:
    text = "See [[Login#top|this page]], [the guide](deploy.md), [here](a/setup.md) and ![a plan](plan.png)."
    said = extracted(text, "Sessions")
    assert [c.object for c in said.claims if c.predicate == "links_to"] == ["Login", "the guide", "setup"]
    assert said.claims[0].statement == "Sessions: See this page, the guide, here and a plan."


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
def test_source_code_imports_and_defines(uri: str, code: str, imports: str, defines: str) -> None:
    claims = extracted(code, "", f"src/{uri}").claims
    assert " ".join(c.object for c in claims if c.predicate == "imports") == imports
    assert sorted(c.object for c in claims if c.predicate == "defines") == sorted(defines.split())
    assert {c.subject for c in claims} == {uri}


def test_known_names_are_matched_longest_first() -> None:
    known = {"new york", "new york times", "times"}
    assert known_names("The New York Times, of New York", known) == ["new york times", "new york"]
    assert known_names("他住在绍兴市，写了狂人日记", {"绍兴", "狂人日记"}) == ["狂人日记", "绍兴"]


def test_small_words_are_no_known_names() -> None:
    assert not {"the", "of the", "in 1999"}.intersection(possible_names("of the year in 1999").values())


def test_known_names_that_were_missed_are_claimed_as_they_are_written() -> None:
    text = "It needs person-centered therapy. 绍兴很美。"
    passage = Passage("p", "d", text, "Care", end=len(text))
    said = Extraction((Claim("Care", "is", "Help"),), {"Care": "", "Help": ""})
    more = with_known(said, Document("d", "Care"), passage, {"person centered therapy", "绍兴", "care"})
    assert told(more) == [
        ("Care", "is", "Help"),
        ("Care", "needs", "person-centered therapy"),
        ("Care", "mentions", "绍兴"),
    ]
    assert list(more.names) == ["Care", "Help", "person-centered therapy", "绍兴"]


def test_an_empty_passage_says_nothing() -> None:
    assert extracted("") == Extraction()


@pytest.mark.parametrize("title", ["", " ", "(1999)", "…", "[x](y)", "他"])
@pytest.mark.parametrize(
    "text", ["[x](y) [[ ]]", "---\na: b\nc:\n---\n", "他。[[他]]", "(1999) [[…]] A. A.", "''"]
)
def test_no_claim_joins_a_thing_to_itself_or_to_nothing(title: str, text: str) -> None:
    for claim in extracted(text, title).claims:
        assert claim.subject.strip() != claim.object.strip() != ""


def test_known_names_are_recognised_in_any_script() -> None:
    extractor = RuleExtractor(known=["東京タワー", "grid operator"])
    document = Document("d", title="観光案内")
    texts = ["昨日は東京タワーに行きました。", "A report by the grid operator came in."]
    tower, report = extractor.extract(document, [Passage(t, "d", t, "観光案内") for t in texts])
    assert "東京タワー" in tower.names
    assert [(c.subject, c.object) for c in tower.claims] == [("観光案内", "東京タワー")]
    assert "grid operator" in report.names
    assert extractor.name not in (RuleExtractor().name, RuleExtractor(known=["東京"]).name)
