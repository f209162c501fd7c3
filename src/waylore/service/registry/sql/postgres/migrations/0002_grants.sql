-- An application reads and writes the tables. Only their owner migrates them. The role is that of the store.
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NULL THEN
    CREATE ROLE waylore_app NOLOGIN;
  END IF;
EXCEPTION
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'waylore: % may not create roles: only it can use this schema', current_user;
  WHEN duplicate_object OR unique_violation THEN
    NULL;  -- a session in another database has just created it
END
$$;
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore_service TO waylore_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA waylore_service TO waylore_app;
    REVOKE INSERT, UPDATE, DELETE ON waylore_service.migrations, waylore_service.registry FROM waylore_app;
  END IF;
END
$$;
