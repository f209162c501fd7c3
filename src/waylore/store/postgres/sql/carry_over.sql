-- Statements that carry a schema over from the layout before packs (carry_over.py).

-- name: show_all_collections
-- Row-level security shows the owner one collection at a time, but not within these statements.
ALTER TABLE collections NO FORCE ROW LEVEL SECURITY

-- name: collections
SELECT collection, dimension FROM collections ORDER BY collection

-- name: show_own_collection
ALTER TABLE collections FORCE ROW LEVEL SECURITY

-- name: begin
SELECT set_config('waylore.collection', %(collection)s, true)

-- name: passages
SELECT id, access, text FROM passages WHERE collection = %(collection)s AND id > %(after)s::uuid ORDER BY id LIMIT %(limit)s

-- name: mentions
SELECT m.passage, m.entity, m.passage, m.count, m.is_own FROM unnest(%(ids)s::uuid[]) i(id) CROSS JOIN LATERAL (
  SELECT n.* FROM mentions n WHERE n.collection = %(collection)s AND n.passage = i.id OFFSET 0) m

-- name: facts
SELECT s.passage, f.id, f.subject, s.subject, s.predicate, s.object, f.object, s.passage, s.statement, s.weight, s.confidence,
  s.source, s.status, s.valid_from, s.valid_to, s.recorded_at, 0, NULL::int8, s.vector
FROM unnest(%(ids)s::uuid[]) i(id)
CROSS JOIN LATERAL (SELECT z.* FROM supports z WHERE z.collection = %(collection)s AND z.passage = i.id OFFSET 0) s
CROSS JOIN LATERAL (SELECT g.* FROM facts g WHERE g.collection = %(collection)s AND g.id = s.fact LIMIT 1) f

-- name: insert_assertion
INSERT INTO assertions (collection, fact, source, rank, passage, place, access, status, valid_from, valid_to)
SELECT %s, u.fact, u.source, -u.strength, u.passage, u.place, u.access, u.status, u.valid_from, u.valid_to
FROM unnest(%b::uuid[], %b::int2[], %b::float8[], %b::uuid[], %b::int4[], %b::int4[], %b::int2[], %b::int8[], %b::int8[])
  u(fact, source, strength, passage, place, access, status, valid_from, valid_to)

-- name: staged
-- Vectors of facts have other keys now: the next `reembed` stages them again.
INSERT INTO staged (collection, model, kind, id, place, vector)
SELECT collection, model, kind, id, 0, vector FROM old_staged WHERE collection = %(collection)s AND kind <> 'fact'

-- name: delete_untyped_edges
-- Untyped facts have become pairs.
DELETE FROM edges x WHERE x.collection = %(collection)s AND x.predicate = ANY(%(predicates)s::int8[])
  AND NOT EXISTS (SELECT 1 FROM assertions s WHERE s.collection = %(collection)s AND s.fact = x.fact)

-- name: delete_untyped_usage
DELETE FROM usage u WHERE u.collection = %(collection)s
  AND NOT EXISTS (SELECT 1 FROM assertions s WHERE s.collection = %(collection)s AND s.fact = u.id)
  AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = u.id)

-- name: count_facts
UPDATE collections SET facts = (SELECT count(DISTINCT s.fact) FROM assertions s WHERE s.collection = %(collection)s)
WHERE collection = %(collection)s

-- name: count_stated
UPDATE accesses a SET assertions = coalesce((SELECT sum(cardinality(k.facts)) FROM passages p
  JOIN packs k ON k.collection = p.collection AND k.passage = p.id
  WHERE p.collection = %(collection)s AND p.access = a.access), 0)
WHERE a.collection = %(collection)s
