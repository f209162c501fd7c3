-- Every statement of the catalogue of cells by name, with SQLite's name where it does what SQLite's does.

-- name: lock_migrations
-- Numbers beside those of the store, which may be in the same database.
SELECT pg_advisory_xact_lock(2003789428, 2)

-- name: has_migrations
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'waylore_cells' AND c.relname = 'migrations'

-- name: create_migrations
CREATE SCHEMA IF NOT EXISTS waylore_cells;
CREATE TABLE IF NOT EXISTS waylore_cells.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())

-- name: applied_migrations
SELECT number FROM waylore_cells.migrations

-- name: record_migration
INSERT INTO waylore_cells.migrations (number, name) VALUES (%s, %s)

-- name: try_moving
-- Held by a connection, and let go when it ends.
SELECT pg_try_advisory_lock(2003789428, 3)

-- name: end_moving
-- The server notices some time later that a connection ended; the next mover need not wait for that.
SELECT pg_advisory_unlock(2003789428, 3)

-- name: version
SELECT version FROM waylore_cells.catalogue

-- name: grow
UPDATE waylore_cells.catalogue SET version = version + 1

-- name: cells
SELECT name, url, state FROM waylore_cells.cells ORDER BY name COLLATE "C"

-- name: set_cell
INSERT INTO waylore_cells.cells (name, url, state) VALUES (%(name)s, %(url)s, %(state)s)
ON CONFLICT (name) DO UPDATE SET url = excluded.url, state = excluded.state

-- name: lightest
-- The active cell with the fewest collections.
SELECT c.name FROM waylore_cells.cells c WHERE c.state = 'active'
ORDER BY (SELECT count(*) FROM waylore_cells.collections p WHERE p.cell = c.name), c.name COLLATE "C" LIMIT 1

-- name: place
INSERT INTO waylore_cells.collections (name, cell, state, other, base, until, version)
SELECT %(name)s, %(cell)s, 'active', '', 0, 0.0, version FROM waylore_cells.catalogue

-- name: placed
SELECT name, cell, state, other, base, until, version FROM waylore_cells.collections WHERE name = ANY (%(names)s)

-- name: names
SELECT name FROM waylore_cells.collections WHERE %(cell)s = '' OR %(cell)s IN (cell, other) ORDER BY name COLLATE "C"

-- name: change
-- Only if nobody else changed it since it was read.
UPDATE waylore_cells.collections SET cell = %(cell)s, state = %(state)s, other = %(other)s, base = %(base)s, until = %(until)s,
  version = (SELECT version FROM waylore_cells.catalogue)
WHERE name = %(name)s AND version = %(version)s
RETURNING name, cell, state, other, base, until, version
