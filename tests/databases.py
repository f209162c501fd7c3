"""One PostgreSQL server and one Qdrant for all tests of a process: started by the first test, stopped with it."""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

import psycopg
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, start_server
from tools.qdrant.server import QdrantServer, start_qdrant

from waylore.store.protocol import Store

if TYPE_CHECKING:  # pytest rewrites its assertions when a test imports it first
    from waylore.testing import OpenStore

_numbers = count(1)
_resources = ExitStack()
atexit.register(_resources.close)


@cache
def start_shared_server() -> Server:
    """Start the server once, and return it."""
    return _resources.enter_context(start_server(find_plain_build()))


@cache
def start_shared_qdrant() -> QdrantServer:
    """Start Qdrant once, and return it. Do not stop it."""
    return _resources.enter_context(start_qdrant())


def get_server_url() -> str:
    """Return the address of the server, for its superuser."""
    return start_shared_server().url


def create_database() -> str:
    """Create an empty database and return its address. It takes half a second; a new collection is faster."""
    name = f"waylore_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(get_server_url(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return start_shared_server().build_url(name)


@contextmanager
def open_collections(open_named: Callable[[str], Store]) -> Iterator["OpenStore"]:
    """Open collections for a conformance suite, each with a name that no other test uses, and close them."""
    names: dict[str, str] = {}
    with ExitStack() as opened:

        def open_store(collection: str) -> Store:
            name = names.setdefault(collection, make_name(collection))
            return opened.enter_context(closing(open_named(name)))

        yield open_store


def make_name(collection: str) -> str:
    """Return a collection name that no other test uses."""
    return f"{collection} {os.getpid()}-{next(_numbers)}"
