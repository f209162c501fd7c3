"""The conformance suite on SQLite, and what is SQLite's own."""

from pathlib import Path

import pytest

from weft.store.sqlite import SqliteStore
from weft.testing import OpenStore, StoreConformance


class TestSqlite(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda collection: SqliteStore(tmp_path / "test.weft", collection)
