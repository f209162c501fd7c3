"""Check that invalid calls of `Waylore` have the same result on every store: the engine refuses them.

So a store need not check texts, limits and names. Its methods are never called with invalid values.
"""

from collections.abc import Callable

import pytest

from waylore.engine.waylore import Waylore
from waylore.errors import ArgumentError
from waylore.store.protocol import Store
from waylore.testing.world import EMBEDDER, StoreFixtures


class CallTests(StoreFixtures):
    """Invalid calls are refused, with the same error on every store, and write nothing."""

    def test_text_with_nul_is_refused(self, world: Store) -> None:
        """PostgreSQL stores no NUL character."""
        memory, version = Waylore(world, EMBEDDER), world.version()
        calls: dict[str, Callable[[str], object]]
        calls = {"text": memory.add, "query": memory.search, "name": memory.merges}
        for name, call in calls.items():
            with pytest.raises(ArgumentError, match=rf"{name} must not contain NUL"):
                call("a\x00b")
        assert world.version() == version

    def test_negative_limit_is_refused(self, world: Store) -> None:
        """Engines differ: all rows, none, or an error."""
        memory = Waylore(world, EMBEDDER)
        for list_rows in (memory.documents, memory.users, memory.list_entities, memory.audit):
            with pytest.raises(ArgumentError, match="limit must be"):
                list_rows(limit=-1)
