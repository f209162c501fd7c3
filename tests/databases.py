"""One real PostgreSQL server for tests that take an address: started by the first, stopped with the process."""

import atexit
import os
from contextlib import ExitStack
from functools import cache
from itertools import count

import psycopg
from tools.postgres import Server, plain
from tools.postgres import server as started

_numbers = count(1)
_kept = ExitStack()
atexit.register(_kept.close)


@cache
def _running() -> Server:
    return _kept.enter_context(started(plain()))


def server() -> str:
    """The address of the server, as its superuser."""
    return _running().url


def database() -> str:
    """The address of an empty database of its own: half a second, so only for what a collection cannot show."""
    name = f"weft_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return _running().url_of(name)


def fresh_name(collection: str) -> str:
    """A collection that no other test has."""
    return f"{collection} {os.getpid()}-{next(_numbers)}"
