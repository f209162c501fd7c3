"""A multiplied database is like one that Waylore wrote: complete, with right counters, and searchable."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from benchmarks.corpus import Corpus, make_name
from benchmarks.scale.multiply import build_database, name_tenant
from benchmarks.scale.sample import Sample
from tools.postgres.server import Server

from waylore.store.postgres.store import PostgresStore
from waylore.types.author import OWNER
from waylore.types.results import Receipt
from waylore.types.search import Filter

PAGES, COPIES, TENANTS = 30, 12, 2
SAMPLE = Sample(list(Corpus().make_documents(0, PAGES)), "synthetic", COPIES, TENANTS)


@pytest.fixture(scope="module")
def url(postgres: Server) -> Iterator[str]:
    with postgres.create_database() as made:
        build_database(made, SAMPLE, lambda _: None)
        yield made


@pytest.fixture(params=range(TENANTS))
def store(url: str, request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url, name_tenant(request.param))) as opened:
        yield opened


def test_rows_have_owners_and_counters_are_right(store: PostgresStore, url: str) -> None:
    assert store.find_remains(Receipt()) == ()
    statistics = store.statistics()
    with psycopg.connect(url) as db:
        for table in ("documents", "passages", "entities", "mentions"):
            rows = f"SELECT count(*) FROM waylore.{table} WHERE collection = %s"
            assert db.execute(rows, [store._key]).fetchone() == (getattr(statistics, table),)
        facts = "SELECT count(DISTINCT fact) FROM waylore.assertions WHERE collection = %s"
        assert db.execute(facts, [store._key]).fetchone() == (statistics.facts,)
    assert statistics.passages == PAGES * COPIES


def test_name_is_found_only_in_its_copy(store: PostgresStore) -> None:
    names = {SAMPLE.rename_copy(SAMPLE.mark(make_name(PAGES - 1)), copy) for copy in range(COPIES)}
    found = store.entities_by_names(sorted(names))
    assert len(names) == COPIES == len({e.id for entities in found.values() for e in entities})
    assert all(len(entities) == 1 for entities in found.values())


def test_searches_find_copy(store: PostgresStore) -> None:
    page = SAMPLE.pages[-1].passages[0]
    text = SAMPLE.rename_copy(page.text, COPIES - 1)
    [best] = store.lexical(text, top_k=1)
    [passage] = store.passages([best.id], vectors=True).values()
    assert passage.text == text
    assert passage.vector is not None
    assert [near.id for near in store.dense(passage.vector, top_k=1)] == [best.id]
    assert not store.dense(passage.vector, top_k=1, where=Filter(metadata={"part": "none"}))


def test_copy_can_be_forgotten_and_written(store: PostgresStore) -> None:
    [first] = store.list_documents(limit=1)
    before = store.statistics()
    [document] = store.get_indexed_documents([first.id]).values()
    store.forget([first.id], author=OWNER)
    assert store.find_remains(Receipt()) == ()
    store.write([document], author=OWNER, model="synthetic")
    after = store.statistics()
    assert (after.passages, after.entities, after.facts) == (before.passages, before.entities, before.facts)
    assert store.find_remains(Receipt()) == ()
