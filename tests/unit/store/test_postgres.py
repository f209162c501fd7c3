"""What of the PostgreSQL store needs no server: keys that must never change, words, and errors in our words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import Error, OperationalError, errors
from psycopg_pool import PoolTimeout

from waylore.errors import Forbidden, QueryError, StoreError, StoreUnavailable, WayloreError
from waylore.store.postgres.connections import place, wrapped_errors
from waylore.store.postgres.scope import any_of, key_of
from waylore.store.postgres.vector_indexes import wanted
from waylore.types.identity import file_of
from waylore.types.results import Statistics

KEY_OF_DEFAULT = 6970142578434299259
URL = "postgresql://me:hunter2@db.example:6543/waylore?sslmode=require"


def test_the_key_of_a_collection_never_changes() -> None:
    assert key_of("default") == KEY_OF_DEFAULT
    assert key_of("") != key_of(" ")


@given(st.text())
def test_a_key_fits_into_eight_bytes(name: str) -> None:
    assert -(2**63) <= key_of(name) < 2**63


def test_no_words_are_satisfied_by_nothing() -> None:
    assert any_of(["1t2", "1a3"]) == "('1t2' | '1a3')"
    assert any_of([]) == "('§')"


def test_the_row_of_a_file_came_from_the_file() -> None:
    assert [file_of(uri) for uri in ("a.csv#row=1", "a.md", "")] == ["a.csv", "a.md", ""]


@pytest.mark.parametrize(
    ("raised", "told", "says"),
    [
        (PoolTimeout("after 3 s"), StoreUnavailable, "check the address"),
        (errors.DiskFull("no space left on device"), StoreUnavailable, "nothing was written"),
        (errors.SerializationFailure("concurrent update"), StoreUnavailable, "try again"),
        (errors.DeadlockDetected("deadlock"), StoreUnavailable, "try again"),
        (errors.QueryCanceled("statement timeout"), StoreUnavailable, "statement_timeout"),
        (errors.ReadOnlySqlTransaction("read only"), StoreUnavailable, "connect to the primary"),
        (errors.AdminShutdown("terminating connection"), StoreUnavailable, "may be written again"),
        (OperationalError("connection refused"), StoreUnavailable, "check the address"),
        (errors.InsufficientPrivilege("permission denied"), Forbidden, "waylore_app"),
        (errors.UntranslatableCharacter("0x00"), QueryError, "replace"),
        (errors.UndefinedTable("no table"), StoreError, "no table"),
    ],
)
def test_errors_say_what_to_do_and_no_password(raised: Error, told: type[WayloreError], says: str) -> None:
    with pytest.raises(told, match=says) as caught, wrapped_errors(URL):
        raise raised
    assert caught.value.__cause__ is raised
    assert "hunter2" not in str(caught.value)


def test_an_address_is_told_without_its_password() -> None:
    assert place(URL) == "db.example:6543/waylore"
    assert place("no address") == "the PostgreSQL server"


def test_an_index_is_wanted_where_there_is_much_and_vectors_are_not_too_long() -> None:
    many = 1_000_000
    assert wanted(1, Statistics(1, many, 1, 1, 1, "m", 384, 1)) == {
        "hnsw_0000000000000001_passage_384": "passage_vectors"
    }
    assert len(wanted(-1, Statistics(1, many, many, 1, 1, "m", 8, 1))) == 2
    assert wanted(1, Statistics(1, many, many, 1, 1, "m", 4_001, 1)) == {}
    assert wanted(1, Statistics(1, many, many, 1, 1, None, None, 1)) == {}
