"""The conformance suite on PostgreSQL, and what is PostgreSQL's own."""

from collections.abc import Iterator

import pytest

from servers import fresh_name, server
from weft.store.postgres import PostgresStore
from weft.testing import OpenStore, StoreConformance


class TestPostgres(StoreConformance):
    @pytest.fixture
    def open_store(self) -> Iterator[OpenStore]:
        names: dict[str, str] = {}
        opened: list[PostgresStore] = []

        def open_store(collection: str) -> PostgresStore:
            names.setdefault(collection, fresh_name(collection))
            opened.append(PostgresStore(server(), names[collection]))
            return opened[-1]

        yield open_store
        for store in opened:
            store.close()
