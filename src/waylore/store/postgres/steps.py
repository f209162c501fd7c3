"""How a verb of the PostgreSQL store reads: it says which statements it wants, and is given their rows.

So several verbs can go on side by side, and what they want at a time shares one round trip; `driven` and
`side_by_side` (`reads`) do that. Nothing here knows a connection.
"""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from psycopg.sql import Composed

from waylore.store.sql import load_queries

SQL = load_queries("waylore.store.postgres")
_IDENTITY = re.compile("[0-9a-f]{32}")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement:
    """What the server is asked."""

    query: str | Composed
    bound: Mapping[str, Any]


Wanted: TypeAlias = Statement | None  # None finds nothing, and is not asked
Steps: TypeAlias = Generator[Sequence[Wanted], Sequence[list[Any]], T]


def statement(query: str, **bound: Any) -> Statement:
    """A query by its name."""
    return Statement(SQL[query], bound)


def known(ids: Iterable[str]) -> list[str]:
    """Those that are identities, each once."""
    return [i for i in dict.fromkeys(ids) if _IDENTITY.fullmatch(i)]


def array(identities: Iterable[str]) -> str:
    """Identities as PostgreSQL writes an array; over a list psycopg takes longer than the query does."""
    return f"{{{','.join(identities)}}}"


def of_ids(query: str, ids: Iterable[str], **bound: Any) -> Wanted:
    """A query over identities; none asked for is none found, and so is what is no identity."""
    asked = known(ids)
    return statement(query, **bound, ids=array(asked)) if asked else None


def rows(query: str, ids: Iterable[str], **bound: Any) -> Steps[list[Any]]:
    """The rows of one query over identities."""
    [found] = yield [of_ids(query, ids, **bound)]
    return found
