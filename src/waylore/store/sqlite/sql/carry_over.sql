-- Statements that carry a file over from the layout before packs (carry_over.py).

-- name: collections
SELECT row, dimension FROM collections

-- name: passages
SELECT p.row, p.id, p.access, p.text FROM passages p WHERE p.collection = :collection ORDER BY p.row

-- name: mentions
SELECT m.passage, m.entity_id, m.passage_id, m.count, m.is_own
FROM carray(:rows) r CROSS JOIN old_mentions m INDEXED BY mentions_of_passage ON m.passage = r.value

-- name: facts
SELECT s.passage, f.id, f.subject_id, s.subject, s.predicate, s.object, f.object_id, s.passage_id, s.statement, s.weight,
  s.confidence, s.source, s.status, s.valid_from, s.valid_to, s.recorded_at, 0, NULL, s.vector
FROM carray(:rows) r CROSS JOIN old_supports s INDEXED BY supports_of_passage ON s.passage = r.value
CROSS JOIN old_facts f ON f.row = s.fact

-- name: insert_assertion
INSERT INTO assertions (collection, fact, source, strength, tie, passage, place, access, status, valid_from, valid_to)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_statement_vectors
INSERT INTO statement_vectors (row, codes) VALUES (?, ?)

-- name: usage
INSERT INTO usage (collection, kind, row, access_count, last_accessed)
SELECT p.collection, u.kind, u.row, u.access_count, u.last_accessed FROM old_usage u JOIN passages p ON p.row = u.row
WHERE u.kind = 'passage'
UNION ALL
SELECT f.collection, u.kind, f.tie, u.access_count, u.last_accessed FROM old_usage u JOIN old_facts f ON f.row = u.row
WHERE u.kind = 'fact' AND EXISTS (SELECT 1 FROM assertions s WHERE s.collection = f.collection AND s.fact = f.tie)

-- name: counts
-- Untyped facts have become pairs, which are counted by permission only.
UPDATE collections SET facts = (SELECT count(DISTINCT s.fact) FROM assertions s WHERE s.collection = collections.row);
UPDATE accesses SET assertions = coalesce(
  (SELECT sum(k.facts) FROM passages p JOIN packs k ON k.row = p.row WHERE p.access = accesses.row), 0);

-- name: staged
-- Vectors of facts have other keys now: the next `reembed` stages them again.
INSERT INTO staged (collection, model, kind, row, place, vector)
SELECT collection, model, kind, row, 0, vector FROM old_staged WHERE kind <> 'fact'
