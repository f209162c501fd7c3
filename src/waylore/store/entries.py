"""Entries of rows that documents share: their bytes sort best first, so an index returns the best of them in order.

An entry begins with an integer in big-endian order. Ties are broken by bits of identities, never by numbers, which
depend on the order of writing. `mentions` lead from an entity to passages, `steps` to the facts about it, `assertions`
from a fact to the passages that state it. This module knows no SQL.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]

MENTION_ENTRY = np.dtype([("order", ">u8"), ("passage", ">u4")])
STEP_ENTRY = np.dtype([("order", ">u8"), ("passage", ">u4"), ("predicate", ">u4"), ("fact", ">u2"), ("flags", ">u2")])
ASSERTION_ENTRY = np.dtype([("order", ">u8"), ("passage", ">u4"), ("fact", ">u2"), ("flags", ">u2")])
STRENGTH_STEPS = 800_000  # for each unit of weight x confidence, which is at most 10
STRENGTH_BITS = 23
MAX_RANK = 0xFFFF


def make_mention_entries(rank: Column, passage: Column, passage_id: Column) -> Column:
    """Return entries of mentions: first in the passage about the entity, then by count, then by the passage's id.

    `rank` is that of a pack, `passage_id` the first 64 bits of the id.
    """
    entries = np.zeros(len(rank), MENTION_ENTRY)
    entries["order"] = _shift(MAX_RANK - rank.astype(np.int64), 48) | _first_bits(passage_id, 48)
    entries["passage"] = passage
    return entries


def make_step_entries(
    strength: Column, is_same: Column, facts: Column, passage: Column, passage_id: Column, predicate: Column
) -> Column:
    """Return entries of facts: `same_as` first, then by strength, then by the ids of fact and passage.

    `facts` are those of one pack. `strength` is weight x confidence.
    """
    entries = np.zeros(len(facts), STEP_ENTRY)
    weakness = _shift(~is_same.astype(bool), 63) | _shift(_measure_weakness(strength), 40)
    entries["order"] = weakness | _shift(_first_bits(facts["key"], 24), 16) | _first_bits(passage_id, 16)
    entries["passage"], entries["predicate"], entries["flags"] = passage, predicate, facts["flags"]
    entries["fact"] = np.arange(len(facts))
    return entries


def make_assertion_entries(
    strength: Column, source: Column, facts: Column, passage: Column, passage_id: Column
) -> Column:
    """Return entries of assertions: by source, the most trusted first, then by strength and the passage's id."""
    entries = np.zeros(len(facts), ASSERTION_ENTRY)
    entries["order"] = _shift(source, 62) | _shift(_measure_weakness(strength), 39) | _first_bits(passage_id, 39)
    entries["passage"], entries["flags"] = passage, facts["flags"]
    entries["fact"] = np.arange(len(facts))
    return entries


def split_entries(entries: Column) -> list[bytes]:
    """Return the bytes of each entry."""
    blob, size = entries.tobytes(), entries.dtype.itemsize
    return [blob[at : at + size] for at in range(0, len(blob), size)]


def _measure_weakness(strength: Column) -> Column:
    """Return an integer of STRENGTH_BITS that is smaller for a greater strength."""
    steps: Column = np.rint(strength * STRENGTH_STEPS).astype(np.int64)
    return (1 << STRENGTH_BITS) - 1 - steps


def _first_bits(ids: Column, bits: int) -> Column:
    return ids.astype(np.uint64) >> np.uint64(64 - bits)


def _shift(values: Column, bits: int) -> Column:
    return values.astype(np.uint64) << np.uint64(bits)
