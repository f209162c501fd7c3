-- The table becomes the queue. Jobs of the earlier queue, procrastinate's, keep their upload folder and wait to be taken.
ALTER TABLE waylore_jobs.jobs
  ADD COLUMN spool text NOT NULL DEFAULT '',        -- upload folder that the worker must see; empty: any worker
  ADD COLUMN retries int4 NOT NULL DEFAULT 0,       -- runs that ended with a transient error
  ADD COLUMN due timestamptz NOT NULL DEFAULT now(), -- a waiting job does not run before
  ADD COLUMN held_until timestamptz;                -- a running job may be taken by another worker after
UPDATE waylore_jobs.jobs SET state = 'waiting' WHERE state = 'running';
DO $$
DECLARE item text;
BEGIN
  IF to_regclass('waylore_jobs.procrastinate_jobs') IS NOT NULL THEN
    UPDATE waylore_jobs.jobs SET spool = queue_name FROM waylore_jobs.procrastinate_jobs earlier
    WHERE earlier.id = jobs.queued AND queue_name <> 'anywhere';
  END IF;
  FOR item IN SELECT tablename FROM pg_tables WHERE schemaname = 'waylore_jobs' AND starts_with(tablename, 'procrastinate_') LOOP
    EXECUTE format('DROP TABLE waylore_jobs.%I CASCADE', item);
  END LOOP;
  FOR item IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'waylore_jobs'::regnamespace AND starts_with(proname, 'procrastinate_') LOOP
    EXECUTE format('DROP FUNCTION %s CASCADE', item);
  END LOOP;
  FOR item IN SELECT typname FROM pg_type WHERE typnamespace = 'waylore_jobs'::regnamespace AND starts_with(typname, 'procrastinate_') LOOP
    EXECUTE format('DROP TYPE waylore_jobs.%I CASCADE', item);
  END LOOP;
END $$;
ALTER TABLE waylore_jobs.jobs DROP COLUMN queued; -- and its index
CREATE INDEX jobs_unfinished ON waylore_jobs.jobs (collection, made, id) WHERE ended IS NULL;
CREATE UNIQUE INDEX jobs_running ON waylore_jobs.jobs (collection) WHERE state = 'running'; -- one at a time

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
    GRANT USAGE ON SCHEMA waylore_jobs TO waylore_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA waylore_jobs TO waylore_app;
    REVOKE INSERT, UPDATE, DELETE ON waylore_jobs.migrations FROM waylore_app;
  END IF;
END
$$;
