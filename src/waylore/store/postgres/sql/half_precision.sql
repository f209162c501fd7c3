-- Statements that convert vectors from half precision to eight bits per dimension (earlier/postgres_vectors.py).

-- name: begin
SELECT set_config('waylore.collection', %(collection)s, true)

-- name: passages
SELECT collection, id, document, access, vector FROM half_passages ORDER BY collection

-- name: entities
SELECT collection, id, vector FROM half_entities ORDER BY collection

-- name: staged
SELECT collection, model, kind, id, place, vector FROM half_staged ORDER BY collection

-- name: insert_staged
INSERT INTO staged (collection, model, kind, id, place, code)
SELECT %s, * FROM unnest(%b::text[], %b::text[], %b::uuid[], %b::int4[], %b::bytea[])
