"""The tables can be distributed by collection, as Citus requires: it is in every unique key and every query."""

import re
from collections.abc import Iterator

import psycopg
import pytest

from databases import create_database
from waylore.store.postgres.store import PostgresStore
from waylore.store.sql import load_queries

SQL = load_queries("waylore.store.postgres")
UNIQUE = """
    SELECT t.relname, i.indexrelid::regclass::text, array_agg(a.attname::text)
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY(i.indkey)
    WHERE t.relnamespace = 'waylore'::regnamespace AND t.relkind = 'r' AND i.indisunique GROUP BY 1, 2
"""
COLUMNS = """
    SELECT t.relname, bool_or(a.attname = 'collection' AND a.attnotnull) FROM pg_class t
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
    WHERE t.relnamespace = 'waylore'::regnamespace AND t.relkind = 'r' GROUP BY 1
"""
LOCAL = {"migrations"}  # the only table without a collection


@pytest.fixture(scope="module")
def url() -> str:
    made = create_database()
    PostgresStore(made).close()
    return made


@pytest.fixture(scope="module")
def tables(url: str) -> set[str]:
    with psycopg.connect(url) as db:
        return {table for (table,) in db.execute(f"SELECT relname FROM ({COLUMNS}) t") if table not in LOCAL}


def test_every_unique_key_contains_collection(url: str) -> None:
    with psycopg.connect(url) as db:
        without = [table for table, has in db.execute(COLUMNS) if not has]
        keys = [(table, key) for table, key, columns in db.execute(UNIQUE) if "collection" not in columns]
    assert set(without) == LOCAL
    assert {table for table, _ in keys} <= LOCAL


def test_no_table_has_foreign_keys(url: str) -> None:
    with psycopg.connect(url) as db:
        assert not list(
            db.execute("SELECT 1 FROM pg_constraint WHERE contype = 'f' AND connamespace = 'waylore'::regnamespace")
        )


@pytest.mark.parametrize("query", sorted(SQL))
def test_every_query_names_collection_of_every_table(query: str, tables: set[str]) -> None:
    for table, alias, text in _find_tables(SQL[query], tables):
        column = rf"\b{alias}\.collection" if alias else r"(?<![.\w])collection"
        assert re.search(rf"{column} = ", text), f"{table} {alias} is read without its collection"


def test_scan_detects_query_without_collection(tables: set[str]) -> None:
    [(_, alias, text)] = _find_tables("SELECT 1 FROM packs f WHERE f.passage = %(id)s", tables)
    assert alias == "f"
    assert "f.collection" not in text


def _find_tables(query: str, tables: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the tables that a statement reads or changes, with their aliases. Inserts name it in their key."""
    text = re.sub(r"--[^\n]*", "", query)
    names = "|".join(sorted(tables, key=len, reverse=True))
    keywords = "where|set|cross|left|join|on|order|group|limit|union|using|for"
    place = rf"\b(?:from|join|update)\s+({names})\b(?:\s+(?!(?:{keywords})\b)([a-z]\w*))?"
    for found in re.finditer(place, text, re.IGNORECASE):
        yield found.group(1), found.group(2) or "", text
