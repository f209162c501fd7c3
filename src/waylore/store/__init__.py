"""Where everything is kept: the Store protocol, and its engines. The only place that knows SQL."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from waylore.errors import ConfigError, StoreUnavailable
from waylore.store.base import Store
from waylore.store.catalogue import Catalogue
from waylore.store.catalogue_sqlite import SqliteCatalogue
from waylore.store.federated import open_federated
from waylore.store.federated_members import Federation
from waylore.store.registry import Registry
from waylore.store.registry_sqlite import open_sqlite
from waylore.store.sqlite import SqliteStore

__all__ = [
    "Federation",
    "SqliteStore",
    "Store",
    "is_on_server",
    "open_catalogue",
    "open_cell",
    "open_federated",
    "open_registry",
    "open_store",
    "pools",
]
CELLS = "cells+"
POSTGRES = ("postgresql://", "postgres://")


def open_store(url: str, collection: str = "default") -> Store:
    """The store behind an address: a file name, `sqlite:///FILE`, `postgresql://…`, `cells+` a catalogue."""
    if url.startswith(CELLS):
        federation = Federation(open_catalogue(url), open_cell)
        try:
            return open_federated(federation, collection, closing=federation.close)
        except BaseException:
            federation.close()
            raise
    if "://" not in url:
        return SqliteStore(url, collection)
    if url.startswith("sqlite:///"):
        return SqliteStore(url.removeprefix("sqlite:///"), collection)
    if url.startswith(POSTGRES):
        with _needing_driver():
            from waylore.store.postgres import PostgresStore  # noqa: PLC0415
        return PostgresStore(url, collection)
    raise ConfigError(
        f"no store for {url.split('://', maxsplit=1)[0]}://…: give a file name, sqlite:///FILE or postgresql://…"
    )


def is_on_server(url: str) -> bool:
    """Whether what is kept there, or the catalogue of its cells, is on a server that many processes share."""
    return url.removeprefix(CELLS).startswith(POSTGRES)


@contextmanager
def _needing_driver() -> Iterator[None]:
    """What is imported for PostgreSQL alone."""
    try:
        yield
    except ImportError as error:
        raise ConfigError("PostgreSQL needs its driver: pip install 'waylore[postgres]'") from error


def open_catalogue(url: str) -> Catalogue:
    """The catalogue of cells behind an address of a file or a server, with or without `cells+`."""
    path = url.removeprefix(CELLS).removeprefix("sqlite:///")
    if path.startswith(POSTGRES):
        with _needing_driver():
            from waylore.store.catalogue_postgres import PostgresCatalogue  # noqa: PLC0415
        return PostgresCatalogue(path)
    if "://" in path:
        raise ConfigError(
            f"no catalogue for {path.split('://', maxsplit=1)[0]}://…: give sqlite:///FILE or postgresql://…"
        )
    return SqliteCatalogue(path)


def open_cell(url: str, collection: str) -> Store:
    """A collection in a cell that is there: a file that is gone must not be taken for an empty one."""
    path = url.removeprefix("sqlite:///")
    if "://" not in path and not Path(path).exists():
        raise StoreUnavailable(f"{path} is gone: bring it back, or take it from a backup")
    return open_store(url, collection)


def open_registry(url: str) -> Registry:
    """What a service keeps beside a store: in its file or database, or in the catalogue's of its cells."""
    path = url.removeprefix(CELLS).removeprefix("sqlite:///")
    if path.startswith(POSTGRES):
        with _needing_driver():
            from waylore.store.registry_postgres import open_postgres  # noqa: PLC0415
        return open_postgres(path)
    if "://" in path:
        raise ConfigError(
            f"no registry for {path.split('://', maxsplit=1)[0]}://…: give a file name or postgresql://…"
        )
    return open_sqlite(path)


def pools() -> Mapping[str, int]:
    """What the connections to servers of this process are at, added up; nothing, if no server was opened."""
    server = sys.modules.get("waylore.store.postgres_server")  # whoever opened one has its driver
    return server.figures() if server else {}
