-- Collections are placed by the bytes of cells, not by their number.
ALTER TABLE cells ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;       -- as last measured
ALTER TABLE cells ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;    -- version of the catalogue at that time
ALTER TABLE cells ADD COLUMN measured_at REAL NOT NULL DEFAULT 0.0;  -- in seconds since 1970; 0 if never
CREATE INDEX collections_by_change ON collections (cell, version);
DROP INDEX collections_of_cell;
CREATE INDEX collections_moving ON collections (other) WHERE other <> '';
