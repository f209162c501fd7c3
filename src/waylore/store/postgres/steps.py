"""How a verb of the PostgreSQL store reads: it is a generator that yields statements and is sent their rows.

Several verbs can run together, and the statements that they yield at the same time share one round trip.
`drive` and `run_together` of `store.reads` run these generators. This module knows no connection.
"""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from psycopg.sql import Composed

from waylore.store.qdrant.queries import CandidateQuery
from waylore.store.sql import load_queries

SQL = load_queries("waylore.store.postgres")
LOWEST_ID = "0" * 32  # sorts before every other id
_IDENTITY = re.compile("[0-9a-f]{32}")
_VECTOR_TABLE = re.compile(r"\b(FROM|INTO) (passage_vectors|entity_vectors)\b")
_WITH_VECTORS = frozenset(name for name, text in SQL.items() if _VECTOR_TABLE.search(text))
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """A query with its parameters."""

    query: str | Composed
    bound: Mapping[str, Any]


Wanted: TypeAlias = SqlStatement | None  # None is not sent and has no rows
# A query of the index has one row with ids, or no row if the index does not answer.
Asked: TypeAlias = Wanted | CandidateQuery
Steps: TypeAlias = Generator[Sequence[Asked], Sequence[list[Any]], T]


def make_statement(query: str, **bound: Any) -> SqlStatement:
    """Make a statement from the name of a query."""
    return SqlStatement(find_text(query, bound), bound)


def find_text(query: str, bound: Mapping[str, Any]) -> str:
    """Return the text of a query. Its parameter `own_vectors`, if given, says which tables of vectors it reads."""
    own = bound.get("own_vectors")
    return SQL[query] if own is None or query not in _WITH_VECTORS else name_vector_tables(query, own)


@lru_cache(maxsize=4_096)
def name_vector_tables(query: str, own: str) -> str:
    """Return a query that names only those tables of vectors that have the rows of its collection.

    They are the collection's own tables, whose names end with `own`, or if it is empty the shared ones. Without this
    the server would plan the query for the tables of all collections, because those inherit from the shared ones.
    """
    if own:
        return _VECTOR_TABLE.sub(rf"\1 \2_{own}", SQL[query])
    return _VECTOR_TABLE.sub(lambda found: found[0].replace("FROM", "FROM ONLY"), SQL[query])


def filter_ids(ids: Iterable[str]) -> list[str]:
    """Return the strings that are ids, each once."""
    return [i for i in dict.fromkeys(ids) if _IDENTITY.fullmatch(i)]


def to_array(identities: Iterable[str]) -> str:
    """Format ids as a PostgreSQL array. For a list, psycopg takes longer than the query itself."""
    return f"{{{','.join(identities)}}}"


def make_statement_by_ids(query: str, ids: Iterable[str], **bound: Any) -> Wanted:
    """Make a statement over ids; None if there are no ids."""
    valid = filter_ids(ids)
    return make_statement(query, **bound, ids=to_array(valid)) if valid else None


def read_rows(query: str, ids: Iterable[str], **bound: Any) -> Steps[list[Any]]:
    """Run one query over ids and return its rows."""
    [found] = yield [make_statement_by_ids(query, ids, **bound)]
    return found
