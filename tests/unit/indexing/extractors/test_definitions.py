"""What a document defines is one thing in it: a table of definitions, and what becomes of claims and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.assembly import assembled
from waylore.indexing.extractors.definitions import definitions, resolved
from waylore.indexing.extractors.rules import RuleExtractor, names_in, sentences
from waylore.protocols import Extraction
from waylore.text import normalise
from waylore.types.knowledge import SAME, Claim, Document, Passage

DOCUMENT = Document("d" * 32, source="conversation")


def defined(text: str) -> set[tuple[str, str]]:
    names = [name for sentence in sentences(text) for name in names_in(sentence)]
    return {(d.full, d.short) for d in definitions(text, names)}


def passage(text: str, number: int = 0) -> Passage:
    return Passage(f"{number:032x}", DOCUMENT.id, text, position=number)


@pytest.mark.parametrize(
    ("text", "full", "short"),
    [
        ("The World Health Organization (WHO) is in Geneva.", "World Health Organization", "WHO"),
        ("WHO (World Health Organization) is old.", "World Health Organization", "WHO"),
        ("We amplify by polymerase chain reaction (PCR).", "polymerase chain reaction", "PCR"),
        ("Deoxyribonucleic acid (DNA) carries genes.", "Deoxyribonucleic acid", "DNA"),
        ("The European Union (hereafter “EU”) has members.", "European Union", "EU"),
        ("The Lord of the Rings (LOTR; 1954) is long.", "Lord of the Rings", "LOTR"),
        ("Snoop Dogg, also known as Snoop Lion, sings.", "Snoop Dogg", "Snoop Lion"),
        ("Myanmar (formerly Burma) lies in Asia.", "Myanmar", "Burma"),
        ("Meta Platforms, formerly Facebook, is large.", "Meta Platforms", "Facebook"),
        ("Die Technische Universität München (TUM) lehrt.", "Technische Universität München", "TUM"),
        ("Московский государственный университет (МГУ) стар.", "Московский государственный университет", "МГУ"),
        ("l'Organisation des Nations unies (ONU) siège.", "Organisation des Nations unies", "ONU"),
        ("他在世界卫生组织（简称世卫组织）工作。", "世界卫生组织", "世卫组织"),
        ("「世界卫生组织」（WHO）在日内瓦。", "世界卫生组织", "WHO"),
        ("東京大学（東大）は大学である。", "東京大学", "東大"),
    ],
)  # fmt: skip
def test_a_text_defines_a_name(text: str, full: str, short: str) -> None:
    assert defined(text) == {(full, short)}


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
def test_brackets_alone_define_nothing(text: str) -> None:
    assert defined(text) == set()


def test_claims_get_the_full_name_and_the_short_one_is_an_alias() -> None:
    first = passage("The World Health Organization (WHO) was founded in 1948.")
    second = passage("WHO advises Peru.", 1)
    said = [
        Extraction(names={"World Health Organization": "agency", "WHO": ""}),
        Extraction((Claim("WHO", "advises", "Peru"),), {"WHO": "", "Peru": "country"}),
    ]
    one, two = resolved(DOCUMENT, [first, second], said)
    [same] = one.claims
    assert (same.subject, same.predicate, same.object) == ("World Health Organization", SAME, "WHO")
    assert (same.statement, same.source) == (first.text, "conversation")
    assert [(c.subject, c.object) for c in two.claims] == [("World Health Organization", "Peru")]
    assert one.names == {"World Health Organization": "agency"}
    assert two.aliases == {"World Health Organization": ("WHO",)}
    whole = assembled(DOCUMENT, [first, second], [one, two])
    aliases = {e.name: e.aliases for e in whole.entities}
    assert aliases == {"World Health Organization": ("WHO",), "WHO": (), "Peru": ()}


def test_an_alias_that_the_extractor_gave_counts_if_it_is_a_name_in_the_text() -> None:
    text = "Elizabeth II reigned. Lilibet liked horses, she said."
    aliases = {"Elizabeth II": ("Lilibet", "she", "Regina")}
    [one] = resolved(DOCUMENT, [passage(text)], [Extraction(names={"Elizabeth II": ""}, aliases=aliases)])
    assert [(c.subject, c.object) for c in one.claims] == [("Elizabeth II", "Lilibet")]
    assert set(one.aliases["Elizabeth II"]) == {"Lilibet", "she", "Regina"}


def test_a_short_form_that_is_defined_twice_means_nothing() -> None:
    text = "The Prime Minister (PM) spoke. Particulate matter (PM) rose."
    said = Extraction((Claim("PM", "warned of", "dust"),), {"PM": "", "Prime Minister": ""})
    [one] = resolved(DOCUMENT, [passage(text)], [said])
    assert one.claims == said.claims


def test_nothing_changes_where_nothing_is_defined() -> None:
    here = passage("Ada wrote to Charles Babbage in London.")
    said = RuleExtractor().extract(DOCUMENT, [here])
    assert resolved(DOCUMENT, [here], said) == list(said)


def test_who_is_a_name_and_who_is_not() -> None:
    assert "WHO" in names_in("It is said that WHO advises Peru.")
    assert names_in("Who advises us?") == {}


@given(
    st.lists(
        st.sampled_from(
            ["World Health Organization", "WHO", "(WHO)", "（", "）", "also known as", "Ada", "世界", "."]
        )
    )
)
def test_any_text_is_resolved_and_no_claim_joins_a_name_with_itself(words: list[str]) -> None:  # fmt: skip
    here = passage(" ".join(words))
    [one] = resolved(DOCUMENT, [here], RuleExtractor().extract(DOCUMENT, [here]))
    assert all(normalise(c.subject) != normalise(c.object) for c in one.claims)
    assembled(DOCUMENT, [here], [one])
