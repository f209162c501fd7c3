"""Where everything is kept: the Store protocol, and its engines. The only place that knows SQL."""

from pathlib import Path

from weft.errors import ConfigError, StoreUnavailable
from weft.store.base import Store
from weft.store.catalogue import Catalogue
from weft.store.catalogue_sqlite import SqliteCatalogue
from weft.store.federated import open_federated
from weft.store.federated_members import Federation
from weft.store.sqlite import SqliteStore

__all__ = ["Federation", "SqliteStore", "Store", "open_catalogue", "open_cell", "open_federated", "open_store"]
CELLS = "cells+"


def open_store(url: str, collection: str = "default") -> Store:
    """The store behind an address: a file, with or without `sqlite:///`, or `cells+` and a catalogue's."""
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
    raise ConfigError(f"no store for {url.split('://', maxsplit=1)[0]}://…: give a file name or sqlite:///FILE")


def open_catalogue(url: str) -> Catalogue:
    """The catalogue of cells behind an address: a file name, with or without `sqlite:///` or `cells+sqlite:///`."""
    path = url.removeprefix(CELLS).removeprefix("sqlite:///")
    if "://" in path:
        raise ConfigError(f"no catalogue for {path.split('://', maxsplit=1)[0]}://…: give sqlite:///FILE")
    return SqliteCatalogue(path)


def open_cell(url: str, collection: str) -> Store:
    """A collection in a cell that is there: a file that is gone must not be taken for an empty one."""
    path = url.removeprefix("sqlite:///")
    if "://" not in path and not Path(path).exists():
        raise StoreUnavailable(f"{path} is gone: bring it back, or take it from a backup")
    return open_store(url, collection)
