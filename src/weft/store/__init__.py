"""Where everything is kept: the Store protocol, and its engines. The only place that knows SQL."""

from weft.errors import ConfigError
from weft.store.base import Store
from weft.store.sqlite import SqliteStore

__all__ = ["SqliteStore", "Store", "open_store"]


def open_store(url: str, collection: str = "default") -> Store:
    """The store behind an address: a file name, or `sqlite:///` and a file name."""
    if "://" not in url:
        return SqliteStore(url, collection)
    if url.startswith("sqlite:///"):
        return SqliteStore(url.removeprefix("sqlite:///"), collection)
    raise ConfigError(f"no store for {url.split('://', maxsplit=1)[0]}://…: give a file name or sqlite:///FILE")
