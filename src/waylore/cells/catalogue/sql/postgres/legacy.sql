-- Statements that rename the schema of a catalogue of cells to the new name of this product (see the store's legacy.sql).

-- name: carry_grants
-- Grant the new role the same rights as migration 0001.
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore_cells TO waylore_app;
    GRANT SELECT ON ALL TABLES IN SCHEMA waylore_cells TO waylore_app;
    GRANT UPDATE ON waylore_cells.catalogue TO waylore_app;
    GRANT INSERT, UPDATE ON waylore_cells.collections TO waylore_app;
  END IF;
END
$$
