-- Every statement about jobs by name. The statements of the queue itself are procrastinate's own.

-- name: lock_migrations
-- The store, the catalogue and the registry use other numbers, because they may be in the same database.
SELECT pg_advisory_xact_lock(2003789428, 5)

-- name: has_migrations
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'waylore_jobs' AND c.relname = 'migrations'

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS waylore_jobs

-- name: has_queue
SELECT to_regclass('waylore_jobs.procrastinate_jobs') IS NOT NULL

-- name: create_migrations
CREATE TABLE IF NOT EXISTS waylore_jobs.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE waylore_jobs.migrations ADD COLUMN IF NOT EXISTS checksum text NOT NULL DEFAULT ''

-- name: applied_migrations
-- Number 0 records that the schema was renamed. It is no migration.
SELECT number, checksum FROM waylore_jobs.migrations WHERE number > 0

-- name: record_migration
INSERT INTO waylore_jobs.migrations (number, name, checksum) VALUES (%s, %s, %s)
ON CONFLICT (number) DO UPDATE SET checksum = excluded.checksum

-- name: add
INSERT INTO waylore_jobs.jobs (id, collection, caller, kind, work, made, changed)
VALUES (%(id)s, %(collection)s, %(caller)s, %(kind)s, %(work)s, %(now)s, %(now)s)

-- name: set_queue_number
UPDATE waylore_jobs.jobs SET queued = %(queued)s WHERE id = %(id)s

-- name: start_run
-- Returns no row if the job has ended.
UPDATE waylore_jobs.jobs
SET state = 'running', run = run + 1, began = coalesce(began, %(now)s), changed = %(now)s, version = version + 1
WHERE id = %(id)s AND state IN ('waiting', 'running')
RETURNING id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version

-- name: report_progress
-- Returns no row if another worker has started a later run.
UPDATE waylore_jobs.jobs SET progress = %(progress)s, changed = %(now)s, version = version + 1
WHERE id = %(id)s AND run = %(run)s AND state = 'running'
RETURNING is_cancelled

-- name: finish
-- A run that fails after its job was cancelled ends as cancelled. Returns no row if another worker has started a later run.
UPDATE waylore_jobs.jobs
SET state = CASE WHEN is_cancelled AND %(state)s = 'failed' THEN 'cancelled' ELSE %(state)s END,
  problem = CASE WHEN is_cancelled AND %(state)s = 'failed' THEN '' ELSE %(problem)s END,
  result = %(result)s, ended = %(now)s, changed = %(now)s, version = version + 1
WHERE id = %(id)s AND run = %(run)s AND state = 'running'
RETURNING id

-- name: requeue
-- A cancelled job ends here: it must not run again.
UPDATE waylore_jobs.jobs
SET state = CASE WHEN is_cancelled THEN 'cancelled' ELSE 'waiting' END,
  problem = CASE WHEN is_cancelled THEN '' ELSE %(problem)s END,
  ended = CASE WHEN is_cancelled THEN %(now)s ELSE ended END,
  changed = %(now)s, version = version + 1
WHERE id = %(id)s AND run = %(run)s AND state = 'running'
RETURNING state

-- name: cancel
-- A waiting job ends at once. A running job is marked, and its worker stops it. The last column is its number in the queue.
UPDATE waylore_jobs.jobs
SET is_cancelled = true, changed = %(now)s, version = version + 1,
  state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END,
  ended = CASE state WHEN 'waiting' THEN %(now)s ELSE ended END
WHERE id = %(id)s AND collection = %(collection)s AND state IN ('waiting', 'running')
RETURNING id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version, queued

-- name: get_job
SELECT id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version
FROM waylore_jobs.jobs WHERE id = %(id)s AND collection = %(collection)s

-- name: list_jobs
-- Newest first, older than a position, of one caller or of all.
SELECT id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version
FROM waylore_jobs.jobs
WHERE collection = %(collection)s AND (made, id) < (%(made)s, %(id)s::uuid)
  AND (%(caller)s::text IS NULL OR caller = %(caller)s)
ORDER BY made DESC, id DESC LIMIT %(limit)s

-- name: find_unfinished
-- Those of the ids whose jobs are waiting or running.
SELECT id FROM waylore_jobs.jobs WHERE id = ANY(%(ids)s::uuid[]) AND ended IS NULL

-- name: delete_ended
DELETE FROM waylore_jobs.jobs WHERE ended < %(before)s

-- name: requeue_lost
-- Puts jobs of dead workers back into procrastinate's queue, and jobs whose worker could not report that it stopped.
-- SKIP LOCKED: another process that runs this statement at the same time has those rows already.
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
