"""The claims of `docs/explanation/bm25-on-postgres.md` about pg_textsearch, on a real server."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import psycopg
import pytest
from benchmarks.bm25 import mark_term
from hypothesis import given
from hypothesis import strategies as st
from tools.postgres.server import Server

from waylore.store import bm25
from waylore.text import terms

DOCUMENTS, TENANTS, WORDS = 3_000, 40, 200
SCORES = "SELECT id, -(words <@> to_bm25query(%s, 'words')) FROM item WHERE tenant = %s"
BEST = f"{SCORES} ORDER BY words <@> to_bm25query(%s, 'words') LIMIT %s"
SCORE = "SELECT -(words <@> to_bm25query('cat', 'words')) FROM item WHERE id = 1"


@pytest.fixture(scope="module")
def many(textsearch_postgres: Server) -> Iterator[psycopg.Connection]:
    """Create documents of many tenants, with words of uneven frequency."""
    chosen = Random(5)
    rows = [
        (i, chosen.randrange(TENANTS), " ".join(_word(chosen) for _ in range(chosen.randint(3, 60))))
        for i in range(DOCUMENTS)
    ]
    with textsearch_postgres.create_database() as url, psycopg.connect(url, autocommit=True) as db:
        _create(db)
        db.cursor().executemany("INSERT INTO item VALUES (%s, %s, %s)", rows)
        db.execute("ANALYZE item")
        yield db


@pytest.fixture
def few(textsearch_postgres: Server) -> Iterator[psycopg.Connection]:
    """Create a table without rows."""
    with textsearch_postgres.create_database() as url, psycopg.connect(url, autocommit=True) as db:
        _create(db)
        yield db


def test_filter_with_order_and_limit_is_exact(many: psycopg.Connection) -> None:
    chosen = Random(6)
    for _ in range(200):
        query = " ".join({_word(chosen) for _ in range(chosen.randint(1, 5))})
        tenant, limit = chosen.randrange(TENANTS), chosen.choice([1, 10, 50, 1_000])
        everyone = {id_: score for id_, score in many.execute(SCORES, [query, tenant]) if score > 0}
        with many.transaction():
            many.execute("SET LOCAL enable_seqscan = off")
            plan = "\n".join(row[0] for row in many.execute(f"EXPLAIN {BEST}", [query, tenant, query, limit]))
            best = many.execute(BEST, [query, tenant, query, limit]).fetchall()
        assert "Index Scan using words" in plan
        assert len(best) == len({id_ for id_, _ in best}) == min(limit, len(everyone))
        assert dict(best) == pytest.approx({id_: everyone[id_] for id_, _ in best}, rel=1e-5)
        assert sorted(dict(best).values()) == pytest.approx(sorted(everyone.values())[-len(best) :], rel=1e-5)


def test_search_without_index_returns_unrelated_rows(many: psycopg.Connection) -> None:
    with many.transaction():
        many.execute("SET LOCAL enable_indexscan = off")
        best = many.execute(BEST, ["nothing", 1, "nothing", 5], prepare=False).fetchall()
    assert [score for _, score in best] == [0.0] * 5


def test_scores_equal_ours_except_for_rounded_lengths(few: psycopg.Connection) -> None:
    texts = ["cat cat " + "x " * 30, "cat " + "x " * 9, "dog", "cat dog " + "x " * 61]
    few.cursor().executemany("INSERT INTO item VALUES (%s, 1, %s)", enumerate(texts))
    said = [text.split() for text in texts]
    rounded = [32, 10, 1, 60]  # up to 39 as it is, then in steps of 2, then of 4, of 8…
    expected = bm25.score(
        [(n, bm25.pack_terms(Counter([0] * s.count("cat")))) for n, s in zip(rounded, said, strict=True)],
        [(0, 3)],
        passages=4,
        average_length=sum(map(len, said)) / 4,
    )
    scores = few.execute("SELECT -(words <@> to_bm25query('cat', 'words')) FROM item ORDER BY id").fetchall()
    assert [score for (score,) in scores] == pytest.approx(expected.tolist(), rel=1e-5)


def test_deleted_rows_count_until_vacuum(few: psycopg.Connection) -> None:
    few.execute("INSERT INTO item SELECT i, 1, CASE WHEN i < 5 THEN 'cat' ELSE 'dog' END FROM generate_series(1, 50) i")
    before = few.execute(SCORE).fetchone()
    with few.transaction(force_rollback=True):
        few.execute("INSERT INTO item SELECT i, 1, 'cat' FROM generate_series(51, 100) i")
    after = few.execute(SCORE).fetchone()
    few.execute("VACUUM item")
    assert before != after
    assert few.execute(SCORE).fetchone() == before


def test_hidden_rows_change_scores(few: psycopg.Connection) -> None:
    few.execute("INSERT INTO item SELECT i, 1, CASE WHEN i < 5 THEN 'cat' ELSE 'dog' END FROM generate_series(1, 50) i")
    few.execute("CREATE TABLE own AS SELECT * FROM item")
    few.execute("ALTER TABLE item ENABLE ROW LEVEL SECURITY")
    few.execute("CREATE POLICY own ON item USING (tenant = 1)")
    few.execute("CREATE ROLE bm25_reader")
    few.execute("GRANT SELECT ON item TO bm25_reader")
    few.execute("INSERT INTO item SELECT i, 2, 'cat' FROM generate_series(51, 100) i")
    few.execute("SET ROLE bm25_reader")
    plain = few.execute("SELECT count(*), min(words <@> to_bm25query('cat', 'words')) FROM item").fetchone()
    few.execute("RESET ROLE")
    few.execute("DROP OWNED BY bm25_reader")
    few.execute("DROP ROLE bm25_reader")
    few.execute("CREATE INDEX alone ON own USING bm25 (words) WITH (text_config = 'simple')")
    alone = few.execute("SELECT count(*), min(words <@> to_bm25query('cat', 'alone')) FROM own").fetchone()
    assert plain is not None
    assert alone is not None
    assert (plain[0], alone[0]) == (50, 50)
    assert -plain[1] < -alone[1] / 2


@given(st.text(max_size=40), st.integers(1, 1_000_000))
def test_marked_words_stay_unchanged(postgres: Server, text: str, collection: int) -> None:
    words = [mark_term(collection, term) for term in terms(text)]
    assert _index_words(postgres, words) == set(words)


def test_some_unmarked_terms_change(postgres: Server) -> None:
    assert _index_words(postgres, terms("Graph RAG 1e5 0x1f naïve Straße Привет 東京都 हिन्दी")) == set(
        terms("Graph RAG 1e5 0x1f naïve Straße Привет 東京都 हिन्दी")
    )
    assert "้า" in terms("ห้าม")
    assert _index_words(postgres, ["้า"]) == {"า"}


def _create(db: psycopg.Connection) -> None:
    db.execute("CREATE EXTENSION pg_textsearch")
    db.execute("CREATE TABLE item (id int PRIMARY KEY, tenant int, words text)")
    db.execute("CREATE INDEX words ON item USING bm25 (words) WITH (text_config = 'simple')")


def _word(chosen: Random) -> str:
    return mark_term(0, str(int(WORDS ** chosen.random())))


def _index_words(server: Server, words: list[str]) -> set[str]:
    with psycopg.connect(server.url) as db:
        query = "SELECT tsvector_to_array(to_tsvector('simple', %s))"
        [lexemes] = db.execute(query, [" ".join(words)]).fetchone() or [[]]
    return set(lexemes)
