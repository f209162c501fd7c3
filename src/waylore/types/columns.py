"""Facts and mentions as columns, as a store returns them, without an object for each row.

Both are mappings from the ids that they were read for to tuples of objects. An object is made when it is looked up,
so a search can work on the columns and make objects only of what it shows.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from itertools import accumulate, chain, count, pairwise
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from waylore.types.knowledge import EPOCH, SOURCES, STATUSES, Fact, Mention, Vector
from waylore.types.search import Query

T = TypeVar("T")
Number = TypeVar("Number", np.float32, np.int8)
MICROSECOND = timedelta(microseconds=1)
Ids = tuple[str, ...]
Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
# Columns of FactColumns that are tuples, and those that are arrays; `origins` and `rows` are treated apart.
ID_COLUMNS = ("of", "ids", "subjects", "objects")
NEUTRAL = 0.6  # the cosine that neither raises nor lowers the weight of a fact or passage
NO_TIME = np.iinfo(np.int64).min  # the time of a turn without one
NUMBER_COLUMNS = ("weights", "confidences", "sources", "statuses", "recorded_at", "has_vector", "is_typed", "is_dated")
# The same of TurnColumns.
TURN_TEXTS = ("ids", "speakers", "roles", "texts")
TURN_NUMBERS = ("sessions", "positions", "at", "tells_time", "sizes")


class FactOrigin(ABC):
    """Facts as a store has read them, by row: an object is made when it is looked up.

    `vectors` has a row for each fact, 0 for one without a vector.
    """

    def __init__(self, vectors: npt.NDArray[np.float32]) -> None:
        self.vectors = vectors
        self._compared: tuple[Vector, Numbers] | None = None  # the last question, and the product of each fact with it

    @abstractmethod
    def make_fact(self, row: int) -> Fact:
        """Make the fact of a row."""

    @abstractmethod
    def get_words(self, row: int) -> tuple[str, str, str]:
        """Return subject, predicate and object of the fact of a row; a pair has an empty predicate."""

    def find_words(self, rows: Counts) -> tuple[Sequence[str], Counts]:
        """Return words, and the places of subject, predicate and object of each fact among them."""
        words = list(map(self.get_words, rows.tolist()))
        return tuple(chain(*words)), np.arange(3 * len(words)).reshape(-1, 3)

    def compute_products(self, vector: Vector) -> Numbers:
        """Return the product of each fact's vector with another one. A search asks for those of its question often."""
        if self._compared is None or self._compared[0] is not vector:
            is_comparable = self.vectors.shape[1] == len(vector)
            near = np.einsum("ij,j->i", self.vectors, vector) if is_comparable else np.zeros(len(self.vectors))
            self._compared = (vector, near.astype(np.float64))
        return self._compared[1]


class ListedFacts(FactOrigin):
    """Facts that are objects already."""

    def __init__(self, facts: tuple[Fact, ...], vectors: npt.NDArray[np.float32]) -> None:
        super().__init__(vectors)
        self._facts = facts

    def make_fact(self, row: int) -> Fact:
        """Return the fact of a row."""
        return self._facts[row]

    def get_words(self, row: int) -> tuple[str, str, str]:
        """Return subject, predicate and object of the fact of a row."""
        fact = self._facts[row]
        return fact.subject, fact.predicate, fact.object


class Groups(Mapping[str, tuple[T, ...]]):
    """Rows in groups. `of` has the id that each row was read for; rows of one id follow each other."""

    of: Ids

    @abstractmethod
    def make(self, place: int) -> T:
        """Make the object of a row."""

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.of)

    def __getitem__(self, id_: str) -> tuple[T, ...]:
        return tuple(map(self.make, self._spans[id_]))

    def __contains__(self, id_: object) -> bool:
        return id_ in self._spans

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    @cached_property
    def _spans(self) -> dict[str, range]:
        starts = [place for place, id_ in enumerate(self.of) if not place or id_ != self.of[place - 1]]
        return {self.of[start]: range(start, end) for start, end in pairwise([*starts, len(self.of)])}


@dataclass(frozen=True, eq=False)
class MentionColumns(Groups[Mention]):
    """Mentions: the entity, the passage, how often, and whether the passage is about the entity."""

    of: Ids = ()
    entities: Ids = ()
    passages: Ids = ()
    counts: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    is_own: Flags = field(default_factory=lambda: np.empty(0, np.bool_))

    def make(self, place: int) -> Mention:
        """Make the object of a row."""
        return Mention(self.entities[place], self.passages[place], int(self.counts[place]), bool(self.is_own[place]))

    def take(self, places: Sequence[int] | Counts) -> "MentionColumns":
        """Return some of the rows, in the given order."""
        at = np.array(places, np.intp)
        listed = at.tolist()
        of, entities, passages = (_take(column, listed) for column in (self.of, self.entities, self.passages))
        return MentionColumns(of, entities, passages, self.counts[at], self.is_own[at])


@dataclass(frozen=True, eq=False)
class FactColumns(Groups[Fact]):
    """Facts: their ids, ends and trust, and where each is made from.

    `objects` is empty for a plain value, `is_typed` is false for a pair, `is_dated` is whether its time is known.
    `sources` and `statuses` are places in SOURCES and STATUSES, `recorded_at` is in microseconds since 1970. `rows`
    has the row of each fact in `origins`, counted through all of them.
    """

    of: Ids = ()
    ids: Ids = ()
    subjects: Ids = ()
    objects: Ids = ()
    weights: Numbers = field(default_factory=lambda: np.empty(0))
    confidences: Numbers = field(default_factory=lambda: np.empty(0))
    sources: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    statuses: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    recorded_at: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    has_vector: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    is_typed: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    is_dated: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    origins: tuple[FactOrigin, ...] = ()
    rows: Counts = field(default_factory=lambda: np.empty(0, np.int64))

    def make(self, place: int) -> Fact:
        """Make the object of a row."""
        origin, row = self._find_origin(place)
        return origin.make_fact(row)

    def get_words(self, place: int) -> tuple[str, str, str]:
        """Return subject, predicate and object of a row, without making an object."""
        origin, row = self._find_origin(place)
        return origin.get_words(row)

    def find_words(self) -> tuple[list[str], Counts]:
        """Return all words, each once, and the places of subject, predicate and object of each row among them."""
        table = np.empty((self.size, 3), np.int64)
        known: list[str] = []
        for number, origin in enumerate(self.origins):
            first = self._firsts[number]
            own = np.flatnonzero((self.rows >= first) & (self.rows < self._firsts[number + 1]))
            if len(own):
                words, places = origin.find_words(self.rows[own] - first)
                table[own] = places + len(known)
                known += words
        number_of = dict(zip(dict.fromkeys(known), count()))
        return list(number_of), np.array([*map(number_of.__getitem__, known)], np.int64)[table]

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """The vectors as the rows of a matrix, 0 where `has_vector` is false."""
        return self.take_vectors(np.arange(self.size))

    def take_vectors(self, places: Counts) -> npt.NDArray[np.float32]:
        """Return the vectors of some rows, in the given order, as the rows of a matrix."""
        dimension = max((origin.vectors.shape[1] for origin in self.origins), default=0)
        tables = [_widen(origin.vectors, dimension) for origin in self.origins]
        if len(tables) == 1:
            return tables[0][self.rows[places]]
        taken = np.empty((len(places), dimension), np.float32)
        for first, table in zip(self._firsts, tables, strict=False):
            own = np.flatnonzero((self.rows[places] >= first) & (self.rows[places] < first + len(table)))
            taken[own] = table[self.rows[places[own]] - first]
        return taken

    def compute_cosines(self, query: Query) -> Numbers:
        """Return the cosine of each fact and a question, in order; facts without a vector get a neutral value."""
        cosines = np.full(self.size, NEUTRAL)
        if query.vector is not None and self.has_vector.any():
            near = np.concatenate([origin.compute_products(query.vector) for origin in self.origins])
            cosines[self.has_vector] = query.map_cosines(near[self.rows[self.has_vector]])
        return cosines

    @cached_property
    def _firsts(self) -> list[int]:
        """The number of rows before each origin, and of all."""
        return [0, *accumulate(len(origin.vectors) for origin in self.origins)]

    def _find_origin(self, place: int) -> tuple[FactOrigin, int]:
        """Return the origin of a row, and its row there."""
        row = int(self.rows[place])
        number = bisect_right(self._firsts, row) - 1
        return self.origins[number], row - self._firsts[number]

    def take(self, places: Sequence[int] | Counts) -> "FactColumns":
        """Return some of the rows, in the given order."""
        at = np.array(places, np.intp)
        listed = at.tolist()
        columns: dict[str, Any] = {name: _take(getattr(self, name), listed) for name in ID_COLUMNS}
        columns |= {name: getattr(self, name)[at] for name in NUMBER_COLUMNS}
        return FactColumns(**columns, origins=self.origins, rows=self.rows[at])


@dataclass(frozen=True, eq=False, slots=True)
class TurnColumns:
    """Turns of conversations in order: by session, role and position, and the terms of a question.

    `sessions` are hashes of user, agent and session. `at` is in microseconds since 1970, or NO_TIME. `tells_time`
    is whether a turn has an expression of time (`waylore.spans`). `sequence` has the
    terms of all turns in their order, `sizes` of each: a term is its place in `terms`, or -1 if the question lacks it.
    `codes` are vectors in eight bits per dimension, 0 for a turn without one. `counts` are the caller's passages that
    have each term, of `passages` in total.
    """

    ids: Ids = ()
    sessions: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    positions: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    speakers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    at: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    texts: tuple[str, ...] = ()
    tells_time: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    sequence: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    sizes: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    codes: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty((0, 1), np.int8))
    terms: tuple[str, ...] = ()
    counts: Counts = field(default_factory=lambda: np.empty(0, np.int64))
    passages: int = 0

    @property
    def size(self) -> int:
        """The number of turns."""
        return len(self.ids)

    @property
    def words(self) -> Counts:
        """The length of each turn in words."""
        return np.array([len(text.split()) for text in self.texts], np.int64)

    @property
    def is_question(self) -> Flags:
        """Whether each turn ends with a question mark."""
        return np.array([text.rstrip().endswith("?") for text in self.texts], np.bool_)


def merge_turns(parts: Sequence[TurnColumns]) -> TurnColumns:
    """Return the turns of all parts in order, each once, and the sums of the counts. All parts have the same terms."""
    dimension = max(part.codes.shape[1] for part in parts)
    keys = [
        (int(session), role, int(position), id_)
        for part in parts
        for session, role, position, id_ in zip(part.sessions, part.roles, part.positions, part.ids, strict=True)
    ]
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    at = [first[key] for key in sorted(first)]
    spans = np.split(np.concatenate([part.sequence for part in parts]), np.cumsum(_join(parts, "sizes"))[:-1])
    columns: dict[str, Any] = {
        name: _take(tuple(chain.from_iterable(getattr(part, name) for part in parts)), at) for name in TURN_TEXTS
    }
    columns |= {name: _join(parts, name)[at] for name in TURN_NUMBERS}
    return TurnColumns(
        **columns,
        sequence=np.concatenate([np.empty(0, np.int32), *(spans[place] for place in at)]),
        codes=np.concatenate([_widen(part.codes, dimension) for part in parts])[at],
        terms=parts[0].terms,
        counts=np.sum([part.counts for part in parts], axis=0),
        passages=sum(part.passages for part in parts),
    )


def _join(parts: Sequence[TurnColumns], name: str) -> Counts:
    joined: Counts = np.concatenate([getattr(part, name) for part in parts])
    return joined


def join_facts(parts: Sequence[FactColumns]) -> FactColumns:
    """Return the rows of all parts."""
    known = [part for part in parts if part.size]
    if len(known) < 2:
        return known[0] if known else FactColumns()
    columns: dict[str, Any] = {
        name: tuple(chain.from_iterable(getattr(part, name) for part in known)) for name in ID_COLUMNS
    }
    columns |= {name: np.concatenate([getattr(part, name) for part in known]) for name in NUMBER_COLUMNS}
    before = accumulate((sum(len(origin.vectors) for origin in part.origins) for part in known), initial=0)
    rows = np.concatenate([part.rows + first for part, first in zip(known, before, strict=False)])
    return FactColumns(**columns, origins=tuple(chain(*(part.origins for part in known))), rows=rows)


def unique_facts(parts: Sequence[FactColumns]) -> FactColumns:
    """Return each fact once: at its first place, as the last row states it."""
    joined = join_facts(parts)
    last = dict(zip(joined.ids, range(joined.size), strict=True))
    return joined if len(last) == joined.size else joined.take(list(last.values()))


def to_fact_columns(groups: Mapping[str, Iterable[Fact]]) -> FactColumns:
    """Return facts as columns, grouped as given."""
    pairs = [(id_, fact) for id_, facts in groups.items() for fact in facts]
    facts = tuple(fact for _, fact in pairs)
    dimension = max((len(fact.vector) for fact in facts if fact.vector is not None), default=0)
    blank = np.zeros(dimension, np.float32)
    vectors = [blank if fact.vector is None else fact.vector for fact in facts]
    return FactColumns(
        tuple(id_ for id_, _ in pairs),
        tuple(fact.id for fact in facts),
        tuple(fact.subject_id for fact in facts),
        tuple(fact.object_id for fact in facts),
        weights=np.array([fact.weight for fact in facts], np.float64),
        confidences=np.array([fact.confidence for fact in facts], np.float64),
        sources=np.array([SOURCES.index(fact.source) for fact in facts], np.int64),
        statuses=np.array([STATUSES.index(fact.status) for fact in facts], np.int64),
        recorded_at=np.array([(fact.recorded_at - EPOCH) // MICROSECOND for fact in facts], np.int64),
        has_vector=np.array([fact.vector is not None for fact in facts], np.bool_),
        is_typed=np.array([fact.is_typed for fact in facts], np.bool_),
        is_dated=np.array([fact.is_dated for fact in facts], np.bool_),
        origins=(ListedFacts(facts, np.array(vectors, np.float32).reshape(len(facts), dimension)),),
        rows=np.arange(len(facts)),
    )


def to_mention_columns(groups: Mapping[str, Iterable[Mention]]) -> MentionColumns:
    """Return mentions as columns, grouped as given."""
    pairs = [(id_, mention) for id_, mentions in groups.items() for mention in mentions]
    return MentionColumns(
        tuple(id_ for id_, _ in pairs),
        tuple(mention.entity_id for _, mention in pairs),
        tuple(mention.passage_id for _, mention in pairs),
        np.array([mention.count for _, mention in pairs], np.int64),
        np.array([mention.is_own for _, mention in pairs], np.bool_),
    )


def join_mentions(parts: Sequence[MentionColumns]) -> MentionColumns:
    """Return the rows of all parts."""
    return MentionColumns(
        tuple(chain.from_iterable(part.of for part in parts)),
        tuple(chain.from_iterable(part.entities for part in parts)),
        tuple(chain.from_iterable(part.passages for part in parts)),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.is_own for part in parts]),
    )


def _take(column: tuple[T, ...], places: Sequence[int]) -> tuple[T, ...]:
    """Return the items at some places, by `itemgetter` because it is three times as fast as a loop."""
    if len(places) > 1:
        items: tuple[T, ...] = itemgetter(*places)(column)
        return items
    return tuple(column[place] for place in places)


def _widen(vectors: npt.NDArray[Number], dimension: int) -> npt.NDArray[Number]:
    """Return vectors with a dimension; rows that have none become 0."""
    return vectors if vectors.shape[1] == dimension else np.zeros((len(vectors), dimension), vectors.dtype)
