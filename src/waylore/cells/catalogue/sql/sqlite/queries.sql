-- Every statement of the catalogue of cells by name: which cells there are, and which collection lives in which.

-- name: settings
PRAGMA synchronous = FULL

-- name: file_settings
PRAGMA journal_mode = WAL

-- name: has_catalogue
SELECT count(*) FROM sqlite_schema WHERE name = 'catalogue'

-- name: create
-- One row tells the schema and the version, which grows with every change of a cell or a place.
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
  other TEXT NOT NULL,       -- the cell that it goes to or comes from, while it moves
  base INTEGER NOT NULL,     -- what its version was when it came into this cell: versions grow across moves
  until REAL NOT NULL,       -- until when writers wait, in seconds since 1970
  version INTEGER NOT NULL   -- of the catalogue, when this row was changed last
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS collections_of_cell ON collections (cell);

-- name: schema
SELECT schema FROM catalogue

-- name: begin
BEGIN IMMEDIATE

-- name: begin_alone
BEGIN EXCLUSIVE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: version
SELECT version FROM catalogue

-- name: grow
UPDATE catalogue SET version = version + 1

-- name: cells
SELECT name, url, state FROM cells ORDER BY name

-- name: set_cell
INSERT INTO cells (name, url, state) VALUES (:name, :url, :state)
ON CONFLICT (name) DO UPDATE SET url = excluded.url, state = excluded.state

-- name: lightest
-- The active cell with the fewest collections.
SELECT c.name FROM cells c WHERE c.state = 'active'
ORDER BY (SELECT count(*) FROM collections p WHERE p.cell = c.name), c.name LIMIT 1

-- name: place
INSERT INTO collections (name, cell, state, other, base, until, version)
SELECT :name, :cell, 'active', '', 0, 0.0, version FROM catalogue

-- name: placed
SELECT name, cell, state, other, base, until, version FROM collections
WHERE name IN (SELECT value FROM json_each(:names))

-- name: names
SELECT name FROM collections WHERE :cell = '' OR :cell IN (cell, other) ORDER BY name

-- name: change
-- Only if nobody else changed it since it was read.
UPDATE collections SET cell = :cell, state = :state, other = :other, base = :base, until = :until,
  version = (SELECT version FROM catalogue)
WHERE name = :name AND version = :version
RETURNING name, cell, state, other, base, until, version
