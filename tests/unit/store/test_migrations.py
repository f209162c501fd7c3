"""Migrations run once, in order, each recorded when it is done; a newer schema is left alone."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import SchemaOutdated
from waylore.store.sql import migrate

THREE = [(1, "first", "one;"), (2, "second", "two;"), (3, "third", "three;")]


@dataclass
class Database:
    """Remembers what was done to it, in order."""

    done: list[str] = field(default_factory=list)
    applied: set[int] = field(default_factory=set)
    refuses: str = ""

    def run(self, sql: str) -> None:
        if sql == self.refuses:
            raise RuntimeError(sql)
        self.done.append(sql)

    def record(self, number: int, name: str) -> None:
        self.done.append(name)
        self.applied.add(number)

    def migrate(self, migrations: list[tuple[int, str, str]]) -> int:
        return migrate(migrations, applied=set(self.applied), run=self.run, record=self.record)


def test_each_is_run_and_then_recorded_in_order() -> None:
    database = Database()
    assert database.migrate(THREE) == 3
    assert database.done == ["one;", "first", "two;", "second", "three;", "third"]


@given(st.sets(st.integers(1, 3)))
def test_only_what_is_missing_is_applied_and_only_once(applied: set[int]) -> None:
    database = Database(applied=set(applied))
    assert database.migrate(THREE) == 3 - len(applied)
    assert database.done == [step for n, name, sql in THREE if n not in applied for step in (sql, name)]
    assert database.migrate(THREE) == 0
    assert database.applied == {1, 2, 3}


def test_a_newer_schema_is_left_alone_and_the_remedy_named() -> None:
    database = Database(applied={1, 2, 3, 4})
    with pytest.raises(SchemaOutdated, match=r"schema 4, .* knows 3: upgrade Waylore"):
        database.migrate(THREE)
    assert database.done == []


def test_what_fails_is_not_recorded() -> None:
    database = Database(refuses="two;")
    with pytest.raises(RuntimeError, match="two"):
        database.migrate(THREE)
    assert database.applied == {1}
