-- Every statement of the catalogue of cells by name. Statements that do the same in SQLite have the same name.

-- name: lock_migrations
-- The store uses other numbers, because it may be in the same database.
SELECT pg_advisory_xact_lock(2003789428, 2)

-- name: has_migrations
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'waylore_cells' AND c.relname = 'migrations'

-- name: create_migrations
CREATE SCHEMA IF NOT EXISTS waylore_cells;
CREATE TABLE IF NOT EXISTS waylore_cells.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE waylore_cells.migrations ADD COLUMN IF NOT EXISTS checksum text NOT NULL DEFAULT ''

-- name: applied_migrations
-- Number 0 records that the schema was renamed. It is no migration.
SELECT number, checksum FROM waylore_cells.migrations WHERE number > 0

-- name: record_migration
INSERT INTO waylore_cells.migrations (number, name, checksum) VALUES (%s, %s, %s)
ON CONFLICT (number) DO UPDATE SET checksum = excluded.checksum

-- name: try_moving
-- The lock belongs to the connection and ends with it.
SELECT pg_try_advisory_lock(2003789428, 3)

-- name: end_moving
-- The server may notice late that a connection ended, so the lock is released explicitly for the next mover.
SELECT pg_advisory_unlock(2003789428, 3)

-- name: version
SELECT version FROM waylore_cells.catalogue

-- name: grow
-- Every change updates this row first, so changes wait for each other here.
UPDATE waylore_cells.catalogue SET version = version + 1

-- name: cells
SELECT name, url, state, bytes, measured_at FROM waylore_cells.cells ORDER BY name COLLATE "C"

-- name: set_cell
INSERT INTO waylore_cells.cells (name, url, state) VALUES (%(name)s, %(url)s, %(state)s)
ON CONFLICT (name) DO UPDATE SET url = excluded.url, state = excluded.state

-- name: lightest
-- The active cell with the fewest bytes. A collection that came after a cell was measured, or is on its way to it, counts as a
-- mean one. If no cell was measured, the number of collections decides.
SELECT c.name FROM waylore_cells.cells c,
  (SELECT coalesce(sum(bytes) / nullif((SELECT count(*) FROM waylore_cells.collections), 0), 0) AS bytes FROM waylore_cells.cells) mean,
  LATERAL (SELECT count(*) AS number FROM waylore_cells.collections p WHERE p.cell = c.name AND p.version > c.measured) came,
  LATERAL (SELECT count(*) AS number FROM waylore_cells.collections p
    WHERE p.other = c.name AND p.other <> '' AND p.state IN ('copying', 'stopped')) coming
WHERE c.state = 'active'
ORDER BY c.bytes + (came.number + coming.number) * mean.bytes,
  (SELECT count(*) FROM waylore_cells.collections p WHERE p.cell = c.name) + coming.number, c.name COLLATE "C" LIMIT 1

-- name: record_bytes
UPDATE waylore_cells.cells SET bytes = %(bytes)s, measured_at = %(at)s, measured = (SELECT version FROM waylore_cells.catalogue)
WHERE name = %(name)s

-- name: place
INSERT INTO waylore_cells.collections (name, cell, state, other, base, until, version)
SELECT %(name)s, %(cell)s, 'active', '', 0, 0.0, version FROM waylore_cells.catalogue

-- name: placed
SELECT name, cell, state, other, base, until, version FROM waylore_cells.collections WHERE name = ANY (%(names)s)

-- name: names
-- All collections, or those that are in a cell or move into or out of it.
SELECT name FROM waylore_cells.collections WHERE %(cell)s = '' OR %(cell)s IN (cell, other) ORDER BY name COLLATE "C"

-- name: change
-- Returns no row if the placement changed since it was read.
UPDATE waylore_cells.collections SET cell = %(cell)s, state = %(state)s, other = %(other)s, base = %(base)s, until = %(until)s,
  version = (SELECT version FROM waylore_cells.catalogue)
WHERE name = %(name)s AND version = %(version)s
RETURNING name, cell, state, other, base, until, version
