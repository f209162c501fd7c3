-- Collections are placed by the bytes of cells, not by their number.
ALTER TABLE waylore_cells.cells
  ADD COLUMN bytes int8 NOT NULL DEFAULT 0,          -- as last measured
  ADD COLUMN measured int8 NOT NULL DEFAULT 0,       -- version of the catalogue at that time
  ADD COLUMN measured_at float8 NOT NULL DEFAULT 0;  -- in seconds since 1970; 0 if never
CREATE INDEX collections_by_change ON waylore_cells.collections (cell, version);
DROP INDEX waylore_cells.collections_of_cell;
CREATE INDEX collections_moving ON waylore_cells.collections (other) WHERE other <> '';

-- Whoever may place collections may measure cells.
DO $$
DECLARE
  writer text;
BEGIN
  FOR writer IN
    SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = 'waylore_cells.collections'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT UPDATE (bytes, measured, measured_at) ON waylore_cells.cells TO %I', writer);
  END LOOP;
END
$$;
