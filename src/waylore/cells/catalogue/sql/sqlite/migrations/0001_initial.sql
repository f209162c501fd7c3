-- The catalogue of cells in a SQLite file. IF NOT EXISTS: files of releases that recorded no migrations have these tables.

-- One row: the version, which grows with every change of a cell or a placement. Only earlier releases read `schema`: a
-- migration that they cannot read sets it to its own number.
CREATE TABLE IF NOT EXISTS catalogue (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  schema INTEGER NOT NULL,
  version INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO catalogue (one, schema, version) VALUES (1, 1, 0);
CREATE TABLE IF NOT EXISTS cells (
  name TEXT PRIMARY KEY,
  url TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS collections (
  name TEXT PRIMARY KEY,
  cell TEXT NOT NULL REFERENCES cells (name),
  state TEXT NOT NULL,
  other TEXT NOT NULL,       -- the target of a move, or the old cell after it
  base INTEGER NOT NULL,     -- added to the version of the store in this cell, so that versions grow across moves
  until REAL NOT NULL,       -- end of the wait of writers, or begin of state leaving, in seconds since 1970
  version INTEGER NOT NULL   -- version of the catalogue when this row last changed
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS collections_of_cell ON collections (cell);
