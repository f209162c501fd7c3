"""Read the wal_level of a server, and the slots that moves have left on it."""

from contextlib import closing
from dataclasses import dataclass

from waylore.cells.replication.link import CONNECT_SECONDS, SQL
from waylore.store.postgres.connections import connect, translate_errors
from waylore.store.postgres.scope import compute_key


@dataclass(frozen=True, slots=True)
class LeftSlot:
    """A replication slot of a move, and the bytes of the server's log that it retains."""

    name: str
    bytes: int

    def is_of(self, collection: str) -> bool:
        """Return whether the slot is of a move of this collection."""
        return f"_{compute_key(collection) & 0xFFFFFFFFFFFFFFFF:016x}_" in self.name


def inspect_server(url: str) -> tuple[str, list[LeftSlot]]:
    """Return the wal_level of a server, and the slots of moves in this database."""
    with translate_errors(url), closing(connect(url, CONNECT_SECONDS)) as db:
        [(level,)] = db.execute(SQL["wal_level"]).fetchall()
        return level, [LeftSlot(*row) for row in db.execute(SQL["left_slots"]).fetchall()]
