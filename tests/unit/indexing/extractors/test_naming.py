"""Names are found by how a page and ordinary text write them, by shape and by marks; ordinary words are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.extractors.markup import read_sentences
from waylore.indexing.extractors.naming import find_listed_names, find_names, find_names_in_code, is_date
from waylore.indexing.extractors.spelling import count_spellings
from waylore.words import load_words

PROSE = "This is the text of a page in which we write some words. "


def names_of(text: str, page: str = "") -> list[str]:
    """Return the names in a text, as a page with more sentences writes them."""
    sentences = read_sentences(text)
    spelling = count_spellings(
        [PROSE, page, *(s.blank_code() for s in sentences if s.kind != "heading")],
        [s.blank_code() for s in sentences if s.kind == "heading"],
        [s.text[m.start : m.end] for s in sentences for m in s.marks if m.kind == "code"],
    )
    return list(dict.fromkeys(name for sentence in sentences for name in find_names(sentence, spelling)))


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("The University of Copenhagen is in Denmark.", ["University of Copenhagen", "Denmark"]),
        ("However, Ludwig van Beethoven's mother moved.", ["Ludwig van Beethoven"]),
        ("Then Dr. Kim met Mrs. Lee, Bob and 3 others.", ["Dr. Kim", "Lee", "Bob"]),
        ("It is called ``Hello Love ''.", ["Hello Love"]),
        ("Kofi works with J. R. Smith on Windows 95.", ["Kofi", "J. R. Smith", "Windows 95"]),
        ("We met Barcelona's Messi at 18F.", ["Barcelona", "Messi", "18F"]),
        ("Василий III жил в Москве.", ["Василий III", "Москве"]),
        ("他写了《狂人日记》。", ["狂人日记"]),
        ("nothing here 42 times", []),
    ],
)
def test_names_are_found_by_spelling(sentence: str, names: list[str]) -> None:
    assert names_of(sentence) == names


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("It depends on Quarry.", ["Quarry"]),
        (
            "This app is owned by Storage and uses Search, Vault and Queue for reports.",
            ["Storage", "Search", "Vault", "Queue"],
        ),
        ("It is owned by the Logistics team.", ["Logistics team"]),
        ("The Payments service calls it.", ["Payments service"]),
        ("It depends on the quarry and needs Web components.", []),
        ("Use the Settings page.", []),
        ("The team is small.", []),
    ],
)
def test_ordinary_words_are_names_after_a_relation_and_before_a_kind(sentence: str, names: list[str]) -> None:
    assert names_of(sentence) == names


@pytest.mark.parametrize(
    "sentence",
    [
        "Check the pods first. Note that it fails. Click the button. Running it takes long.",
        "You MUST NOT do that, and clients SHOULD wait.",
        "I'll go, you don't. Don't wait; let's go.",
        "On Monday 3 March 2025 and in May we met.",
        "Carefully checking is good. Installing helps.",
        "# Using The Command Line",
        "THIS SOFTWARE IS PROVIDED AS IT IS WITHOUT WARRANTY OF ANY KIND.",
        "{% raw %} {{ x }} `{{` `%}` `a b c` `~.x`",
        "<img src='./images/Logo.png'> see https://example.org/Some/Path?Query=Text",
    ],
)
def test_ordinary_words_and_markup_are_not_names(sentence: str) -> None:
    assert names_of(sentence) == []


def test_page_decides_whether_a_word_is_a_name() -> None:
    assert names_of("We deploy to Fly and like it.") == []
    assert names_of(
        "Fly is fast.", "Ask Fly. We use Fly for this. Apps on Fly run, and Fly bills us, as Fly does."
    ) == ["Fly"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Set `MAX_SIZE`, call parseQuery() or `store_token`.", ["MAX_SIZE", "parseQuery", "store_token"]),
        ("Ask @mara or #help, mail a.b@c.org, see data.gov.uk.", ["@mara", "#help", "a.b@c.org", "data.gov.uk"]),
        ("As PEP 508 and RFC-143 say, v1.35 fixes ABC-12.", ["PEP 508", "RFC-143", "v1.35", "ABC-12"]),
        ("Use c.JupyterHub.ip and `read:users:activity`.", ["c.JupyterHub.ip", "read:users:activity"]),
        ("We run `pip` here.", ["pip"]),
        ("We run `check` here, you check it, and they check it.", []),
        ("See [Harbour Opening Hours (HOHs)](x/h.md).", ["Harbour Opening Hours"]),
        ("See [bot commands](x/bot-commands.md) or [the guide](x/y.md).", ["bot commands"]),
        ("- **Cost recovery** - what we charge", ["Cost recovery"]),
    ],
)
def test_shapes_and_marks_are_names(text: str, names: list[str]) -> None:
    assert names_of(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("It is told in [Section 9.2, “Mooring Boats at Night”](b.html).", ["Mooring Boats at Night"]),
        ("Read Section 4.2 and Chapter 7 first.", []),
        ("It has [V:47, I:398](https://example.org/counts).", []),
    ],
)
def test_reference_to_section_names_its_title(text: str, names: list[str]) -> None:
    assert names_of(text) == names


def test_identifiers_have_type_code() -> None:
    [sentence] = read_sentences("It calls `store_token`, parseQuery() or MAX_SIZE.")
    found = find_names(sentence, count_spellings([PROSE]))
    assert found == {"store_token": "code", "parseQuery": "code", "MAX_SIZE": "code"}


def test_three_short_items_are_names() -> None:
    text = (
        "- boskos\n- kubetest2\n- agave syrup\n\nText.\n\n- only\n- two\n\nText.\n\n- Road maps\n- Plans\n- Results\n"
    )
    sentences = read_sentences(text)
    listed = find_listed_names(sentences, count_spellings([PROSE]))
    assert [sentences[number].text for number in listed] == ["boskos", "kubetest2", "agave syrup"]


def test_code_names_variables_and_quoted_slugs() -> None:
    assert list(find_names_in_code("DATABASE_URL=1 run('list-and-cull') x")) == ["DATABASE_URL", "list-and-cull"]


def test_dates_are_not_names() -> None:
    assert all(map(is_date, ["May", "3 March 2025", "2025-03-01", "Mondays"]))
    assert not any(map(is_date, ["August Strindberg", "PEP 8", "Windows 95"]))


@given(st.text(max_size=200))
def test_names_are_parts_of_the_text(text: str) -> None:
    for sentence in read_sentences(text):
        for name in find_names(sentence, count_spellings([sentence.text])):
            assert name in " ".join(sentence.text.split())


def test_nameness_is_a_share() -> None:
    spelling = count_spellings(
        ["Docker is what we use.", "Then Docker runs, and the docker group helps."], ["Use Docker"]
    )
    assert load_words("en").capitals.get("docker") is None
    assert spelling.compute_nameness("Docker") == 1.2 / (1.2 + 1 + 0.25)  # the first begins a sentence
