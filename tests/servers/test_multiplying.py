"""A multiplied database is one that Waylore could have written: whole, counted right, found by its words."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from benchmarks.corpus import Corpus, name
from benchmarks.multiplying import Sample, build, tenant
from tools.postgres import Server

from waylore.store.postgres.store import PostgresStore
from waylore.types.results import Receipt
from waylore.types.search import Filter

PAGES, COPIES, TENANTS = 30, 12, 2
SAMPLE = Sample(list(Corpus().contributions(0, PAGES)), "synthetic", COPIES, TENANTS)


@pytest.fixture(scope="module")
def url(postgres: Server) -> Iterator[str]:
    with postgres.database() as made:
        build(made, SAMPLE, lambda _: None)
        yield made


@pytest.fixture(params=range(TENANTS))
def store(url: str, request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url, tenant(request.param))) as opened:
        yield opened


def test_every_row_has_its_owner_and_every_counter_is_right(store: PostgresStore, url: str) -> None:
    assert store.remains(Receipt()) == ()
    known = store.statistics()
    with psycopg.connect(url) as db:
        for table in ("documents", "passages", "entities", "facts", "mentions"):
            rows = f"SELECT count(*) FROM waylore.{table} WHERE collection = %s"
            assert db.execute(rows, [store._key]).fetchone() == (getattr(known, table),)
    assert known.passages == PAGES * COPIES


def test_a_name_is_found_in_its_copy_alone(store: PostgresStore) -> None:
    asked = {SAMPLE.said(SAMPLE.marked(name(PAGES - 1)), copy) for copy in range(COPIES)}
    found = store.entities_by_names(sorted(asked))
    assert len(asked) == COPIES == len({e.id for entities in found.values() for e in entities})
    assert all(len(entities) == 1 for entities in found.values())


def test_words_vectors_and_permissions_find_a_copy(store: PostgresStore) -> None:
    page = SAMPLE.pages[-1].passages[0]
    text = SAMPLE.said(page.text, COPIES - 1)
    [best] = store.lexical(text, top_k=1)
    [passage] = store.passages([best.id], vectors=True).values()
    assert passage.text == text
    assert passage.vector is not None
    assert [near.id for near in store.dense(passage.vector, top_k=1)] == [best.id]
    assert not store.dense(passage.vector, top_k=1, where=Filter(metadata={"part": "none"}))


def test_what_was_multiplied_can_be_written_to_and_forgotten(store: PostgresStore) -> None:
    [first] = store.listed(limit=1)
    before = store.statistics()
    [kept] = store.contributions([first.id]).values()
    store.forget([first.id])
    assert store.remains(Receipt()) == ()
    store.write([kept], model="synthetic")
    after = store.statistics()
    assert (after.passages, after.entities, after.facts) == (before.passages, before.entities, before.facts)
    assert store.remains(Receipt()) == ()
