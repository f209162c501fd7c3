"""A copy of a sample says what the sample says, in words of its own: whatever reads words reads both alike."""

from dataclasses import replace

import numpy as np
from benchmarks.corpus import Corpus
from benchmarks.scale.sample import Sample, drop_graph, repeat_page, thin_page
from hypothesis import given
from hypothesis import strategies as st

from waylore.names import keys
from waylore.store.vectors import to_units
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


def test_a_page_without_graph_has_its_passage() -> None:
    page = drop_graph(SAMPLE.contributions[-1])
    assert (page.entities, page.mentions, page.facts) == ((), (), ())
    assert page.passages == SAMPLE.contributions[-1].passages


def test_vectors_of_a_copy_are_the_same_in_every_run_and_those_of_repeats_are_near() -> None:
    sample = replace(SAMPLE, repeats=4)
    vectors = to_units(sample.make_codes(17))
    assert np.array_equal(sample.make_codes(17), replace(sample, copies=20).make_codes(17))
    assert not np.array_equal(sample.make_codes(17), sample.make_codes(18))
    cosines = vectors @ vectors.T
    assert np.diag(cosines[:4, -4:]).min() > 0.95
    others = cosines[:-4, :-4] - 2 * np.eye(len(cosines) - 4)
    assert np.median(others) < 0.8


def test_a_near_duplicate_has_most_words_of_a_page_and_another_address() -> None:
    page, address = SAMPLE.contributions[3], SAMPLE.contributions[-1]
    near = repeat_page(page, address)
    [passage], [own] = page.passages, near.passages
    assert near.document.uri == address.document.uri
    assert {near.document.id} == {own.document_id, address.document.id}
    words = passage.text.split()
    assert len(own.text.split()) == len(words) - len(words) // 10
    assert {m.passage_id for m in near.mentions} | {f.passage_id for f in near.facts} == {own.id}


def test_another_cell_has_other_passages_and_entities_of_the_same_name_are_the_same() -> None:
    here, there = SAMPLE, replace(SAMPLE, place=1)
    ids = [
        {d.document.id for copy in sample.numbers[::50] for d in sample.make_documents(copy)}
        for sample in (here, there)
    ]
    assert not ids[0] & ids[1]
    assert set(here.collections).isdisjoint(there.collections)
    named = [
        {e.name: e.id for d in sample.make_documents(sample.numbers[0]) for e in d.entities} for sample in (here, there)
    ]
    assert all(named[0][name] == named[1][name] for name in named[0].keys() & named[1].keys())
    assert named[0].keys() != named[1].keys()
