-- Vectors have eight bits per dimension. Those of passages are whole numbers in half precision, which pgvector searches.
-- Those of entities are found by their bits. The store converts the copies (earlier/postgres_vectors.py).
ALTER TABLE passage_vectors NO FORCE ROW LEVEL SECURITY;
ALTER TABLE entity_vectors NO FORCE ROW LEVEL SECURITY;
ALTER TABLE staged NO FORCE ROW LEVEL SECURITY;
CREATE TEMPORARY TABLE half_passages ON COMMIT DROP AS
SELECT collection, id, document, access, halfvec_send(vector) AS vector FROM passage_vectors;
CREATE TEMPORARY TABLE half_entities ON COMMIT DROP AS
SELECT collection, id, halfvec_send(vector) AS vector FROM entity_vectors;
CREATE TEMPORARY TABLE half_staged ON COMMIT DROP AS
SELECT collection, model, kind, id, place, halfvec_send(vector) AS vector FROM staged WHERE vector IS NOT NULL;
CREATE TEMPORARY TABLE staged_facts ON COMMIT DROP AS
SELECT collection, model, kind, id, place, code FROM staged WHERE vector IS NULL;

-- The indexes of vectors are built again in the background.
TRUNCATE passage_vectors;
ALTER TABLE passage_vectors FORCE ROW LEVEL SECURITY;
DO $$
DECLARE
  built text;
BEGIN
  FOR built IN SELECT indexname FROM pg_indexes WHERE schemaname = 'waylore' AND indexname LIKE 'hnsw\_%\_passage\_%' LOOP
    EXECUTE format('DROP INDEX %I', built);
  END LOOP;
END
$$;

DROP TABLE entity_vectors;
CREATE TABLE entity_vectors (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  dimension int4 NOT NULL,
  bits varbit NOT NULL,
  code bytea NOT NULL,
  PRIMARY KEY (collection, id)
) WITH (toast_tuple_target = 8160);
ALTER TABLE entity_vectors ALTER COLUMN code SET STORAGE EXTERNAL;

DROP TABLE staged;
CREATE TABLE staged (
  collection int8 NOT NULL,
  model text NOT NULL,
  kind text NOT NULL,
  id uuid NOT NULL,  -- of a fact: the passage
  place int4 NOT NULL,  -- of a fact in its pack; otherwise 0
  code bytea NOT NULL,
  PRIMARY KEY (collection, kind, id, place, model)
) WITH (toast_tuple_target = 8160);
INSERT INTO staged (collection, model, kind, id, place, code) SELECT * FROM staged_facts;

DO $$
DECLARE
  of_collection text;
  writer text;
  own text := 'collection = (SELECT nullif(current_setting(''waylore.collection'', true), '''')::int8)';
BEGIN
  FOREACH of_collection IN ARRAY ARRAY['entity_vectors', 'staged'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', of_collection);
    EXECUTE format('CREATE POLICY own ON %I USING (%s) WITH CHECK (%s)', of_collection, own, own);
  END LOOP;
  -- Roles that may write to the older tables may write to the new ones.
  FOR writer IN
    SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = 'accesses'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON entity_vectors, staged TO %I', writer);
  END LOOP;
END
$$;
