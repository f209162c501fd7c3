"""A document's definitions join two names: a table of definitions, and their effect on facts and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.assembly import assemble_document
from waylore.indexing.extractors.definitions import apply_definitions, find_definitions
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Extraction
from waylore.text import normalise
from waylore.types.knowledge import SAME, Document, NewFact, Passage

DOCUMENT = Document("d" * 32, source="conversation")


def find_pairs(text: str) -> set[tuple[str, str]]:
    [extraction] = RuleExtractor().extract(DOCUMENT, [make_passage(text)])
    return {(d.full, d.short) for d in find_definitions(text, extraction.names)}


def make_passage(text: str, number: int = 0) -> Passage:
    return Passage(f"{number:032x}", DOCUMENT.id, text, position=number)


@pytest.mark.parametrize(
    ("text", "full", "short"),
    [
        ("The World Health Organization (WHO) is in Geneva.", "World Health Organization", "WHO"),
        ("Ask the [World Health Organization (WHO)](https://a.org).", "World Health Organization", "WHO"),
        ("WHO (World Health Organization) is old.", "World Health Organization", "WHO"),
        ("We amplify by polymerase chain reaction (PCR).", "polymerase chain reaction", "PCR"),
        ("Deoxyribonucleic acid (DNA) carries genes.", "Deoxyribonucleic acid", "DNA"),
        ("The European Union (hereafter “EU”) has members.", "European Union", "EU"),
        ("The Lord of the Rings (LOTR; 1954) is long.", "Lord of the Rings", "LOTR"),
        ("Snoop Dogg, also known as Snoop Lion, sings.", "Snoop Dogg", "Snoop Lion"),
        ("Myanmar (formerly Burma) lies in Asia.", "Myanmar", "Burma"),
        ("They left Meta Platforms, formerly Facebook.", "Meta Platforms", "Facebook"),
        ("Die Technische Universität München (TUM) lehrt.", "Technische Universität München", "TUM"),
        ("Московский государственный университет (МГУ) стар.", "Московский государственный университет", "МГУ"),
        ("l'Organisation des Nations unies (ONU) siège.", "Organisation des Nations unies", "ONU"),
        ("他在世界卫生组织（简称世卫组织）工作。", "世界卫生组织", "世卫组织"),
        ("「世界卫生组织」（WHO）在日内瓦。", "世界卫生组织", "WHO"),
        ("東京大学（東大）は大学である。", "東京大学", "東大"),
    ],
)  # fmt: skip
def test_definition_is_found(text: str, full: str, short: str) -> None:
    assert find_pairs(text) == {(full, short)}


@pytest.mark.parametrize(
    "text",
    [
        "Barack Obama (D) won.",
        "The house (built 1900) fell.",
        "In Paris (France) it rains.",
        "He was born in the United States (see below).",
        "Formerly he lived in Rome.",
        "The agency (CIA) and the bureau (FBI).",
        "() （） ((WHO))",
        "他在北京（2008年）工作。",
    ],
)
def test_brackets_alone_are_not_definitions(text: str) -> None:
    assert find_pairs(text) == set()


def test_facts_get_full_name_and_short_form_is_alias() -> None:
    first = make_passage("The World Health Organization (WHO) was founded in 1948.")
    second = make_passage("WHO advises Peru.", 1)
    extractions = [
        Extraction(names={"World Health Organization": "agency", "WHO": ""}),
        Extraction((NewFact("WHO", "advises", "Peru"),), {"WHO": "", "Peru": "country"}),
    ]
    one, two = apply_definitions(DOCUMENT, [first, second], extractions)
    [same] = one.facts
    assert (same.subject, same.predicate, same.object) == ("World Health Organization", SAME, "WHO")
    assert (same.statement, same.source) == (first.text, "conversation")
    assert [(c.subject, c.object) for c in two.facts] == [("World Health Organization", "Peru")]
    assert one.names == {"World Health Organization": "agency"}
    assert two.aliases == {"World Health Organization": ("WHO",)}
    whole = assemble_document(DOCUMENT, [first, second], [one, two])
    aliases = {e.name: e.aliases for e in whole.entities}
    assert aliases == {"World Health Organization": ("WHO",), "WHO": (), "Peru": ()}


def test_extracted_alias_counts_if_it_is_a_name_in_the_text() -> None:
    text = "Elizabeth II reigned. Lilibet liked horses, she said."
    aliases = {"Elizabeth II": ("Lilibet", "she", "Regina")}
    [one] = apply_definitions(DOCUMENT, [make_passage(text)], [Extraction(names={"Elizabeth II": ""}, aliases=aliases)])
    assert [(c.subject, c.object) for c in one.facts] == [("Elizabeth II", "Lilibet")]
    assert set(one.aliases["Elizabeth II"]) == {"Lilibet", "she", "Regina"}


def test_ambiguous_short_form_is_ignored() -> None:
    text = "The Prime Minister (PM) spoke. Particulate matter (PM) rose."
    extractions = Extraction((NewFact("PM", "warned of", "dust"),), {"PM": "", "Prime Minister": ""})
    [one] = apply_definitions(DOCUMENT, [make_passage(text)], [extractions])
    assert one.facts == extractions.facts


def test_extractions_without_definitions_stay_the_same() -> None:
    here = make_passage("Ada wrote to Charles Babbage in London.")
    extractions = RuleExtractor().extract(DOCUMENT, [here])
    assert apply_definitions(DOCUMENT, [here], extractions) == list(extractions)


def test_capitals_decide_whether_who_is_a_name() -> None:
    texts = ["It is said that WHO advises Peru.", "Who advises us?"]
    named, unnamed = [RuleExtractor().extract(DOCUMENT, [make_passage(text)])[0] for text in texts]
    assert "WHO" in named.names
    assert not unnamed.names


@given(
    st.lists(
        st.sampled_from(["World Health Organization", "WHO", "(WHO)", "（", "）", "also known as", "Ada", "世界", "."])
    )
)
def test_no_fact_connects_a_name_with_itself(words: list[str]) -> None:  # fmt: skip
    here = make_passage(" ".join(words))
    [one] = apply_definitions(DOCUMENT, [here], RuleExtractor().extract(DOCUMENT, [here]))
    assert all(normalise(c.subject) != normalise(c.object) for c in one.facts)
    assemble_document(DOCUMENT, [here], [one])
