"""The link between two servers during a move: publication and slot on the old cell, subscription on the new one.

All three have the same name, made of the collection and the old database. A link is set up in steps, so that a killed
process leaves as little as possible behind. Until all rows are copied, the slot is temporary and ends with its
connection. After that the new cell follows the old one even without the process that moves the collection.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from waylore.errors import StoreError, StoreUnavailable
from waylore.store.postgres.connections import Connection, connect, format_address, is_pooled, translate_errors
from waylore.store.postgres.scope import compute_key
from waylore.store.postgres.vector_indexes import list_own_tables
from waylore.store.sql import load_queries

SQL = load_queries("waylore.cells.replication")
CONNECT_SECONDS = 10
POLL_SECONDS = 0.02
STUCK_SECONDS = 120.0  # a move fails after this time without progress of the new cell
NO_CONNECTION = ("08000", "08001", "08004", "08006", "2F003")  # the last code: a password is required
RUN_AS_VERSION = 160000  # from this version on, a subscription needs run_as_owner


class CannotReplicate(Exception):
    """Two servers do not allow logical replication between them. The message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class ReplicationLink:
    """A connection to the old cell and one to the new cell, for one collection."""

    source: Connection
    target: Connection
    source_url: str
    target_url: str
    collection: str
    key: int
    name: str  # name of the publication, the slot and the subscription


@contextmanager
def open_link(source_url: str, target_url: str, collection: str) -> Iterator[ReplicationLink]:
    """Connect to both cells. Errors of the servers become Waylore's own."""
    key = compute_key(collection)
    with ExitStack() as stack:
        source, target = (stack.enter_context(_open_session(url, key)) for url in (source_url, target_url))
        [(database,)] = source.execute(SQL["database"]).fetchall()
        name = f"waylore_move_{key & 0xFFFFFFFFFFFFFFFF:016x}_{database}"
        try:
            yield ReplicationLink(source, target, source_url, target_url, collection, key, name)
        except psycopg.Error:
            with translate_errors(source_url if source.closed else target_url):
                raise


@contextmanager
def _open_session(url: str, key: int) -> Iterator[Connection]:
    with ExitStack() as stack:
        with translate_errors(url):
            db = stack.enter_context(closing(connect(url, CONNECT_SECONDS)))
            if not is_pooled(db):  # a pooler would apply the settings to other clients
                db.execute(SQL["settings"], {"collection": str(key)})
        yield db


def run(db: Connection, query: str, /, bound: dict[str, Any] | None = None, **parts: sql.Composable) -> Any:
    """Run a named statement with its parts, and return the cursor."""
    return db.execute(sql.SQL(SQL[query]).format(**parts), bound)


# -- may these servers do it? --------------------------------------------------------------------------


def check_servers(link: ReplicationLink) -> None:
    """Raise CannotReplicate if the old cell may not publish or the new one may not subscribe."""
    old, new = format_address(link.source_url), format_address(link.target_url)
    for db, address in ((link.source, old), (link.target, new)):
        if is_pooled(db):
            raise CannotReplicate(f"{address} is a pooler: give the cell the address of the server itself")
    level, role, _, may_publish, _ = run(link.source, "rights").fetchone()
    if level != "logical":
        raise CannotReplicate(
            f"wal_level of {old} is {level}: run ALTER SYSTEM SET wal_level = 'logical' there, and restart the server"
        )
    if not may_publish:
        raise CannotReplicate(
            f"{role} may not publish at {old}: use the owner of the tables, with REPLICATION and CREATE on the database"
        )
    _, role, _, _, may_subscribe = run(link.target, "rights").fetchone()
    if not may_subscribe:
        raise CannotReplicate(
            f"{role} may not subscribe at {new}: use a superuser, or the owner of the tables with BYPASSRLS, "
            "pg_create_subscription and CREATE on the database"
        )


# -- setting up ----------------------------------------------------------------------------------------


def list_columns(db: Connection, key: int) -> dict[str, list[str]]:
    """Return the columns of each table that moves with a collection."""
    return dict(db.execute(SQL["columns"], {"own": list(list_own_tables(key))}).fetchall())


def join_names(names: list[str]) -> sql.Composed:
    """Return names as a list of SQL."""
    return sql.SQL(", ").join(map(sql.Identifier, names))


def create_publication(link: ReplicationLink) -> None:
    """Publish the rows of the collection in the old cell. From then on they stay in their tables."""
    with link.source.transaction():
        link.source.execute(SQL["lock"], {"collection": link.key})
        tables = [
            sql.SQL(SQL["published_table"]).format(
                table=sql.Identifier(table), columns=join_names(columns), collection=sql.Literal(link.key)
            )
            for table, columns in list_columns(link.source, link.key).items()
        ]
        run(link.source, "create_publication", name=sql.Identifier(link.name), tables=sql.SQL(", ").join(tables))


def create_subscription(link: ReplicationLink) -> None:
    """Let the new cell subscribe, but not yet follow. Raise CannotReplicate if it cannot reach the old cell."""
    _, _, is_superuser, _, _ = run(link.target, "rights").fetchone()
    more = ", run_as_owner = true" if link.target.info.server_version >= RUN_AS_VERSION else ""
    connection = make_conninfo(link.source_url, connect_timeout=CONNECT_SECONDS, application_name=link.name)
    try:
        with link.target.transaction():
            if is_superuser:
                run(link.target, "keep_quiet")
            run(
                link.target,
                "create_subscription",
                name=sql.Identifier(link.name),
                connection=sql.Literal(connection),
                slot=sql.Literal(link.name),
                more=sql.SQL(more),
            )
    except psycopg.Error as error:
        if error.sqlstate not in NO_CONNECTION:
            raise
        raise CannotReplicate(
            f"{format_address(link.target_url)} cannot connect to {format_address(link.source_url)} "
            f"({error.diag.message_primary}): the address of a cell must hold for the servers of the other cells too, "
            "and needs a password if the role there is no superuser"
        ) from None


@contextmanager
def open_snapshot(link: ReplicationLink) -> Iterator[str]:
    """Create a slot for the block, and read the old cell in a snapshot of that moment. Yield the name of the slot.

    The slot ends with its connection, also if this process is killed.
    """
    name = f"{link.name}_copy"
    replicating = make_conninfo(link.source_url, replication="database")
    with closing(connect(replicating, CONNECT_SECONDS)) as slot:
        _, _, snapshot, _ = run(slot, "create_temporary_slot", name=sql.Identifier(name)).fetchone()
        run(link.source, "begin_snapshot", snapshot=sql.Literal(snapshot))
        try:
            yield name
        finally:
            link.source.execute(SQL["rollback"])


def start_following(link: ReplicationLink, temporary: str) -> None:
    """Make the slot permanent, and let the new cell apply all later writes."""
    link.source.execute(SQL["keep_slot"], {"temporary": temporary, "name": link.name})
    run(link.target, "enable_subscription", name=sql.Identifier(link.name))


# -- following -----------------------------------------------------------------------------------------


def is_following(link: ReplicationLink) -> bool:
    """Return whether the new cell has all rows and follows, or can follow: only then a permanent slot exists."""
    slot = link.source.execute(SQL["slot"], {"name": link.name, "position": "0/0"}).fetchone()
    subscription = link.target.execute(SQL["subscription"], {"name": link.name}).fetchone()
    if slot is None or subscription is None:
        return False
    if subscription == (False,):
        run(link.target, "enable_subscription", name=sql.Identifier(link.name))
    return True


def wait_for_new_cell(link: ReplicationLink, until: float = float("inf")) -> bool:
    """Wait until the new cell has all acknowledged writes. Return False if it takes too long."""
    [(position,)] = link.source.execute(SQL["emit_position"]).fetchall()
    seen, since = "", time.monotonic()
    while time.time() < until:
        has_all, at = _read_slot(link, position)
        if has_all:
            return True
        if at != seen:
            seen, since = at, time.monotonic()
        elif time.monotonic() - since > STUCK_SECONDS:
            raise StoreUnavailable(
                f"{format_address(link.target_url)} does not follow {format_address(link.source_url)}; "
                "read the log of both servers, and run the move again"
            )
        time.sleep(POLL_SECONDS)
    return False


def _read_slot(link: ReplicationLink, position: str) -> tuple[bool, str]:
    """Return whether the new cell is past a position, and its own position."""
    slot = link.source.execute(SQL["slot"], {"name": link.name, "position": position}).fetchone()
    if slot is None:
        raise StoreUnavailable(f"the slot {link.name} of the move is gone; run the move again, it starts anew")
    if link.target.execute(SQL["subscription"], {"name": link.name}).fetchone() == (False,):
        drop_link(link)
        raise StoreError(
            f"{format_address(link.target_url)} could not apply a change; its log says which. "
            "Run the move again, it starts anew"
        )
    has_all, at = slot
    return has_all, at


# -- taking down ---------------------------------------------------------------------------------------


def leave_old_cell(link: ReplicationLink) -> None:
    """End the subscription, and raise the version of the new cell so that readers see the change."""
    with link.target.transaction():
        _drop_subscription(link)
        link.target.execute(SQL["grow_version"], {"collection": link.key})
    drop_link(link)


def drop_link(link: ReplicationLink) -> None:
    """Remove publication, slot and subscription from both servers. Missing ones are skipped."""
    _drop_subscription(link)
    _drop_slot(link)
    run(link.source, "drop_publication", name=sql.Identifier(link.name))


def _drop_subscription(link: ReplicationLink) -> None:
    if link.target.execute(SQL["subscription"], {"name": link.name}).fetchone():
        run(link.target, "drop_subscription", name=sql.Identifier(link.name))


def _drop_slot(link: ReplicationLink) -> None:
    """Drop the slot when its sender has ended."""
    deadline = time.monotonic() + STUCK_SECONDS
    while True:
        try:
            link.source.execute(SQL["drop_slot"], {"name": link.name})
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return
