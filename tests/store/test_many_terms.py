"""Terms whose numbers have more than 26 bits are found, scored and forgotten as others are, on both engines."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import psycopg
import pytest

from databases import get_server_url, make_name
from waylore.store.postgres.store import PostgresStore
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import MODEL, WORLD, page
from waylore.types.author import OWNER
from waylore.types.results import Receipt
from waylore.types.search import Ranking

FAR = 2**26 - 3  # so that some terms of the world have 26 bits and others have more
QUESTIONS = ["king of lotharingia", "rome", "who rules burgundy", "emperor charles", "later words"]


def open_sqlite(folder: Path) -> Store:
    return SqliteStore(folder / "far.waylore")


def open_postgres(_: Path) -> Store:
    return PostgresStore(get_server_url(), make_name("far"))


def skip_numbers(store: Store, to: int) -> None:
    """Give the next new term of a store this number."""
    if isinstance(store, PostgresStore):
        with psycopg.connect(get_server_url()) as db:
            db.execute("UPDATE waylore.collections SET next_term = %s WHERE collection = %s", (to, store._key))
        return
    assert isinstance(store, SqliteStore)
    with closing(apsw.Connection(str(store._path))) as db:
        db.execute("INSERT INTO terms (row, collection, term, passages) VALUES (?, 0, ?, 1)", (to - 1, f"term {to}"))


def remove_gaps(store: Store) -> None:
    """Remove the rows by which numbers were skipped, which belong to no passage."""
    if isinstance(store, SqliteStore):
        with closing(apsw.Connection(str(store._path))) as db:
            db.execute("DELETE FROM terms WHERE collection = 0")


def ask(store: Store) -> list[Ranking]:
    return [store.lexical(question, top_k=20) for question in QUESTIONS]


@pytest.mark.parametrize("open_store", [open_sqlite, open_postgres], ids=["sqlite", "postgres"])
def test_terms_above_26_bits_are_scored_as_others(open_store: Callable[[Path], Store], tmp_path: Path) -> None:
    (tmp_path / "near").mkdir()
    with ExitStack() as opened:
        near, far = (opened.enter_context(closing(open_store(folder))) for folder in (tmp_path / "near", tmp_path))
        for store in (near, far):
            store.write([page("Emperor Charles, king of Rome")], author=OWNER, model=MODEL)
            if store is far:
                skip_numbers(store, FAR)
            store.write(WORLD, author=OWNER, model=MODEL)
            if store is far:
                skip_numbers(store, 2**31 - 100)
            store.write([page("Later words of the emperor")], author=OWNER, model=MODEL)
        assert ask(far) == ask(near)
        assert all(ask(far))
        passages = [p.id for document in WORLD for p in document.passages]
        assert far.word_scores(QUESTIONS[0], passages) == near.word_scores(QUESTIONS[0], passages)
        assert far.count_terms(QUESTIONS[2]) == near.count_terms(QUESTIONS[2])
        for store in (near, far):
            store.forget([document.document.id for document in WORLD[:2]], author=OWNER)
        assert ask(far) == ask(near)
        assert far.count_terms(QUESTIONS[2]) == near.count_terms(QUESTIONS[2])
        remove_gaps(far)
        assert far.find_remains(Receipt()) == ()
