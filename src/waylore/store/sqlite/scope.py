"""Turn a filter into a scope for one verb of the SQLite store, and run queries over rows and ids.

A scope is made once, at the start of a verb: permissions become rows, metadata becomes tags. Both are also
words of the inverted index, so that searches filter inside it. What a connection has read is kept until any process
writes to the file.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar

import apsw
import numpy as np
import numpy.typing as npt

from waylore.errors import StoreError
from waylore.store import rows as columns
from waylore.store.bm25 import Corpus
from waylore.store.sql import load_queries
from waylore.types.knowledge import STATUSES
from waylore.types.results import Statistics
from waylore.types.search import FactFilter, Filter

SQL = load_queries("waylore.store.sqlite")
Rows = npt.NDArray[np.int64]
Columns: TypeAlias = Sequence[npt.NDArray[Any]]  # each has one item or one line for each row
ReadColumns: TypeAlias = Callable[[Rows], Columns]
UNUSED_WORD = '"§"'  # a word that no passage has
NO_STATUS = -1
MAX_BYTES = 1 << 24  # of the ids of rows that a connection keeps, and of the vectors
MAX_SPAN = 1 << 21  # from the first row to the last, because a table leads from rows to places
GROWTH = 1.25  # more places than needed, so that few new rows do not copy the columns
MAX_SEEN = 4_096  # passages whose rows a connection remembers for one filter
MAX_RECENT = 4  # terms of questions and packs of passages that a connection keeps for the next read
T = TypeVar("T")
NO_ACCESSES = np.zeros(1, dtype=np.int64)  # carray needs at least one value; no row is 0


@dataclass(frozen=True, slots=True)
class SqliteCollection:
    """A row of the table `collections`."""

    row: int
    statistics: Statistics
    length: int
    next_passage: int
    next_entity: int


class KeptRows:
    """Columns of rows, in the order in which the rows were first needed.

    They belong to rows and not to a caller: queries decide which rows a caller may see, before they are looked up here.
    """

    def __init__(self) -> None:
        self._first = 0  # the row of the first place
        self._places = np.zeros(0, np.int32)  # of each row, counted from 1; 0 for one that is not kept
        self._columns: list[npt.NDArray[Any]] = []
        self._count = 0
        self._last: tuple[Rows, Columns] | None = None  # rows that lie together, and their part of the columns

    @property
    def size(self) -> int:
        """The number of bytes of the columns."""
        return sum(column.nbytes for column in self._columns)

    def take(self, rows: Rows, read: ReadColumns) -> Columns:
        """Return the columns of distinct rows, in their order, and `read` those that are not kept. Do not change them.

        Rows that would exceed MAX_BYTES are read and not kept.
        """
        if self._last is not None and self._last[0] is rows:
            return self._last[1]
        if not len(rows) or not self._widen(int(rows.min()), int(rows.max())):
            return read(rows)
        own = rows - self._first
        is_new = self._places[own] == 0
        if is_new.any() and not self._add(own[is_new], read(rows[is_new])):
            return read(rows)
        places = self._places[own] - 1
        first = int(places[0])
        if (np.diff(places) == 1).all():
            self._last = rows, [column[first : first + len(rows)] for column in self._columns]
            return self._last[1]
        return [column[places] for column in self._columns]

    def _widen(self, smallest: int, largest: int) -> bool:
        """Make a place for rows from one to another. Return False if these are too far apart."""
        end = self._first + len(self._places)
        if not end:
            self._first = end = smallest
        before, after = max(self._first - smallest, 0), max(largest + 1 - end, 0)
        if before + after + len(self._places) > MAX_SPAN:
            return False
        if before or after:
            self._first -= before
            self._places = np.pad(self._places, (before, after))
        return True

    def _add(self, rows: Rows, columns: Columns) -> bool:
        """Keep columns of new rows. Return False if they are too large."""
        count = self._count + len(rows)
        if not self._columns or count > len(self._columns[0]):
            capacity = count if not self._count else int(GROWTH * count)
            if capacity * sum(column[:1].nbytes for column in columns) > MAX_BYTES:
                return False
            self._last = None
            kept = self._columns or [column[:0] for column in columns]
            self._columns = [np.empty((capacity, *column.shape[1:]), column.dtype) for column in columns]
            for column, before in zip(self._columns, kept, strict=True):
                column[: self._count] = before[: self._count]
        for column, added in zip(self._columns, columns, strict=True):
            column[self._count : count] = added
        self._places[rows] = np.arange(self._count + 1, count + 1)
        self._count = count
        return True


@dataclass(slots=True)
class SeenRows:
    """The rows of passages, by id, that searches with one filter have found; and all rows, if these are few."""

    by_id: dict[str, int] = field(default_factory=dict)
    every: Rows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteScope(columns.VisibleScope):
    """The visible part of a collection in SQLite, with the rows of the permissions.

    `recent` is what the last reads of the connection found, by the key of the filter. `kept` has columns of passages by
    row, whoever asks. `seen` has, by the key of a filter, what searches with it have found.
    """

    collection: SqliteCollection
    accesses: Rows
    filter_key: str
    recent: dict[tuple[Any, ...], Any]
    kept: dict[str, KeptRows]
    seen: dict[tuple[Any, ...], SeenRows]

    @property
    def bindings(self) -> dict[str, Any]:
        """The parameters of every reading query."""
        return {
            "collection": self.collection.row,
            "accesses": apsw.carray(self.accesses),
            "tags": json.dumps(self.tags, ensure_ascii=False) if self.tags else "[]",
            **self.turns,
        }

    def recall(self, key: tuple[Any, ...], find: Callable[[], T]) -> T:
        """Return what one of the last reads has found under a key, else find it. A write to the file ends the scope."""
        key = (self.filter_key, self.turns["expired_by"], *key)
        if key not in self.recent:
            if len(self.recent) == MAX_RECENT:
                del self.recent[next(iter(self.recent))]
            self.recent[key] = find()
        found: T = self.recent[key]
        return found

    @property
    def visible(self) -> SeenRows:
        """What the last searches with this filter have found. A write ends the scope."""
        key = (self.filter_key, self.turns["expired_by"])
        if key not in self.seen or len(self.seen[key].by_id) > MAX_SEEN:
            self.seen.clear()
            self.seen[key] = SeenRows()
        return self.seen[key]

    @property
    def match(self) -> str:
        """The scope as an expression of the inverted index; empty without a filter."""
        if not self.needs_words:
            return ""
        row = self.collection.row
        alternatives = [[make_access_word(row, a) for a in self.accesses.tolist()]]
        alternatives += [[make_tag_word(row, t) for t in tags] for tags in self.tags]
        return " AND ".join(match_any(words) for words in alternatives)


def bind_fact_filter(facts: FactFilter) -> dict[str, Any]:
    """Return the parameters of every query for facts."""
    as_of = None if facts.as_of is None else columns.to_microseconds(facts.as_of)
    statuses = np.array([STATUSES.index(status) for status in facts.statuses] or [NO_STATUS], dtype=np.int64)
    return {"statuses": apsw.carray(statuses), "as_of": as_of}


def read_collection(db: apsw.Connection, name: str) -> SqliteCollection:
    """Read the current row of a collection."""
    row = db.execute(SQL["collection"], {"name": name}).get
    (number, version, model, dimension, documents, passages, entities, facts, mentions, weights) = row[:10]
    statistics = Statistics(documents, passages, entities, facts, mentions, model, dimension, version, weights)
    return SqliteCollection(number, statistics, *row[10:])


class ScopeCache:
    """The scopes of one connection, cached until any process writes to the file."""

    def __init__(self, db: apsw.Connection, name: str) -> None:
        self._db = db
        self._name = name
        self._version: tuple[Any, int] = (None, -1)
        self._scopes: dict[str, SqliteScope] = {}
        self._recent: dict[tuple[Any, ...], Any] = {}
        self._kept: dict[str, KeptRows] = {}
        self._seen: dict[tuple[Any, ...], SeenRows] = {}
        self._last: tuple[Filter, SqliteScope] | None = None  # the last one of this snapshot

    def refresh(self) -> None:
        """Start a snapshot, and forget the scopes if the file was written since the last one."""
        self._last = None
        now = (self._db.execute(SQL["data_version"]).get, self._db.total_changes())
        if now != self._version:
            self._version = now
            self._scopes.clear()
            self._recent.clear()
            self._kept.clear()
            self._seen.clear()

    def get(self, where: Filter) -> SqliteScope:
        """Return the scope of a filter in the current snapshot."""
        if self._last is None or self._last[0] is not where:
            key = columns.make_filter_key(where)
            if key not in self._scopes:
                self._scopes[key] = self._make_scope(where, key)
            self._last = (where, self._scopes[key].hide_expired(where))
        return self._last[1]

    def _make_scope(self, where: Filter, key: str) -> SqliteScope:
        found = read_collection(self._db, self._name)
        bound = {"collection": found.row, "labels": columns.format_labels(where), "user": where.user}
        seen = np.array(self._db.execute(SQL["visible_accesses"], bound).fetchall(), dtype=np.int64).reshape(-1, 6)
        _, passages, length, assertions, turns = seen[:, :5].sum(axis=0).tolist()
        is_limited = where.labels is not None or bool(self._db.execute(SQL["has_users"], bound).get)
        return SqliteScope(
            collection=found,
            accesses=seen[:, 0].copy() if len(seen) else NO_ACCESSES,
            tags=columns.list_tags(where),
            turns=columns.bind_turns(where),
            corpus=Corpus(passages, length) if is_limited else Corpus(found.statistics.passages, found.length),
            has_facts=assertions > 0,
            has_turns=turns > 0,
            has_only_turns=0 < turns == passages,
            has_unconfirmed=bool(self._db.execute(SQL["has_unconfirmed"], bound).get),
            is_limited=is_limited,
            first_expiry=int(seen[:, 5].min(initial=columns.NEVER)),
            filter_key=key,
            recent=self._recent,
            kept=self._kept,
            seen=self._seen,
        )


# -- words of the inverted index beside the rows of terms; each collection has its own -----------------


def make_access_word(collection: int, access: int) -> str:
    """Return the word that every passage with a permission has."""
    return f"{collection}·§a{access}"


def make_tag_word(collection: int, tag: str) -> str:
    """Return the word that every passage with a tag has."""
    return f"{collection}·§m{blake2b(tag.encode(), digest_size=8).hexdigest()}"


def match_any(words: Iterable[str]) -> str:
    """Return an expression that matches any of these words, or nothing if there are no words."""
    return "(" + (" OR ".join(f'"{w}"' for w in words) or UNUSED_WORD) + ")"


# -- running queries ---------------------------------------------------------------------------------


def run_by_ids(db: apsw.Connection, query: str, ids: Sequence[str], **bound: Any) -> list[Any]:
    """Run a query over ids. Strings that are no ids are skipped; without ids no query is run."""
    blobs = columns.parse_ids(ids)
    return db.execute(SQL[query], {**bound, "ids": apsw.carray(blobs)}).fetchall() if blobs else []


def run_by_rows(db: apsw.Connection, query: str, rows: Sequence[int] | Rows, **bound: Any) -> list[Any]:
    """Run a query over distinct rows. Without rows no query is run."""
    if not len(rows):
        return []
    array = apsw.carray(rows if isinstance(rows, np.ndarray) else np.array(sorted(set(rows)), dtype=np.int64))
    return db.execute(SQL[query], {**bound, "rows": array}).fetchall()


def run_by_facts(db: apsw.Connection, query: str, keys: Rows, **bound: Any) -> list[Any]:
    """Run a query over keys of facts. Without keys no query is run."""
    if not len(keys):
        return []
    return db.execute(SQL[query], {**bound, "facts": apsw.carray(np.unique(keys))}).fetchall()


def read_joined(db: apsw.Connection, query: str, rows: Rows) -> bytes:
    """Run a query that joins a value of each row, in their order. Every row must have one."""
    if not len(rows):
        return b""
    count, joined = db.execute(SQL[query], {"rows": apsw.carray(rows)}).get
    if count != len(rows):
        raise StoreError(f"{db.filename}: {query} lacks {len(rows) - count} rows: run `waylore doctor`")
    return bytes(joined)


def parse_numbers(joined: str | None) -> Rows:
    """Return the numbers of a text, which are separated by commas."""
    return np.fromstring(joined or "", dtype=np.int64, sep=",")
