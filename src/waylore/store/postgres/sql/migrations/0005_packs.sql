-- What a passage says becomes one pack. What documents share stays rows, which are narrow: by entity and by fact.
-- The store fills the tables from the old ones (carry_over.py), and 0006 drops these.
ALTER TABLE staged RENAME TO old_staged;
ALTER INDEX staged_pkey RENAME TO old_staged_pkey;

CREATE TABLE packs (
  collection int8 NOT NULL,
  passage uuid NOT NULL,
  facts uuid[] NOT NULL,
  pack bytea NOT NULL,
  PRIMARY KEY (collection, passage)
) WITH (toast_tuple_target = 4080);

CREATE TABLE statement_vectors (
  collection int8 NOT NULL,
  passage uuid NOT NULL,
  codes bytea NOT NULL,
  PRIMARY KEY (collection, passage)
) WITH (toast_tuple_target = 8160);
ALTER TABLE statement_vectors ALTER COLUMN codes SET STORAGE EXTERNAL;

CREATE TABLE assertions (
  collection int8 NOT NULL,
  rank float8 NOT NULL,  -- weight times confidence, negative
  valid_from int8,
  valid_to int8,
  fact uuid NOT NULL,
  passage uuid NOT NULL,
  place int4 NOT NULL,  -- of the fact in the pack
  access int4 NOT NULL,
  source int2 NOT NULL,  -- 0 is the most trusted
  status int2 NOT NULL,
  PRIMARY KEY (collection, fact, source, rank, passage)
);
CREATE INDEX unconfirmed_assertions ON assertions (collection, fact) WHERE status <> 1;

CREATE TABLE staged (
  collection int8 NOT NULL,
  model text NOT NULL,
  kind text NOT NULL,
  id uuid NOT NULL,  -- of a fact: the passage
  place int4 NOT NULL,  -- of a fact in its pack; otherwise 0
  vector halfvec,
  code bytea,  -- of a fact, in eight bits per dimension
  PRIMARY KEY (collection, kind, id, place, model)
) WITH (toast_tuple_target = 8160);

-- Rows are deleted one by one, by their complete key. If a statement joined the table with the keys, the planner might read
-- all rows of the collection instead, because its statistics may be those of other collections.
CREATE FUNCTION delete_mention(int8, uuid, int4, bool, int4, uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM waylore.mentions WHERE collection = $1 AND entity = $2 AND access = $3 AND passage = $6
    AND rank = -$5::int8 - CASE WHEN $4 THEN 4294967296 ELSE 0 END
$$;
CREATE FUNCTION delete_assertion(int8, uuid, int2, float8, uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM waylore.assertions WHERE collection = $1 AND fact = $2 AND source = $3 AND rank = $4 AND passage = $5
$$;
CREATE FUNCTION delete_edge(int8, uuid, int4, float8, uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM waylore.edges WHERE collection = $1 AND entity = $2 AND access = $3 AND rank = $4 AND fact = $5
$$;

DO $$
DECLARE
  of_collection text;
  writer text;
  own text := 'collection = (SELECT nullif(current_setting(''waylore.collection'', true), '''')::int8)';
BEGIN
  FOREACH of_collection IN ARRAY ARRAY['packs', 'statement_vectors', 'assertions', 'staged'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', of_collection);
    EXECUTE format('CREATE POLICY own ON %I USING (%s) WITH CHECK (%s)', of_collection, own, own);
  END LOOP;
  -- Whoever may write to the older tables may write to the new ones: waylore_app, or members of a role with its old name.
  FOR writer IN
    SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = 'accesses'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON packs, statement_vectors, assertions, staged TO %I', writer);
  END LOOP;
END
$$;
