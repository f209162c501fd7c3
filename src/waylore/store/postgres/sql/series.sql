-- Statements that go through all collections to fill columns of assertions (index.py).

-- name: show_all_collections
-- Row-level security shows the owner one collection at a time, but not within these statements.
ALTER TABLE collections NO FORCE ROW LEVEL SECURITY

-- name: collections
SELECT collection FROM collections ORDER BY collection

-- name: show_own_collection
ALTER TABLE collections FORCE ROW LEVEL SECURITY

-- name: begin
SELECT set_config('waylore.collection', %(collection)s, true)
