"""Send changes to the index of a collection: in the background after a write, and at once after forgetting.

Every process that has the collection open feeds its index, one at a time. A feeder that fails tries again, after ever
longer pauses, for as long as the collection is open. `waylore index feed` does the same in the foreground.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread

import psycopg

from waylore.errors import WayloreError
from waylore.store import monitoring
from waylore.store.postgres import server
from waylore.store.postgres.candidates import outbox
from waylore.store.postgres.candidates.connect import IndexConnections
from waylore.store.postgres.connections import translate_errors
from waylore.store.postgres.scope import read_collection
from waylore.types.results import Receipt

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0  # between two attempts
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What one step has sent, and what is left: changes, the age of the oldest in seconds, and items to build."""

    sent: int = 0
    pending: int = 0
    seconds: float = 0.0
    is_built: bool = True

    @property
    def is_done(self) -> bool:
        """Whether the index has everything."""
        return self.is_built and not self.pending


class Feeder:
    """The thread that feeds the index of one collection, started when there is something to send."""

    def __init__(self, shared: server.Server, key: int, name: str, indexes: IndexConnections) -> None:
        self._server = shared
        self._key = key
        self._name = name
        self._indexes = indexes
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_wanted = False
        self._closing = Event()

    def start(self) -> None:
        """Send what is waiting, in the background."""
        with self._lock:
            self._is_wanted = True
            if self._thread is None and not self._closing.is_set():
                self._thread = Thread(target=self._run, name="waylore-feeding", daemon=True)
                self._thread.start()

    def feed_once(self) -> FeedReport:
        """Send the oldest changes, and the next items of an index that is being built."""
        with (
            translate_errors(self._server.url),
            server.open_transaction(self._server, self._key, lock="lock_feed") as db,
        ):
            of = read_collection(db, self._key, self._name)
            if of.index is None:
                return FeedReport()
            rows, sent = outbox.read_next_changes(db, self._key), 0
            if rows:
                outbox.send_changes(db, of, of.index, self._indexes.open(of.index.url), rows)
            if not of.index.is_built:
                sent = outbox.build_next(db, of, of.index, self._indexes.open(of.index.url))
            now = read_collection(db, self._key, self._name).index
            pending, seconds = outbox.count_pending(db, self._key)
        monitoring.record_lag(self._key, pending, seconds)
        return FeedReport(len(rows) + sent, pending, seconds, now is None or now.is_built)

    def confirm(self, receipt: Receipt) -> int:
        """Remove forgotten items from the index now. Return how many it has not confirmed."""
        items = list_items(receipt)
        try:
            for first in range(0, len(items), outbox.BATCH):
                self._send(items[first : first + outbox.BATCH])
        except (WayloreError, psycopg.Error) as error:
            log.warning("forgotten items are still in the search index: %s", error)
            self.start()
            return self.count_unconfirmed(receipt)
        return 0

    def count_unconfirmed(self, receipt: Receipt) -> int:
        """Count the items of a receipt whose removal the index has not confirmed."""
        items = list_items(receipt)
        with translate_errors(self._server.url), server.open_snapshot(self._server, self._key) as db:
            return len({(kind, id_) for kind, id_, *_ in outbox.read_changes(db, self._key, items)})

    def find_remains(self, receipt: Receipt) -> Iterator[str]:
        """Yield a line for each item of a receipt that the index has, though it is not stored."""
        items = list_items(receipt)
        with translate_errors(self._server.url), server.open_snapshot(self._server, self._key) as db:
            place = read_collection(db, self._key, self._name).index
            points = outbox.list_stored(db, self._key, items) if place and items else set()
        gone = [id_ for _, id_ in items if id_ not in points]
        for id_ in self._indexes.open(place.url).find(place, gone) if place and gone else ():
            yield f"{id_} is in the search index"

    def close(self) -> None:
        """Stop after the current step. What is left in the outbox is sent when the collection is opened again."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        monitoring.record_lag(self._key, 0, 0.0)

    def _send(self, items: Sequence[tuple[int, str]]) -> None:
        """Send some items out of turn."""
        with (
            translate_errors(self._server.url),
            server.open_transaction(self._server, self._key, lock="lock_feed_soon") as db,
        ):
            of = read_collection(db, self._key, self._name)
            rows = outbox.read_changes(db, self._key, items)
            if of.index and rows:
                outbox.send_changes(db, of, of.index, self._indexes.open(of.index.url), rows)

    def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while self._is_needed():
            try:
                while not self._closing.is_set() and not self.feed_once().is_done:
                    pause = FIRST_PAUSE_SECONDS
            except (WayloreError, psycopg.Error) as error:
                log.warning("the search index was not fed, trying again in %g s: %s", pause, error)
                self._record_lag()
                self._closing.wait(pause)
                self._is_wanted = True
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _is_needed(self) -> bool:
        """Return whether the thread goes on. If it does not, the next `start` starts another one."""
        with self._lock:
            is_needed = self._is_wanted and not self._closing.is_set()
            self._is_wanted = False
            if not is_needed:
                self._thread = None
            return is_needed

    def _record_lag(self) -> None:
        """Record how far the index is behind, if PostgreSQL answers."""
        try:
            with translate_errors(self._server.url), server.open_snapshot(self._server, self._key) as db:
                monitoring.record_lag(self._key, *outbox.count_pending(db, self._key))
        except (WayloreError, psycopg.Error) as error:
            log.warning("the lag of the search index is not known: %s", error)


def list_items(receipt: Receipt) -> list[tuple[int, str]]:
    """Return the items of a receipt that an index has, by kind and id."""
    return [(outbox.PASSAGE, id_) for id_ in receipt.passages] + [(outbox.ENTITY, id_) for id_ in receipt.entities]
