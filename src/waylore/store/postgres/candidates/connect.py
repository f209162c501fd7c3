"""Open the index of a collection when it is needed, and search it; a search without it says so in its answer."""

from collections.abc import Sequence
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

from waylore.errors import ConfigError
from waylore.store.partial import note_incomplete
from waylore.store.qdrant.queries import CandidateQuery, IndexUnavailable

if TYPE_CHECKING:
    from waylore.store.qdrant.index import QdrantIndex


class IndexConnections:
    """The indexes that a store uses, by URL. The HTTP client is imported when the first one is opened."""

    def __init__(self) -> None:
        self._opened: dict[str, QdrantIndex] = {}
        self._lock = Lock()

    def open(self, url: str) -> "QdrantIndex":
        """Return the index at a URL."""
        with self._lock:
            if url not in self._opened:
                self._opened[url] = open_index(url)
            return self._opened[url]

    def search(self, queries: Sequence[CandidateQuery]) -> list[list[Any]]:
        """Return one row for each query, with the ids that were found; no rows if the index does not answer."""
        if not queries:
            return []
        try:
            return [[ids] for ids in self.open(queries[0].place.url).search(queries)]
        except (IndexUnavailable, ConfigError) as error:
            note_incomplete("index", f"{error}, so PostgreSQL searched without it")
            return [[] for _ in queries]

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for index in self._opened.values():
                index.close()
            self._opened.clear()


def open_index(url: str) -> "QdrantIndex":
    """Open an index. Raise ConfigError if the HTTP client is not installed."""
    try:
        module = import_module("waylore.store.qdrant.index")
    except ImportError as error:
        raise ConfigError("an index on Qdrant needs an HTTP client: pip install 'waylore[qdrant]'") from error
    made: QdrantIndex = module.QdrantIndex(url)
    return made
