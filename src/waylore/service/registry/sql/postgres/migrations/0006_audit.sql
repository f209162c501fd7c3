-- Changes of keys, by whom and when. It has ids and labels, and no secret. Rows are never changed; old ones may be deleted. Each
-- row has a hash of its values and of the hash before.
CREATE TABLE waylore_service.audit (
  number int8 PRIMARY KEY,
  at int8 NOT NULL,             -- microseconds since 1970
  author text NOT NULL,
  request text NOT NULL,
  verb text NOT NULL,
  key text NOT NULL,
  labels_before text NOT NULL,  -- in JSON; ["*"] for all
  labels_after text NOT NULL,
  hash bytea NOT NULL
);
CREATE FUNCTION waylore_service.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of the audit log are never changed, and are kept for 400 days';
END
$$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON waylore_service.audit FOR EACH ROW
  EXECUTE FUNCTION waylore_service.refuse_audit_change();
CREATE TRIGGER audit_is_kept BEFORE DELETE ON waylore_service.audit FOR EACH ROW
  WHEN (old.at > (extract(epoch FROM now()) - 400 * 86400) * 1000000) EXECUTE FUNCTION waylore_service.refuse_audit_change();
DO $$
DECLARE
  writer text;
BEGIN
  -- Whoever may change keys may add to this table: waylore_app, or members of a role with its old name.
  FOR writer IN
    SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = 'waylore_service.keys'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT SELECT, INSERT ON waylore_service.audit TO %I', writer);
  END LOOP;
  IF to_regrole('waylore_backup') IS NOT NULL THEN
    GRANT SELECT ON waylore_service.audit TO waylore_backup;
  END IF;
END
$$;
