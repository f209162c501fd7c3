"""A copy of a sample says what the sample says, in words of its own: whatever reads words reads both alike."""

from dataclasses import replace

from benchmarks.corpus import Corpus
from benchmarks.scale.sample import Sample, thin_page
from hypothesis import given
from hypothesis import strategies as st

from waylore.names import keys
from waylore.text import normalise, terms

COPIES = 250
SAMPLE = Sample(list(Corpus().make_documents(0, 40)), "synthetic", COPIES)
WORDS = sorted(SAMPLE.grains)
TEXTS = st.lists(st.sampled_from(WORDS) | st.sampled_from(["the", "Entity", "of", "-"]), max_size=8).map(" ".join)
COPY = st.integers(0, COPIES - 1)


@given(TEXTS, COPY)
def test_words_are_read_alike_in_every_copy(text: str, copy: int) -> None:
    marked = SAMPLE.mark(text)
    said = SAMPLE.rename_copy(marked, copy)
    assert terms(said) == [SAMPLE.rename_copy(term, copy) for term in terms(marked)]
    assert normalise(said) == SAMPLE.rename_copy(normalise(marked), copy)
    assert keys(said) == tuple(SAMPLE.rename_copy(key, copy) for key in keys(marked))


@given(TEXTS, COPY, COPY)
def test_copies_of_one_grain_share_a_text_and_others_do_not(text: str, one: int, other: int) -> None:
    marked = SAMPLE.mark(text)
    grain = SAMPLE.get_grain(marked)
    is_same = SAMPLE.rename_copy(marked, one) == SAMPLE.rename_copy(marked, other)
    assert is_same == (one // grain == other // grain)


def test_a_single_copy_is_the_sample_itself() -> None:
    alone = replace(SAMPLE, copies=1)
    assert [page.digest for page in alone.pages] == [page.digest for page in alone.contributions]


def test_a_thinned_page_is_whole() -> None:
    page = SAMPLE.contributions[-1]
    few = thin_page(page, 3)
    assert len(few.facts) == 3 < len(page.facts)
    assert {e.id for e in few.entities} == {m.entity_id for m in few.mentions}
    assert page.entities[0] in few.entities  # what the page is about
