-- A backup reads the tables as a role of its own, which is that of the store. A migration that adds a table grants SELECT on it.
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
BEGIN
  IF to_regrole('waylore_backup') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore_cells TO waylore_backup;
    GRANT SELECT ON ALL TABLES IN SCHEMA waylore_cells TO waylore_backup;
  END IF;
END
$$;
