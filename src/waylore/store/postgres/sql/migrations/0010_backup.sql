-- A backup reads the rows of all collections as a role of its own, and changes none. The policy holds only for a session that has
-- taken the role: a member, such as the owner, still sees one collection at a time. A migration that adds a table grants SELECT
-- on it to this role and makes the same policy; otherwise backups are refused.
DO $$
BEGIN
  IF to_regrole('waylore_backup') IS NULL THEN
    CREATE ROLE waylore_backup NOLOGIN;
  END IF;
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    EXECUTE format('GRANT waylore_backup TO %I', current_user);
  END IF;
EXCEPTION
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'waylore: % may not make roles: a superuser has to make backups', current_user;
  WHEN duplicate_object OR unique_violation THEN
    EXECUTE format('GRANT waylore_backup TO %I', current_user);
END
$$;
DO $$
DECLARE
  of_collection text;
BEGIN
  IF to_regrole('waylore_backup') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore TO waylore_backup;
    GRANT SELECT ON ALL TABLES IN SCHEMA waylore TO waylore_backup;
    FOR of_collection IN
      SELECT relname FROM pg_class WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r' AND relrowsecurity
    LOOP
      EXECUTE format('DROP POLICY IF EXISTS backup ON %I', of_collection);
      EXECUTE format(
        'CREATE POLICY backup ON %I FOR SELECT TO waylore_backup USING (current_user = ''waylore_backup'')', of_collection);
    END LOOP;
  END IF;
END
$$;
