-- The catalogue of cells, in the schema waylore_cells: few rows, read often and changed rarely.

-- One row: the version, which grows with every change of a cell or a placement. Every change updates this row first, so
-- changes wait for each other here.
CREATE TABLE waylore_cells.catalogue (
  one int2 PRIMARY KEY DEFAULT 1 CHECK (one = 1),
  version int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO waylore_cells.catalogue DEFAULT VALUES;

CREATE TABLE waylore_cells.cells (
  name text PRIMARY KEY,
  url text NOT NULL UNIQUE,
  state text NOT NULL
);

CREATE TABLE waylore_cells.collections (
  name text PRIMARY KEY,
  cell text NOT NULL REFERENCES waylore_cells.cells (name),
  state text NOT NULL,
  other text NOT NULL,        -- the target of a move, or the old cell after it
  base int8 NOT NULL,         -- added to the version of the store in this cell, so that versions grow across moves
  until float8 NOT NULL,      -- end of the wait of writers, or begin of state leaving, in seconds since 1970
  version int8 NOT NULL       -- version of the catalogue when this row last changed
);
CREATE INDEX collections_of_cell ON waylore_cells.collections (cell);

-- An application reads everything and places collections. Only the owner changes cells. The role is that of the store.
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NULL THEN
    CREATE ROLE waylore_app NOLOGIN;
  END IF;
EXCEPTION
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'waylore: % may not create roles: only it can read this catalogue', current_user;
  WHEN duplicate_object OR unique_violation THEN
    NULL;  -- a session in another database has just created it
END
$$;
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore_cells TO waylore_app;
    GRANT SELECT ON ALL TABLES IN SCHEMA waylore_cells TO waylore_app;
    GRANT UPDATE ON waylore_cells.catalogue TO waylore_app;
    GRANT INSERT, UPDATE ON waylore_cells.collections TO waylore_app;
  END IF;
END
$$;
