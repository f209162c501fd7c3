-- The catalogue of cells, in the schema waylore_cells: a few rows that everyone reads and few change.

-- One row: the version, which grows with every change of a cell or a place. Whoever changes something changes it first, and so
-- waits for whoever did before.
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
  other text NOT NULL,        -- the cell that it goes to or comes from, while it moves
  base int8 NOT NULL,         -- what its version was when it came into this cell: versions grow across moves
  until float8 NOT NULL,      -- until when writers wait, in seconds since 1970
  version int8 NOT NULL       -- of the catalogue, when this row was changed last
);
CREATE INDEX collections_of_cell ON waylore_cells.collections (cell);

-- An application reads all of it and places collections; cells are its owner's affair. The role is that of the store.
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NULL THEN
    CREATE ROLE waylore_app NOLOGIN;
  END IF;
EXCEPTION
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'waylore: % may not make roles: only it can read this catalogue', current_user;
  WHEN duplicate_object OR unique_violation THEN
    NULL;  -- another database of this server was faster
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
