-- Every statement of the catalogue of cells by name: its cells, and the cell of each collection.

-- name: settings
PRAGMA synchronous = FULL

-- name: has_migrations
SELECT count(*) FROM pragma_table_info('catalogue_migrations')

-- name: create_migrations
-- The name differs from that of other migration tables, because a store, a registry and a catalogue may share a file.
CREATE TABLE IF NOT EXISTS catalogue_migrations (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL,
  checksum TEXT NOT NULL
) STRICT

-- name: applied_migrations
SELECT number, name, applied_at, checksum FROM catalogue_migrations

-- name: record_migration
INSERT INTO catalogue_migrations (number, name, applied_at, checksum) VALUES (?, ?, ?, ?)

-- name: begin_alone
BEGIN EXCLUSIVE

-- name: version
SELECT version FROM catalogue

-- name: grow
-- Every change of a cell or placement increases the version.
UPDATE catalogue SET version = version + 1

-- name: cells
SELECT name, url, state, bytes, measured_at FROM cells ORDER BY name

-- name: set_cell
INSERT INTO cells (name, url, state) VALUES (:name, :url, :state)
ON CONFLICT (name) DO UPDATE SET url = excluded.url, state = excluded.state

-- name: lightest
-- The active cell with the fewest bytes. A collection that came after a cell was measured, or is on its way to it, counts as a
-- mean one. If no cell was measured, the number of collections decides.
SELECT name FROM (
  SELECT c.name, c.bytes,
    (SELECT count(*) FROM collections p WHERE p.cell = c.name AND p.version > c.measured) AS came,
    (SELECT count(*) FROM collections p WHERE p.other = c.name AND p.other <> '' AND p.state IN ('copying', 'stopped')) AS coming,
    (SELECT count(*) FROM collections p WHERE p.cell = c.name) AS held
  FROM cells c WHERE c.state = 'active'
)
ORDER BY bytes + (came + coming) * coalesce((SELECT sum(bytes) FROM cells) / nullif((SELECT count(*) FROM collections), 0), 0),
  held + coming, name LIMIT 1

-- name: record_bytes
UPDATE cells SET bytes = :bytes, measured_at = :at, measured = (SELECT version FROM catalogue) WHERE name = :name

-- name: place
INSERT INTO collections (name, cell, state, other, base, until, version)
SELECT :name, :cell, 'active', '', 0, 0.0, version FROM catalogue

-- name: placed
SELECT name, cell, state, other, base, until, version FROM collections
WHERE name IN (SELECT value FROM json_each(:names))

-- name: names
-- All collections, or those that are in a cell or move into or out of it.
SELECT name FROM collections WHERE :cell = '' OR :cell IN (cell, other) ORDER BY name

-- name: change
-- Returns no row if the placement changed since it was read.
UPDATE collections SET cell = :cell, state = :state, other = :other, base = :base, until = :until,
  version = (SELECT version FROM catalogue)
WHERE name = :name AND version = :version
RETURNING name, cell, state, other, base, until, version
