"""Create, watch and drop the index of a collection. `waylore index` calls these."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from waylore.errors import ConfigError, NotFound
from waylore.store.postgres.candidates.connect import IndexConnections, open_index
from waylore.store.postgres.candidates.feeder import Feeder, FeedReport
from waylore.store.postgres.candidates.outbox import count_pending
from waylore.store.postgres.connections import translate_errors
from waylore.store.postgres.scope import PostgresCollection, compute_key, read_collection, run
from waylore.store.postgres.server import Server, borrow_server, open_snapshot, open_transaction, release_server
from waylore.store.postgres.steps import LOWEST_ID
from waylore.store.qdrant.queries import IndexPlace, IndexUnavailable, hide_keys, split_url

CONNECTIONS, WAIT_SECONDS = 2, 30.0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The index of a collection: what it has and lacks. `points` is None if it does not answer (`problem`)."""

    url: str
    is_built: bool
    items: int
    pending: int
    seconds: float
    points: int | None = None
    problem: str = ""


class IndexAdmin:
    """The index of one collection of a PostgreSQL database, for operators."""

    def __init__(self, url: str, collection: str) -> None:
        self._url = url
        self._name = collection
        self._key = compute_key(collection)
        with translate_errors(url):
            self._server: Server = borrow_server(url, connections=CONNECTIONS, wait_seconds=WAIT_SECONDS)
        self._indexes = IndexConnections()
        self._feeder = Feeder(self._server, self._key, collection, self._indexes)

    def create(self, url: str, *, shards: int | None = None, replicas: int | None = None) -> None:
        """Give the collection an index at the addresses of a cluster. `feed` builds it."""
        addresses = ",".join(split_url(url))
        with closing(open_index(addresses)) as index:
            known = self._read()
            if known.index:
                raise ConfigError(f"{self._name} has an index already: drop it first with `waylore index drop`")
            dimension = known.statistics.dimension or 0
            index.prepare(IndexPlace(b"", addresses, dimension, shards, replicas))
        bound = {"url": addresses, "shards": shards, "replicas": replicas, "lowest": LOWEST_ID}
        with translate_errors(self._url), open_transaction(self._server, self._key) as db:
            run(db, "add_index", collection=self._key, **bound)

    def feed(self) -> Iterator[FeedReport]:
        """Send everything that the index lacks, and yield what each step has sent."""
        self._require()
        step = FeedReport(is_built=False)
        while not step.is_done:
            step = self._feeder.feed_once()
            yield step

    def read_status(self) -> IndexStatus:
        """Return what the index has and lacks."""
        place = self._require()
        with translate_errors(self._url), open_snapshot(self._server, self._key) as db:
            known = read_collection(db, self._key, self._name).statistics
            pending, seconds = count_pending(db, self._key)
        items = known.passages + (known.entities if known.dimension else 0)
        status = IndexStatus(hide_keys(place.url), place.is_built, items, pending, seconds)
        try:
            return replace(status, points=self._indexes.open(place.url).count(place))
        except (IndexUnavailable, ConfigError) as error:
            return replace(status, problem=str(error))

    def drop(self, *, is_forced: bool = False) -> None:
        """Remove all points of the collection from the index, and then the index from the collection.

        is_forced: also if the cluster does not answer, which may then keep them.
        """
        place = self._require()
        with translate_errors(self._url), open_transaction(self._server, self._key, lock="lock_feed") as db:
            run(db, "lock", collection=self._key)
            try:
                self._indexes.open(place.url).remove_tenant(place.tenant)
            except IndexUnavailable:
                if not is_forced:
                    raise
            run(db, "drop_index_rows", collection=self._key)

    def close(self) -> None:
        """Close every connection."""
        self._feeder.close()
        self._indexes.close()
        release_server(self._server)

    def _read(self) -> PostgresCollection:
        with translate_errors(self._url), open_transaction(self._server, self._key, lock="lock_shared") as db:
            run(db, "ensure_collection", collection=self._key, name=self._name)
            return read_collection(db, self._key, self._name)

    def _require(self) -> IndexPlace:
        place = self._read().index
        if place is None:
            raise NotFound(f"{self._name} has no index; create one with `waylore index create URL`")
        return place
