"""The bytes of entries sort as their meaning does: the best first, ties by identity."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from waylore.store.entries import (
    ASSERTION_ENTRY,
    MENTION_ENTRY,
    STEP_ENTRY,
    make_assertion_entries,
    make_mention_entries,
    make_step_entries,
    split_entries,
)
from waylore.store.packs import FACT, IS_OWN

IDS = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(0, 2**32 - 1)
STRENGTHS = st.integers(0, 8_000_000).map(lambda steps: steps / 800_000)


def sort_bytes(entries: list[bytes]) -> list[int]:
    return sorted(range(len(entries)), key=lambda place: entries[place])


@given(st.lists(st.tuples(st.booleans(), st.integers(1, IS_OWN - 1), IDS, NUMBERS), max_size=6))
def test_mentions_of_own_passages_come_first(rows: list[tuple[bool, int, int, int]]) -> None:
    rank = np.array([count | IS_OWN * is_own for is_own, count, _, _ in rows], dtype=np.uint16)
    ids = np.array([id_ for _, _, id_, _ in rows], dtype=np.uint64)
    passages = np.array([number for *_, number in rows], dtype=np.uint32)
    entries = split_entries(make_mention_entries(rank, passages, ids))
    meant = [(not is_own, -count, id_ >> 16, number) for is_own, count, id_, number in rows]
    assert [meant[place] for place in sort_bytes(entries)] == sorted(meant)
    assert all(len(entry) == MENTION_ENTRY.itemsize == 12 for entry in entries)


@given(st.lists(st.tuples(st.booleans(), STRENGTHS, IDS, IDS), max_size=6))
def test_steps_are_sorted_by_strength(rows: list[tuple[bool, float, int, int]]) -> None:
    facts = np.zeros(len(rows), FACT)
    facts["key"] = [key for _, _, key, _ in rows]
    is_same, strength = np.array([r[0] for r in rows], dtype=bool), np.array([r[1] for r in rows])
    ids = np.array([r[3] for r in rows], dtype=np.uint64)
    numbers = np.zeros(len(rows), np.uint32)
    entries = make_step_entries(strength, is_same, facts, numbers, ids, numbers)
    meant = [(not same, -round(value * 800_000), key >> 40, id_ >> 48) for same, value, key, id_ in rows]
    ordered = [meant[place] for place in sort_bytes([entry[:8] for entry in split_entries(entries)])]
    assert ordered == sorted(meant)
    assert entries["fact"].tolist() == list(range(len(rows)))
    assert STEP_ENTRY.itemsize == 20


@given(st.lists(st.tuples(st.integers(0, 3), STRENGTHS, IDS), max_size=6))
def test_assertions_are_sorted_by_source(rows: list[tuple[int, float, int]]) -> None:
    facts = np.zeros(len(rows), FACT)
    source, strength = np.array([r[0] for r in rows], dtype=np.int64), np.array([r[1] for r in rows])
    ids = np.array([r[2] for r in rows], dtype=np.uint64)
    entries = make_assertion_entries(strength, source, facts, np.zeros(len(rows), np.uint32), ids)
    meant = [(of, -round(value * 800_000), id_ >> 25) for of, value, id_ in rows]
    ordered = [meant[place] for place in sort_bytes([entry[:8] for entry in split_entries(entries)])]
    assert ordered == sorted(meant)
    assert ASSERTION_ENTRY.itemsize == 16
