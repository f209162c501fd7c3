"""Where everything is kept: the Store protocol, and its engines. The only place that knows SQL."""

from weft.errors import ConfigError
from weft.store.base import Store
from weft.store.sqlite import SqliteStore

__all__ = ["SqliteStore", "Store", "open_store"]


def open_store(url: str, collection: str = "default") -> Store:
    """The store behind an address: a file name, `sqlite:///` and a file name, or `postgresql://…`."""
    if "://" not in url:
        return SqliteStore(url, collection)
    if url.startswith("sqlite:///"):
        return SqliteStore(url.removeprefix("sqlite:///"), collection)
    if url.startswith(("postgresql://", "postgres://")):
        return _postgres(url, collection)
    raise ConfigError(
        f"no store for {url.split('://', maxsplit=1)[0]}://…: give a file name, sqlite:///FILE or postgresql://…"
    )


def _postgres(url: str, collection: str) -> Store:
    try:
        from weft.store.postgres import PostgresStore  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("PostgreSQL needs its driver: pip install 'weft[postgres]'") from error
    return PostgresStore(url, collection)
