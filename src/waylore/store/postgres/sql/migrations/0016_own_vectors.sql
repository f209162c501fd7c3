-- The vectors of a large collection are in tables of its own, which inherit from the shared ones. They are made, and the rows
-- moved there, when the collection is next opened by a process whose role owns the tables.
ALTER TABLE collections ADD COLUMN own_vectors bool NOT NULL DEFAULT false;
