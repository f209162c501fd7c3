-- A collection may have an index on a Qdrant cluster, which finds candidates (store/qdrant). The rows here stay the truth.
-- `tenant` marks the points of the collection there. While `passages_after` or `entities_after` is not null, the index is
-- being built: the items up to these ids are in it, and no search uses it.
CREATE TABLE indexes (
  collection int8 NOT NULL,
  tenant uuid NOT NULL,
  url text NOT NULL,  -- of each peer, separated by commas
  shards int4,
  replicas int4,
  passages_after uuid,
  entities_after uuid,
  PRIMARY KEY (collection)
);

-- Items that were changed since they were last sent to the index. A row is deleted when the index has confirmed the change.
CREATE TABLE outbox (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  version int8 NOT NULL,  -- of the collection, since the last change
  at timestamptz NOT NULL DEFAULT now(),  -- of the first change
  access int4 NOT NULL,
  kind int2 NOT NULL,  -- 0 for a passage, 1 for an entity, 2 for a tenant that was replaced
  PRIMARY KEY (collection, kind, id, access)
);
CREATE INDEX outbox_by_version ON outbox (collection, version);
CREATE INDEX outbox_of_access ON outbox (collection, kind, access);

DO $$
DECLARE
  added text;
  writer text;
  own text := 'collection = (SELECT nullif(current_setting(''waylore.collection'', true), '''')::int8)';
BEGIN
  FOREACH added IN ARRAY ARRAY['indexes', 'outbox'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', added);
    EXECUTE format('CREATE POLICY own ON %I USING (%s) WITH CHECK (%s)', added, own, own);
    -- Whoever may write to the older tables may write to these: waylore_app, or members of a role with its old name.
    FOR writer IN
      SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
      WHERE c.oid = 'accesses'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
    LOOP
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %I', added, writer);
    END LOOP;
    IF to_regrole('waylore_backup') IS NOT NULL THEN
      EXECUTE format('GRANT SELECT ON %I TO waylore_backup', added);
      EXECUTE format(
        'CREATE POLICY backup ON %I FOR SELECT TO waylore_backup USING (current_user = ''waylore_backup'')', added);
    END IF;
  END LOOP;
END
$$;
