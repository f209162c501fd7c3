"""Encode the knowledge of one passage as a pack, one blob of columns, and decode many packs at once.

A pack has the mentions of a passage, its facts, its pairs (facts without a predicate), the statements that assert them,
and the ids of all these entities. A statement is a span of the passage's text, which may have a prefix, or the three
words of its fact. Words that are not in the text (names as the document spells them, predicates, plain values,
prefixes, other statements) are in the pack, so deleting it deletes them. The vectors of statements are stored beside
the pack, because only a search for facts reads them. A pack has no row numbers, so it is the same in
every store. Decoding gives NumPy columns over all packs and makes no object for an item. This module knows no SQL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from waylore.errors import SchemaOutdated
from waylore.types.knowledge import PAIR_CONFIDENCE, PAIR_WEIGHT, SOURCES, STATUSES

Column = npt.NDArray[Any]

VERSION = 2  # of packs with statements of their subjects; others have version 1, which earlier releases read
SECTIONS = ("entities", "statements", "mentions", "facts", "pairs", "trust")
HEAD = np.dtype([("version", "<u2"), *((name, "<u4") for name in (*SECTIONS, "words"))])  # the words come last
ID = np.dtype("V16")
# A claim is not in the passage's text: its start is its place among the words. A prefix is a place too, counted from 1.
STATEMENT = np.dtype([("start", "<u4"), ("end", "<u4"), ("prefix", "<u2"), ("flags", "u1")])
MENTION = np.dtype([("entity", "<u4"), ("rank", "<u4")])
# Entities of mentions and facts are places among the entities of the pack, counted from 1; the object of a plain value
# is 0. The other columns of a fact are places too: of the statement, of the trust, and of three words.
FACT = np.dtype(
    [
        *(("id", ID), ("subject", "<u4"), ("object", "<u4"), ("statement", "<u4"), ("trust", "<u4")),
        *(("subject_word", "<u4"), ("predicate_word", "<u4"), ("object_word", "<u4")),
        *(("source", "u1"), ("status", "u1")),
    ]
)
PAIR_COLUMNS = ("subject", "object", "statement", "subject_word", "object_word")
PAIR = np.dtype([(name, "<u4") for name in PAIR_COLUMNS])  # as in FACT, without the columns that are equal for all
TRUST = np.dtype([("weight", "<f8"), ("confidence", "<f8"), ("valid_from", "<i8"), ("valid_to", "<i8")])

IS_CLAIM, HAS_VECTOR, IS_JOINED = 1, 2, 4  # in the flags of a statement; a joined one is the words of its fact
SAID_BY_SUBJECT = 1 << 7  # in the source of a fact; the other bits are the place in SOURCES
IS_OWN = 1 << 31  # in the rank of a mention: the passage is about the entity; the other bits count its occurrences
ALWAYS = np.iinfo(np.int64)  # its limits mean no valid_from and no valid_to
TRUST_OF_PAIRS = np.array([(PAIR_WEIGHT, PAIR_CONFIDENCE, ALWAYS.min, ALWAYS.max)], TRUST)
SOURCE_OF_PAIRS, STATUS_OF_PAIRS = SOURCES.index("file"), STATUSES.index("confirmed")


@dataclass(frozen=True, slots=True)
class Pack:
    """The knowledge of one passage. Columns of a section have one row for each of its items."""

    entities: Column
    statements: Column
    mentions: Column
    facts: Column
    pairs: Column
    trust: Column
    words: tuple[str, ...]


class Packs:
    """Several packs as columns, concatenated in the given order. A column is decoded when it is first read.

    Columns of facts have the facts with a predicate first, then the pairs. `codes` has the vectors of the statements of
    each pack, in eight bits per dimension.
    """

    def __init__(self, blobs: Sequence[bytes], codes: Sequence[bytes] = ()) -> None:
        self._blobs, self._codes = blobs, codes
        self._heads = np.frombuffer(b"".join([blob[: HEAD.itemsize] for blob in blobs]), HEAD)
        if (self._heads["version"] > VERSION).any():
            raise SchemaOutdated("a passage was written by a later version of Waylore: install that version")
        self._words: dict[int, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._blobs)

    @cached_property
    def vectors(self) -> Column:
        """The vectors of statements, as the rows of a matrix of int8."""
        rows = int(((self.statements["flags"] & HAS_VECTOR) > 0).sum())
        return np.frombuffer(b"".join(self._codes), np.int8).reshape(rows, -1 if rows else 0)

    @cached_property
    def entities(self) -> Column:
        """The ids of entities, of type ID. The first one is blank, because places count from 1."""
        return np.concatenate([np.zeros(1, ID), self._join("entities", ID)])

    @cached_property
    def entity_of(self) -> Column:
        """The place of the entity of each mention."""
        places: Column = self.mentions["entity"] + self._find_firsts("entities")[self.mention_of]
        return places

    @cached_property
    def subject_of(self) -> Column:
        """The place of the subject of each fact."""
        places: Column = self.facts["subject"] + self._find_firsts("entities")[self.fact_of]
        return places

    @cached_property
    def object_of(self) -> Column:
        """The place of the object of each fact, 0 for a plain value."""
        places: Column = self.facts["object"] + self._find_firsts("entities")[self.fact_of]
        return np.where(self.facts["object"] > 0, places, 0)

    @cached_property
    def statements(self) -> Column:
        """The statements, of type STATEMENT."""
        return self._join("statements", STATEMENT)

    @cached_property
    def mentions(self) -> Column:
        """The mentions, of type MENTION."""
        return self._join("mentions", MENTION)

    @cached_property
    def mention_of(self) -> Column:
        """The place among the packs of each mention."""
        return np.repeat(np.arange(len(self)), self._heads["mentions"])

    @cached_property
    def facts(self) -> Column:
        """The facts, of type FACT. A pair has no id here and no predicate."""
        typed, pairs = self._join("facts", FACT), self.pairs
        if not len(pairs):
            return typed
        joined = np.zeros(len(typed) + len(pairs), FACT)
        joined[: len(typed)] = typed
        for name in PAIR_COLUMNS:
            joined[name][len(typed) :] = pairs[name]
        joined["source"][len(typed) :], joined["status"][len(typed) :] = SOURCE_OF_PAIRS, STATUS_OF_PAIRS
        return joined

    @cached_property
    def sources(self) -> Column:
        """The source of each fact, as the place in SOURCES."""
        return self.facts["source"].astype(np.int64) & ~SAID_BY_SUBJECT

    @cached_property
    def pairs(self) -> Column:
        """The pairs, of type PAIR."""
        return self._join("pairs", PAIR)

    @cached_property
    def typed(self) -> int:
        """The number of facts with a predicate."""
        return int(self._heads["facts"].sum())

    @cached_property
    def ids(self) -> Column:
        """The ids of facts, of type ID. The id of a pair consists of halves of the ids of its entities."""
        ids = self.facts["id"].copy()
        halves = ids.view(">u8").reshape(-1, 2)
        for column, ends in enumerate((self.subject_of, self.object_of)):
            halves[self.typed :, column] = self.entities[ends[self.typed :]].view(">u8").reshape(-1, 2)[:, 0]
        return ids

    @cached_property
    def fact_of(self) -> Column:
        """The place among the packs of each fact."""
        packs = np.arange(len(self))
        return np.concatenate([np.repeat(packs, self._heads[section]) for section in ("facts", "pairs")])

    @cached_property
    def place_of(self) -> Column:
        """The place of each fact in its own pack, where the pairs follow the other facts."""
        typed, pairs = self.fact_of[: self.typed], self.fact_of[self.typed :]
        own = np.arange(len(pairs)) - self._find_firsts("pairs")[pairs] + self._heads["facts"][pairs]
        return np.concatenate([np.arange(len(typed)) - self.first_fact[typed], own])

    @cached_property
    def first_fact(self) -> Column:
        """The place of the first fact of each pack."""
        return self._find_firsts("facts")

    @cached_property
    def first_pair(self) -> Column:
        """The place of the first pair of each pack."""
        places: Column = self.typed + self._find_firsts("pairs")
        return places

    @cached_property
    def by_pack(self) -> Column:
        """The places of facts, in the order of their packs and within each pack."""
        return np.lexsort((self.place_of, self.fact_of))

    def find_places(self, of: Column, in_pack: Column) -> Column:
        """Return the places of facts, given by pack and by place within that pack."""
        beyond = in_pack - self._heads["facts"][of].astype(np.int64)
        places: Column = np.where(beyond < 0, self.first_fact[of] + in_pack, self.first_pair[of] + beyond)
        return places

    @cached_property
    def statement_of(self) -> Column:
        """The place of the statement of each fact."""
        places: Column = self.facts["statement"] + self._find_firsts("statements")[self.fact_of]
        return places

    @cached_property
    def vector_of(self) -> Column:
        """The place of the vector of each fact, -1 if it has none."""
        has_vector = (self.statements["flags"] & HAS_VECTOR) > 0
        places: Column = np.where(has_vector, np.cumsum(has_vector) - 1, -1)[self.statement_of]
        return places

    @cached_property
    def trust(self) -> Column:
        """The trust of each fact, of type TRUST."""
        places = self.facts["trust"][: self.typed] + self._find_firsts("trust")[self.fact_of[: self.typed]]
        trust = np.empty(len(self.facts), TRUST)
        trust[: self.typed], trust[self.typed :] = self.distinct_trust[places], TRUST_OF_PAIRS
        return trust

    @cached_property
    def distinct_trust(self) -> Column:
        """The trust of facts, of type TRUST, each once in a pack."""
        return self._join("trust", TRUST)

    def decode_words(self, place: int) -> tuple[str, ...]:
        """Return the words of one pack."""
        if place not in self._words:
            count = int(self._heads["words"][place])
            section = self._blobs[place][self._ends[-1][place] :]
            ends = np.frombuffer(section, "<u4", count).tolist()
            joined = section[4 * count :]
            spans = zip([0, *ends], ends, strict=False)
            if joined.isascii():
                text = joined.decode("ascii")
                self._words[place] = tuple([text[start:end] for start, end in spans])
            else:
                self._words[place] = tuple([joined[a:b].decode("utf-8", "surrogatepass") for a, b in spans])
        return self._words[place]

    @cached_property
    def _ends(self) -> list[list[int]]:
        """The end of each section of each pack."""
        dtypes = (ID, STATEMENT, MENTION, FACT, PAIR, TRUST)
        sizes = [self._heads[name].astype(np.int64) * d.itemsize for name, d in zip(SECTIONS, dtypes, strict=True)]
        ends: list[list[int]] = (HEAD.itemsize + np.cumsum(sizes, axis=0)).tolist()
        return ends

    def _join(self, section: str, dtype: np.dtype[Any]) -> Column:
        """Return a section of all packs."""
        number = SECTIONS.index(section)
        starts = self._ends[number - 1] if number else [HEAD.itemsize] * len(self)
        parts = [blob[start:end] for blob, start, end in zip(self._blobs, starts, self._ends[number], strict=True)]
        return np.frombuffer(b"".join(parts), dtype)

    def _find_firsts(self, section: str) -> Column:
        """Return the place of the first row of each pack in a joined column."""
        counts = self._heads[section].astype(np.int64)
        firsts: Column = np.cumsum(counts) - counts
        return firsts


def encode_pack(pack: Pack) -> bytes:
    """Return a pack as bytes. Equal packs give equal bytes."""
    words = [word.encode("utf-8", "surrogatepass") for word in pack.words]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64).astype("<u4")
    sections = [getattr(pack, name) for name in SECTIONS]
    version = VERSION if (pack.facts["source"] & SAID_BY_SUBJECT).any() else 1
    head = np.array((version, *map(len, sections), len(words)), dtype=HEAD)
    return b"".join([head.tobytes(), *(section.tobytes() for section in sections), ends.tobytes(), *words])
