"""Turn the vectors of a SQLite file back into half precision (migration 9)."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from waylore.store.sqlite.file import open_file
from waylore.store.vectors import from_int8

LAST = 9  # the last migration with half precision
JOIN_STATEMENTS = """
    CREATE TABLE joined (row INTEGER PRIMARY KEY, codes BLOB NOT NULL) STRICT;
    INSERT INTO joined
    SELECT row, CAST(group_concat(codes, '' ORDER BY part) AS BLOB) FROM statement_vectors GROUP BY row;
    DROP TABLE statement_vectors;
    ALTER TABLE joined RENAME TO statement_vectors
"""
DROP_SCOPES = """
    DROP INDEX documents_by_expiry;
    DROP INDEX passages_by_time;
    DROP INDEX passages_of_session;
    DROP INDEX assertions_by_time;
    ALTER TABLE passages DROP COLUMN speaker;
    ALTER TABLE passages DROP COLUMN role;
    ALTER TABLE passages DROP COLUMN at;
    ALTER TABLE passages DROP COLUMN session;
    ALTER TABLE documents DROP COLUMN user;
    ALTER TABLE documents DROP COLUMN agent;
    ALTER TABLE documents DROP COLUMN session;
    ALTER TABLE documents DROP COLUMN at;
    ALTER TABLE documents DROP COLUMN expires_at;
    DROP TABLE audit;
    ALTER TABLE documents DROP COLUMN author;
    ALTER TABLE collections DROP COLUMN weights;
    ALTER TABLE passage_terms DROP COLUMN sequence;
    ALTER TABLE passage_terms DROP COLUMN tells_time;
    ALTER TABLE assertions DROP COLUMN series;
    ALTER TABLE assertions DROP COLUMN began
"""  # the column `user` of accesses stays empty; the migration makes that table again


def to_half(*codes: Any) -> bytes:
    """Return a vector of eight bits per dimension in half precision."""
    return from_int8(codes).astype(np.float16).tobytes()


def restore_halves(path: Path) -> None:
    """Restore the tables of a file with vectors in half precision."""
    with closing(open_file(str(path))) as db, db:
        restore_half_vectors(db)
        db.execute(JOIN_STATEMENTS)
        db.execute(f"DELETE FROM migrations WHERE number > {LAST}")


def restore_half_vectors(db: apsw.Connection) -> None:
    """Store the vectors of passages and entities, also the staged ones, in half precision, and drop later columns."""
    db.execute(DROP_SCOPES)
    db.create_scalar_function("to_half", to_half, 1)
    for table, kinds in (("passage_vectors", "true"), ("entity_vectors", "true"), ("staged", "kind <> 'fact'")):
        db.execute(f"UPDATE {table} SET vector = to_half(vector) WHERE {kinds}")
