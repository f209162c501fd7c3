-- Who wrote a document: the identity of a key or of a program.
ALTER TABLE documents ADD COLUMN author text NOT NULL DEFAULT '';

-- What was changed, by whom and when. It has ids and no content. Rows are never changed; old ones may be deleted. Each row has
-- a hash of its values and of the hash before.
CREATE TABLE audit (
  collection int8 NOT NULL,
  number int8 NOT NULL,
  at int8 NOT NULL,
  author text NOT NULL,
  request text NOT NULL,
  verb text NOT NULL,
  count int8 NOT NULL,
  documents bytea NOT NULL,  -- the first 100 ids
  labels_before text NOT NULL,
  labels_after text NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (collection, number)
);
ALTER TABLE audit ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON audit USING (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8))
  WITH CHECK (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8));
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of the audit log are never changed, and are kept for 400 days';
END
$$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit FOR EACH ROW
  WHEN (old.at > (extract(epoch FROM now()) - 400 * 86400) * 1000000) EXECUTE FUNCTION refuse_audit_change();
DO $$
DECLARE
  writer text;
BEGIN
  -- Whoever may write to the older tables may add to this one: waylore_app, or members of a role with its old name.
  FOR writer IN
    SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = 'accesses'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT SELECT, INSERT ON audit TO %I', writer);
  END LOOP;
  IF to_regrole('waylore_backup') IS NOT NULL THEN
    GRANT SELECT ON audit TO waylore_backup;
    CREATE POLICY backup ON audit FOR SELECT TO waylore_backup USING (current_user = 'waylore_backup');
  END IF;
END
$$;
