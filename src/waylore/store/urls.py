"""Parse the URL of a store once, and open the engine that its scheme names.

Built-in schemes are `sqlite` (also a bare file name), `postgresql`, and `cells+` before the URL of a catalogue.
Other packages add theirs by an entry point of the group `waylore.stores`. Its name is the scheme, and its value
takes a URL and a collection and returns a Store. An engine is imported only when a URL needs it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from waylore.errors import ConfigError
from waylore.plugins import load_plugin
from waylore.store.protocol import Store

CELLS = "cells+"
SCHEMES = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
ENGINES = {
    "sqlite": "waylore.store.sqlite.store:SqliteStore",
    "postgresql": "waylore.store.postgres.store:PostgresStore",
    "cells": "waylore.cells.open:open_cells",
}
Engine = Callable[[str, str], Store]
MASK = "**********"
USER = re.compile(r"(//[^:]*:).*@", re.DOTALL)  # to the last @: a password may have others, and slashes
PARAMETER = re.compile(r"(?:^|[?&\s])([^=?&\s]+)\s*=")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The parts of a store's URL.

    `location` is the path of a file, or the whole URL for any other engine. `is_cells` is true if it is the
    location of a catalogue of cells.
    """

    scheme: str
    location: str
    is_cells: bool = False

    @property
    def is_file(self) -> bool:
        """Whether the store, or the catalogue of its cells, is a SQLite file."""
        return self.scheme == "sqlite"

    @property
    def is_server(self) -> bool:
        """Whether the store, or the catalogue of its cells, is on a server that many processes share."""
        return self.scheme == "postgresql"

    @property
    def path(self) -> Path:
        """The path of a file."""
        return Path(self.location)


def parse_url(url: str) -> StoreUrl:
    """Split the URL of a store into its parts."""
    rest = url.removeprefix(CELLS)
    is_cells = rest != url
    if "://" not in rest:
        return StoreUrl("sqlite", rest, is_cells)
    name = rest.partition("://")[0]
    scheme = SCHEMES.get(name, name)
    return StoreUrl(scheme, rest.removeprefix("sqlite:///") if scheme == "sqlite" else rest, is_cells)


def without_password(url: str) -> str:
    """Return an address with its password masked. In doubt, more of the address is masked.

    libpq's own parser does not help: it takes `u:p/a@ss@host` for the host `u` and the database `a@ss@host`.
    """
    masked = _mask_parameters(url)
    if USER.search(masked):
        return USER.sub(rf"\1{MASK}@", masked)
    found = USER.search(url)  # the last @ is in a parameter, or the password looks like one
    user = url[: found.end(1)] if found else ""
    return user + MASK if user and masked.startswith(user) else masked


def _mask_parameters(text: str) -> str:
    for found in PARAMETER.finditer(text):
        if unquote(found[1]).lower() in ("password", "sslpassword"):
            _, mark, rest = text[found.end() :].partition("&")
            return text[: found.end()] + MASK + _mask_parameters(mark + rest)
    return text


def open_store(url: str, collection: str = "default") -> Store:
    """Open a collection by the URL of its store: a file, `postgresql://…`, or `cells+` and a catalogue."""
    parsed = parse_url(url)
    return _load_engine("cells" if parsed.is_cells else parsed.scheme)(parsed.location, collection)


@contextmanager
def require_driver() -> Iterator[None]:
    """Turn a failed import of the PostgreSQL driver into an error that names the extra."""
    try:
        yield
    except ImportError as error:
        raise ConfigError("PostgreSQL needs its driver: pip install 'waylore[postgres]'") from error


def _load_engine(scheme: str) -> Engine:
    if scheme in ENGINES:
        module, _, name = ENGINES[scheme].partition(":")
        with require_driver():
            return cast(Engine, getattr(import_module(module), name))
    if plugin := load_plugin("waylore.stores", scheme):
        return cast(Engine, plugin)
    raise ConfigError(f"no store for {scheme}://…: use a file name, sqlite:///FILE or postgresql://…")
