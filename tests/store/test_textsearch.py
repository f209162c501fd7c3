"""The PostgreSQL store with pg_textsearch: conformance, and the same ranking of words as on SQLite."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import psycopg
import pytest
from benchmarks.bm25 import compute_correlation, search_store
from tools.postgres.server import Server
from tools.waiting import wait_until

from databases import make_name, open_collections
from requirements import find_set
from waylore.errors import ConfigError
from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.store.postgres import search as searching
from waylore.store.postgres.store import PostgresStore
from waylore.store.sqlite.store import SqliteStore
from waylore.store.urls import open_store
from waylore.testing import OpenStore, StoreConformance
from waylore.testing.forgetting import replace_text
from waylore.testing.world import MODEL, WORLD, page
from waylore.types.author import OWNER

QUESTIONS = 60


@pytest.fixture
def always_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pg_textsearch find words in small collections too."""
    monkeypatch.setattr(searching, "MIN_TEXTSEARCH_PASSAGES", 0)


@pytest.mark.usefixtures("always_ranked")
class TestTextsearch(StoreConformance):
    @pytest.fixture
    def open_store(self, textsearch_postgres: Server) -> Iterator[OpenStore]:
        with open_collections(lambda name: PostgresStore(textsearch_postgres.url, name)) as open_store:
            yield open_store


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return read_dataset(find_set("musique-train100"), sample=QUESTIONS)


@pytest.fixture(scope="module")
def expected(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Search SQLite by words, for comparison."""
    with closing(SqliteStore(tmp_path_factory.mktemp("words") / "set.waylore")) as store:
        store.write(dataset.pages, author=OWNER, model=None)
        return [search_store(store, q.text) for q in dataset.questions]


@pytest.mark.usefixtures("always_ranked")
@pytest.mark.parametrize("server", ["postgres", "textsearch_postgres"])
def test_words_rank_as_on_sqlite(
    server: str, dataset: Dataset, expected: list[list[str]], request: pytest.FixtureRequest
) -> None:
    """Other collections on the same server with the same words change nothing."""
    started: Server = request.getfixturevalue(server)
    with closing(open_store(started.url, make_name("strangers"))) as strangers:
        strangers.write([page(f"{q.text} {n}") for n, q in enumerate(dataset.questions)], author=OWNER, model=MODEL)
    with closing(open_store(started.url, make_name("set"))) as store:
        store.write(dataset.pages, author=OWNER, model=None)
        found = [search_store(store, q.text) for q in dataset.questions]
    near = [compute_correlation(e, f) for e, f in zip(expected, found, strict=True)]
    assert np.mean(near) >= 0.95
    assert [e[:10] for e in expected] == [f[:10] for f in found]


@pytest.mark.usefixtures("always_ranked")
def test_lexical_uses_index_of_textsearch(textsearch_postgres: Server) -> None:
    with textsearch_postgres.create_database() as url, psycopg.connect(url, autocommit=True) as db:
        with closing(open_store(url)) as store:
            store.write(WORLD, author=OWNER, model=MODEL)
            assert store.lexical("lotharingia", top_k=9)
        wait_until(lambda: _scans(db))  # the server counts scans after the connection is closed


@pytest.mark.parametrize("least", [0, searching.MIN_TEXTSEARCH_PASSAGES])
def test_words_found_depend_on_collection_alone(
    least: int, textsearch_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a few endless passages, the index takes the long ones for short, and prefers them to the short ones."""
    monkeypatch.setattr(searching, "MIN_TEXTSEARCH_PASSAGES", least)
    short = [page(f"mill {n}") for n in range(100)]
    long = [page(f"mill {n} mill " + "wheel stone water " * 50) for n in range(400)]
    endless = [replace_text(page(f"endless {n}"), "".join(f"word{w} " for w in range(1_000)) * 60) for n in range(12)]
    found = []
    for others in ([], endless):
        with (
            textsearch_postgres.create_database() as url,
            closing(open_store(url, "others")) as strangers,
            closing(open_store(url, "own")) as store,
        ):
            strangers.write(others, author=OWNER, model=MODEL)
            store.write([*short, *long], author=OWNER, model=MODEL)
            found.append(store.lexical("mill", top_k=80))
    assert found[0] == found[1]
    assert {scored.id for scored in found[0]} <= {document.passages[0].id for document in short}


def _scans(db: psycopg.Connection) -> int:
    scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'passage_terms_ranked'"
    [(count,)] = db.execute(scans).fetchall()
    return int(count)


@pytest.mark.usefixtures("always_ranked")
def test_open_prepares_extension_that_was_added_later(textsearch_postgres: Server) -> None:
    with textsearch_postgres.create_database() as url, psycopg.connect(url, autocommit=True) as db:
        with closing(open_store(url)) as store:
            store.write(WORLD, author=OWNER, model=MODEL)
            ranked = store.lexical("king of lotharingia", top_k=9)
        db.execute("DROP EXTENSION pg_textsearch CASCADE")
        db.execute("ALTER TABLE waylore.passage_terms DROP COLUMN ranked")
        with closing(open_store(url)) as store:
            assert store.lexical("king of lotharingia", top_k=9) == ranked
            db.execute("CREATE EXTENSION pg_textsearch")
        with closing(open_store(url)) as store:
            assert store.lexical("king of lotharingia", top_k=9) == ranked
        assert db.execute("SELECT 1 FROM pg_indexes WHERE indexname = 'passage_terms_ranked'").fetchall()


def test_old_extension_raises_error_with_reason(textsearch_postgres: Server) -> None:
    with textsearch_postgres.create_database() as url, psycopg.connect(url, autocommit=True) as db:
        open_store(url).close()
        db.execute("UPDATE pg_extension SET extversion = '1.0.0' WHERE extname = 'pg_textsearch'")
        with pytest.raises(ConfigError, match=r"pg_textsearch 1\.0\.0, which returns some rows twice.*1\.5\.1"):
            open_store(url)


def test_index_shows_no_row_of_other_collection(textsearch_postgres: Server) -> None:
    """Neither a query nor a sort by words of other collections reveals anything of them."""
    with textsearch_postgres.create_database() as url, psycopg.connect(url, autocommit=True) as db:
        with closing(open_store(url, "victim")) as victim, closing(open_store(url, "own")) as own:
            victim.write(WORLD, author=OWNER, model=MODEL)
            own.write([page("A mill by the river.")], author=OWNER, model=MODEL)
            mine = {p for (p,) in db.execute("SELECT id FROM waylore.passages WHERE text LIKE 'A mill%'")}
            words = [w for (w,) in db.execute("SELECT ranked FROM waylore.passage_terms WHERE length > 0")]
            [(key,)] = db.execute("SELECT collection FROM waylore.collections WHERE name = 'own'").fetchall()
        nearest = "ranked <@> to_bm25query(%s, 'waylore.passage_terms_ranked')"
        ranked = f"SELECT id FROM waylore.passage_terms ORDER BY {nearest}"
        for collection, seen in ((str(key), mine), ("", set())):
            with db.transaction():
                db.execute("SELECT set_config('role', 'waylore_app', true)")
                db.execute("SELECT set_config('waylore.collection', %s, true)", (collection,))
                for sort in ("on", "off"):
                    db.execute("SELECT set_config('enable_sort', %s, true)", (sort,))
                    for said in words:
                        found = {id_ for (id_,) in db.execute(f"{ranked} LIMIT 99", (said,), prepare=False)}
                        assert found <= seen
