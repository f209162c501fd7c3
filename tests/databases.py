"""One real PostgreSQL server for all tests of a process: started by the first, stopped with the process."""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

import psycopg
from tools.postgres import Server, plain
from tools.postgres import server as started

from waylore.store.protocol import Store

if TYPE_CHECKING:  # its assertions are rewritten when a test imports it first
    from waylore.testing.suite import OpenStore

_numbers = count(1)
_kept = ExitStack()
atexit.register(_kept.close)


@cache
def running() -> Server:
    """The server itself."""
    return _kept.enter_context(started(plain()))


def server() -> str:
    """The address of the server, as its superuser."""
    return running().url


def database() -> str:
    """The address of an empty database of its own: half a second, so only for what a collection cannot show."""
    name = f"waylore_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return running().url_of(name)


@contextmanager
def opening(open_named: Callable[[str], Store]) -> Iterator["OpenStore"]:
    """Opens collections for a conformance suite, each under a name that no other test has, and closes them."""
    names: dict[str, str] = {}
    with ExitStack() as opened:

        def open_store(collection: str) -> Store:
            name = names.setdefault(collection, fresh_name(collection))
            return opened.enter_context(closing(open_named(name)))

        yield open_store


def fresh_name(collection: str) -> str:
    """A collection that no other test has."""
    return f"{collection} {os.getpid()}-{next(_numbers)}"
