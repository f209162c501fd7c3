"""What a store asks its index: where the index is, what to look for, and which items the caller may see.

This module knows neither SQL nor the HTTP client, which is optional.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

from waylore.errors import ConfigError, StoreUnavailable
from waylore.types.knowledge import Vector

MANY_ACCESSES = -1  # in place of the permissions of an entity that has too many to list


class IndexUnavailable(StoreUnavailable):
    """The search index cannot be reached; check it with `waylore index status`."""

    def __init__(self, message: str | None = None, status: int = 0) -> None:
        super().__init__(message)
        self.status = status  # of HTTP, if a peer refused a request


class Target(StrEnum):
    """What is compared: the vectors of passages, the vectors of names, or the words of passages."""

    PASSAGE = "passage"
    NAME = "name"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """The index of a collection: its addresses, and the 16 bytes that mark the points of the collection in it.

    `dimension` is that of the vectors, 0 without a model. No search uses an index before `is_built`.
    """

    tenant: bytes
    url: str
    dimension: int
    shards: int | None = None
    replicas: int | None = None
    is_built: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleItems:
    """Which items may be found. Times are in microseconds.

    `accesses` are the permissions of the caller; None if nothing is hidden from it. An item must have a tag of each
    group of `tags`.
    """

    accesses: Sequence[int] | None = None
    tags: Sequence[Sequence[int]] = ()
    since: int | None = None
    until: int | None = None
    said_by: int | None = None
    speaker: int | None = None
    expired_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """A search for candidates by a vector, or by the weights of terms.

    `is_exact` compares all vectors that the caller may see, so that hidden items cannot change the result.
    """

    place: IndexPlace
    target: Target
    visible: VisibleItems
    limit: int
    vector: Vector | None = None
    weights: Mapping[int, float] | None = None  # by the number of the term
    is_exact: bool = False


def split_url(url: str) -> list[str]:
    """Return the addresses of the peers of a cluster, separated by commas. Raise ConfigError if one is bad."""
    urls = [part.strip() for part in url.split(",") if part.strip()]
    if not urls or not all(urlsplit(one).scheme in ("http", "https") and urlsplit(one).hostname for one in urls):
        raise ConfigError("give the address of an index as that of its peers, such as http://localhost:6333")
    return urls


def split_key(url: str) -> tuple[str, str]:
    """Return the address of a peer, and the API key that it has as a password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")), parts.password or ""


def hide_keys(url: str) -> str:
    """Return the addresses of a cluster without API keys."""
    return ",".join(split_key(one)[0] for one in url.split(","))
