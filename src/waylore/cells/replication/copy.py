"""Copy a collection to another server by logical replication, the alternative to `cells.sync` for a move."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from waylore.cells.replication import link as links
from waylore.cells.replication import rows
from waylore.cells.replication.link import CannotReplicate, ReplicationLink, open_link

MIN_SECONDS_LEFT = 0.25  # share of the stop that is reserved to end the subscription


class ReplicatedCopy:
    """Makes the new cell follow the old one. It continues the link of a killed process."""

    def __init__(self, link: ReplicationLink) -> None:
        self._link = link
        self._is_set_up = False

    def find_obstacle(self) -> str:
        """Set up the link unless the new cell follows already. Return the reason if the servers do not allow it."""
        try:
            if not links.is_following(self._link):
                self._set_up()
        except CannotReplicate as reason:
            links.drop_link(self._link)
            return str(reason)
        return ""

    def copy(self) -> None:
        """Copy all rows unless the new cell follows already, and wait until it has nearly all changes."""
        if not links.is_following(self._link):
            if not self._is_set_up:
                self._set_up()
            with links.open_snapshot(self._link) as slot:
                rows.copy_rows(self._link)
                links.start_following(self._link, slot)
            self._is_set_up = False
        rows.build_vector_indexes(self._link.target_url, self._link.collection)
        links.wait_for_new_cell(self._link)

    def finish(self, until: float) -> bool:
        """Wait for the last changes and end the replication. Return False if that would take longer than `until`."""
        left = until - time.time()
        if not links.wait_for_new_cell(self._link, until - MIN_SECONDS_LEFT * left):
            return False
        links.leave_old_cell(self._link)
        return True

    def read_version(self) -> int:
        """Return the version of the old cell's collection."""
        [(version,)] = self._link.source.execute(links.SQL["version"], {"collection": self._link.key}).fetchall()
        return int(version)

    def _set_up(self) -> None:
        links.drop_link(self._link)
        links.check_servers(self._link)
        rows.create_trigger(self._link.target)
        links.create_publication(self._link)
        rows.create_own_tables(self._link)
        links.create_subscription(self._link)
        self._is_set_up = True


@contextmanager
def open_replicated_copy(source_url: str, target_url: str, collection: str) -> Iterator[ReplicatedCopy]:
    """Connect to both servers for a copy by replication."""
    with open_link(source_url, target_url, collection) as link:
        yield ReplicatedCopy(link)


def remove_link(source_url: str, target_url: str, collection: str) -> None:
    """Remove the link of an unfinished move from two servers."""
    with open_link(source_url, target_url, collection) as link:
        links.drop_link(link)
