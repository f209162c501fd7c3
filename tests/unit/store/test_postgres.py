"""The parts of the PostgreSQL store that need no server: keys, words, and translated errors."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import Error, OperationalError, errors
from psycopg_pool import PoolTimeout

from waylore.errors import ArgumentError, Forbidden, StoreError, StoreUnavailable, WayloreError
from waylore.store.postgres.connections import format_address, may_reach_replica, translate_errors
from waylore.store.postgres.scope import compute_key, match_any
from waylore.store.postgres.steps import SQL, find_text, name_vector_tables
from waylore.store.postgres.vector_indexes import list_wanted
from waylore.store.urls import without_password
from waylore.types.identity import get_file
from waylore.types.results import Statistics

KEY_OF_DEFAULT = 6970142578434299259
URL = "postgresql://me:hunter2@db.example:6543/waylore?sslmode=require"


def test_key_of_collection_never_changes() -> None:
    assert compute_key("default") == KEY_OF_DEFAULT
    assert compute_key("") != compute_key(" ")


@given(st.text())
def test_key_fits_into_eight_bytes(name: str) -> None:
    assert -(2**63) <= compute_key(name) < 2**63


def test_match_any_without_words_matches_nothing() -> None:
    assert match_any(["1t2", "1a3"]) == "('1t2' | '1a3')"
    assert match_any([]) == "('§')"


def test_get_file_strips_place_in_file() -> None:
    assert [get_file(uri) for uri in ("a.csv#row=1", "a.md", "")] == ["a.csv", "a.md", ""]


@pytest.mark.parametrize(
    ("raised", "expected", "remedy"),
    [
        (PoolTimeout("after 3 s"), StoreUnavailable, "check the address"),
        (errors.DiskFull("no space left on device"), StoreUnavailable, "nothing was written"),
        (errors.SerializationFailure("concurrent update"), StoreUnavailable, "try again"),
        (errors.DeadlockDetected("deadlock"), StoreUnavailable, "try again"),
        (errors.QueryCanceled("statement timeout"), StoreUnavailable, "statement_timeout"),
        (errors.ReadOnlySqlTransaction("read only"), StoreUnavailable, "connect to the primary"),
        (errors.AdminShutdown("terminating connection"), StoreUnavailable, "can be repeated"),
        (OperationalError("connection refused"), StoreUnavailable, "check the address"),
        (errors.InsufficientPrivilege("permission denied"), Forbidden, "waylore_app"),
        (errors.UntranslatableCharacter("0x00"), ArgumentError, "replace"),
        (errors.UndefinedTable("no table"), StoreError, "no table"),
    ],
)
def test_errors_name_remedy_and_hide_password(raised: Error, expected: type[WayloreError], remedy: str) -> None:
    with pytest.raises(expected, match=remedy) as caught, translate_errors(URL):
        raise raised
    assert caught.value.__cause__ is raised
    assert "hunter2" not in str(caught.value)


def test_format_address_hides_password() -> None:
    assert format_address(URL) == "db.example:6543/waylore"
    assert format_address("no address") == "the PostgreSQL server"


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [
        ("one,two", "one:5432,two:5432"),
        ("one:1,two:2", "one:1,two:2"),
        ("one,two:2", "one:5432,two:2"),
        ("[::1]:1,two", "::1:1,two:5432"),
    ],
)
def test_address_may_have_several_servers(hosts: str, shown: str) -> None:
    url = f"postgresql://me:hunter2@{hosts}/waylore"
    assert format_address(url) == f"{shown}/waylore"
    assert may_reach_replica(url)
    assert not may_reach_replica(f"{url}?target_session_attrs=read-write")
    assert not may_reach_replica(URL)
    assert without_password(f"{url}?target_session_attrs=read-write").count("hunter2") == 0


def test_only_large_collections_of_indexable_vectors_want_index() -> None:
    many = 1_000_000
    assert list_wanted(Statistics(1, many, 1, 1, 1, "m", 384, 1)) == {"passage_384": "passage_vectors"}
    assert len(list_wanted(Statistics(1, many, many, 1, 1, "m", 8, 1))) == 2
    assert list_wanted(Statistics(1, many, many, 1, 1, "m", 4_001, 1)) == {}
    assert list_wanted(Statistics(1, many, many, 1, 1, None, None, 1)) == {}


def test_statements_name_only_tables_of_their_collection() -> None:
    """No statement names a table of vectors without ONLY, or it would be planned for the tables of all collections."""
    for query, text in SQL.items():
        shared, own = name_vector_tables(query, ""), name_vector_tables(query, "ab")
        tables = re.findall(r"(?:FROM|JOIN|UPDATE)\s+(?:ONLY )?(?:passage|entity)_vectors\b", text)
        assert len(re.findall(r"FROM ONLY (?:passage|entity)_vectors\b", shared)) == len(tables)
        assert not re.search(r"\b(?:FROM|INTO|JOIN|UPDATE|ONLY)\s+(?:passage|entity)_vectors\b", own)
    assert find_text("vectors_of_passages", {"own_vectors": "ab"}).startswith(
        "SELECT v.id, v.vector FROM passage_vectors_ab v"
    )
    assert find_text("vectors_of_passages", {}) == SQL["vectors_of_passages"]
