-- A document may expire. The index finds when the first document of a permission expires, and has documents that do alone.
ALTER TABLE documents ADD COLUMN expires_at int8;
CREATE INDEX documents_by_expiry ON documents (collection, access, expires_at) WHERE expires_at IS NOT NULL;

-- The words of a passage of a user name its permission, so that a search for a user reads no postings of others. Row-level
-- security shows the owner one collection at a time, but not within these statements.
ALTER TABLE accesses NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_terms NO FORCE ROW LEVEL SECURITY;
UPDATE passage_terms t SET words = array_to_tsvector(ARRAY(
  SELECT CASE WHEN w.word ~ '^[0-9]+t[0-9]+$' THEN w.word || 'a' || a.access ELSE w.word END
  FROM unnest(tsvector_to_array(t.words)) w(word)))
FROM accesses a JOIN passages p ON p.collection = a.collection AND p.access = a.access
WHERE a."user" > '' AND t.collection = p.collection AND t.number = p.number;
ALTER TABLE accesses FORCE ROW LEVEL SECURITY;
ALTER TABLE passages FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_terms FORCE ROW LEVEL SECURITY;
