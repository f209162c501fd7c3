-- Every statement about jobs by name. What puts them into the queue and takes them out is procrastinate's own.

-- name: lock_migrations
-- Numbers beside those of the store, the catalogue and the registry, which may be in the same database.
SELECT pg_advisory_xact_lock(2003789428, 5)

-- name: has_migrations
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'waylore_jobs' AND c.relname = 'migrations'

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS waylore_jobs

-- name: has_queue
SELECT to_regclass('waylore_jobs.procrastinate_jobs') IS NOT NULL

-- name: create_migrations
CREATE TABLE IF NOT EXISTS waylore_jobs.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())

-- name: applied_migrations
SELECT number FROM waylore_jobs.migrations

-- name: record_migration
INSERT INTO waylore_jobs.migrations (number, name) VALUES (%s, %s)

-- name: add
INSERT INTO waylore_jobs.jobs (id, collection, caller, kind, work, made, changed)
VALUES (%(id)s, %(collection)s, %(caller)s, %(kind)s, %(work)s, %(now)s, %(now)s)

-- name: queue
UPDATE waylore_jobs.jobs SET queued = %(queued)s WHERE id = %(id)s

-- name: begin
-- Nothing, if there is nothing left to do.
UPDATE waylore_jobs.jobs
SET state = 'running', run = run + 1, began = coalesce(began, %(now)s), changed = %(now)s, version = version + 1
WHERE id = %(id)s AND state IN ('waiting', 'running')
RETURNING id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version

-- name: tell
-- Nothing, if the run was lost to another.
UPDATE waylore_jobs.jobs SET progress = %(progress)s, changed = %(now)s, version = version + 1
WHERE id = %(id)s AND run = %(run)s AND state = 'running'
RETURNING is_cancelled

-- name: end
UPDATE waylore_jobs.jobs
SET state = %(state)s, result = %(result)s, problem = %(problem)s, ended = %(now)s, changed = %(now)s, version = version + 1
WHERE id = %(id)s AND run = %(run)s AND state = 'running'
RETURNING id

-- name: put_back
UPDATE waylore_jobs.jobs SET state = 'waiting', problem = %(problem)s, changed = %(now)s, version = version + 1
WHERE id = %(id)s AND run = %(run)s AND state = 'running'

-- name: cancel
-- A job that waits is cancelled at once; one that runs is told to stop. The last column is its number in the queue.
UPDATE waylore_jobs.jobs
SET is_cancelled = true, changed = %(now)s, version = version + 1,
  state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END,
  ended = CASE state WHEN 'waiting' THEN %(now)s ELSE ended END
WHERE id = %(id)s AND collection = %(collection)s AND state IN ('waiting', 'running')
RETURNING id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version, queued

-- name: job
SELECT id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version
FROM waylore_jobs.jobs WHERE id = %(id)s AND collection = %(collection)s

-- name: jobs
-- The newest first, from before a place on; those of one caller, or of all.
SELECT id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version
FROM waylore_jobs.jobs
WHERE collection = %(collection)s AND (made, id) < (%(made)s, %(id)s::uuid)
  AND (%(caller)s::text IS NULL OR caller = %(caller)s)
ORDER BY made DESC, id DESC LIMIT %(limit)s

-- name: unfinished
-- Which of these are waiting or running.
SELECT id FROM waylore_jobs.jobs WHERE id = ANY(%(ids)s::uuid[]) AND ended IS NULL

-- name: sweep
DELETE FROM waylore_jobs.jobs WHERE ended < %(before)s

-- name: take_over
-- Puts back what dead workers were at, and what a worker could not say that it had let go.
-- Whoever else does this at the moment leaves the locked rows alone.
SELECT procrastinate_retry_job_v2(lost.id, now(), NULL, NULL, NULL)
FROM (
  SELECT held.id
  FROM waylore_jobs.procrastinate_jobs held
  LEFT JOIN waylore_jobs.procrastinate_workers worker ON worker.id = held.worker_id
  LEFT JOIN waylore_jobs.jobs known ON known.queued = held.id
  WHERE held.status = 'doing' AND (
    worker.id IS NULL
    OR worker.last_heartbeat < now() - make_interval(secs => %(seconds)s)
    OR (known.state <> 'running' AND known.changed < %(now)s - %(seconds)s)
  )
  FOR UPDATE OF held SKIP LOCKED
) lost
