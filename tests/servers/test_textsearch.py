"""What `docs/explanation/bm25-on-postgres.md` says of pg_textsearch, on a real server."""

from collections.abc import Iterator
from random import Random

import psycopg
import pytest
from benchmarks.bm25 import marked
from tools.postgres import Server

DOCUMENTS, TENANTS, WORDS = 3_000, 40, 200
SCORES = "SELECT id, -(words <@> to_bm25query(%s, 'words')) FROM item WHERE tenant = %s"
BEST = f"{SCORES} ORDER BY words <@> to_bm25query(%s, 'words') LIMIT %s"
# Some scripts' marks come first in a pair of characters, and some letters have no case that all agree on.
EXOTIC = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u13a0-\u13fd\uab70-\uabbf"


@pytest.fixture(scope="module")
def db(textsearch_postgres: Server) -> Iterator[psycopg.Connection]:
    """Documents of many tenants, whose words are as unevenly spread as words are."""
    chosen = Random(5)
    rows = [
        (i, chosen.randrange(TENANTS), " ".join(_word(chosen) for _ in range(chosen.randint(3, 60))))
        for i in range(DOCUMENTS)
    ]
    with textsearch_postgres.database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_textsearch")
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, tenant int, words text)")
        connection.cursor().executemany("INSERT INTO item VALUES (%s, %s, %s)", rows)
        connection.execute("CREATE INDEX words ON item USING bm25 (words) WITH (text_config = 'simple')")
        connection.execute("ANALYZE item")
        yield connection


def test_a_filter_with_order_and_limit_is_exact(db: psycopg.Connection) -> None:
    chosen = Random(6)
    for _ in range(200):
        query = " ".join({_word(chosen) for _ in range(chosen.randint(1, 5))})
        tenant, limit = chosen.randrange(TENANTS), chosen.choice([1, 10, 50, 1_000])
        everyone = {id_: score for id_, score in db.execute(SCORES, [query, tenant]) if score > 0}
        with db.transaction():
            db.execute("SET LOCAL enable_seqscan = off")
            best = db.execute(BEST, [query, tenant, query, limit]).fetchall()
        found = {id_: score for id_, score in best if score > 0}
        assert len(best) == len({id_ for id_, _ in best})
        assert len(found) == min(limit, len(everyone))
        assert found == pytest.approx({id_: everyone[id_] for id_ in found}, rel=1e-5)
        assert sorted(found.values()) == pytest.approx(sorted(everyone.values())[-len(found) :], rel=1e-5)


def _word(chosen: Random) -> str:
    return marked(0, str(int(WORDS ** chosen.random())))
