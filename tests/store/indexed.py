"""Collections with an index on Qdrant, for tests."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from databases import get_server_url, make_name, start_shared_qdrant
from waylore.store.partial import partial_answers
from waylore.store.postgres.candidates.admin import IndexAdmin
from waylore.store.postgres.store import PostgresStore
from waylore.store.requests import ReadRequest


class FedStore(PostgresStore):
    """A store whose index has everything before a read, and answers every search."""

    def read_many(self, requests: Sequence[ReadRequest[Any]]) -> Sequence[Any]:
        """Feed the index, and read. Fail if PostgreSQL searched without it."""
        while not self._feeder.feed_once().is_done:
            pass
        with partial_answers() as left_out:
            answers = super().read_many(requests)
        assert not left_out
        return answers


def create_index(name: str, url: str = "", *, qdrant: str = "") -> None:
    """Give a collection an index, and build it."""
    with closing(IndexAdmin(url or get_server_url(), name)) as index:
        index.create(qdrant or start_shared_qdrant().url)
        assert list(index.feed())[-1].is_done


def open_indexed(name: str) -> Callable[[], PostgresStore]:
    """Create a collection with an index; return a function that opens it."""
    create_index(name)
    return lambda: FedStore(get_server_url(), name)


@contextmanager
def open_new(kind: type[PostgresStore] = FedStore) -> Iterator[PostgresStore]:
    """Open a new collection with an index."""
    name = make_name("indexed")
    create_index(name)
    with closing(kind(get_server_url(), name)) as store:
        yield store
