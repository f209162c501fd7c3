"""PostgreSQL with pgvector (HNSW) and pg_textsearch (BM25), fused by reciprocal ranks in one statement."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tools.postgres.builds import find_textsearch_build
from tools.postgres.server import start_persistent_server

from benchmarks.peers.adapters.frame import DIMENSION, Peer, PeerPassage, embed, run

SCHEMA = f"""
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS pg_textsearch;
CREATE TABLE IF NOT EXISTS passages (id text PRIMARY KEY, body text NOT NULL, place vector({DIMENSION}) NOT NULL);
CREATE INDEX IF NOT EXISTS passages_place ON passages USING hnsw (place vector_cosine_ops);
CREATE INDEX IF NOT EXISTS passages_body ON passages USING bm25 (body) WITH (text_config = 'english');
"""
RRF = 60  # the constant of reciprocal rank fusion, as in its paper
CANDIDATES = 100
SEARCH = """
WITH near AS (
  SELECT id, row_number() OVER () AS rank FROM
  (SELECT id FROM passages ORDER BY place <=> %(vector)s::vector LIMIT %(candidates)s)
), worded AS (
  SELECT id, row_number() OVER () AS rank FROM
  (SELECT id FROM passages ORDER BY body <@> to_bm25query(%(question)s, 'passages_body') LIMIT %(candidates)s)
)
SELECT id FROM near FULL JOIN worded USING (id)
ORDER BY coalesce(1.0 / (%(rrf)s + near.rank), 0) + coalesce(1.0 / (%(rrf)s + worded.rank), 0) DESC, id LIMIT %(limit)s
"""


class PgvectorPeer(Peer):
    """One table with two indexes."""

    batch = 256

    def __init__(self, connection: psycopg.Connection, url: str) -> None:
        self._connection, self._url = connection, url
        connection.execute(SCHEMA)
        connection.commit()

    def index(self, passages: list[PeerPassage]) -> None:
        """Insert passages in one transaction."""
        vectors = embed(self._url, [passage.whole for passage in passages])
        rows = [(each.id, each.whole, json.dumps(vector)) for each, vector in zip(passages, vectors, strict=True)]
        with self._connection.cursor() as cursor:
            cursor.executemany("INSERT INTO passages VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", rows)
        self._connection.commit()

    def search(self, question: str, limit: int) -> list[str]:
        """Search by vector and words."""
        [vector] = embed(self._url, [question])
        given = {"vector": json.dumps(vector), "question": question, "rrf": RRF}
        found = self._connection.execute(SEARCH, {**given, "limit": limit, "candidates": CANDIDATES}).fetchall()
        return [id_ for (id_,) in found]

    def delete(self, passage: PeerPassage) -> None:
        """Delete a row, and let VACUUM remove what is left of it."""
        self._connection.execute("DELETE FROM passages WHERE id = %s", [passage.id])
        self._connection.commit()
        self._connection.autocommit = True
        self._connection.execute("VACUUM (FULL) passages")
        self._connection.execute("CHECKPOINT")


@contextmanager
def open_peer(folder: Path, url: str) -> Iterator[Peer]:
    """Start a server on the data in a folder; stop it at the end."""
    settings = {"hnsw.ef_search": CANDIDATES}
    with (
        start_persistent_server(find_textsearch_build(), folder) as server,
        psycopg.connect(server.url, options=" ".join(f"-c {name}={value}" for name, value in settings.items())) as link,
    ):
        yield PgvectorPeer(link, url)


if __name__ == "__main__":
    run(open_peer)
