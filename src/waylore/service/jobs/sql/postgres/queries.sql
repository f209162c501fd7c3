-- Every statement about jobs by name.

-- name: lock_migrations
-- The store, the catalogue and the registry use other numbers, because they may be in the same database.
SELECT pg_advisory_xact_lock(2003789428, 5)

-- name: has_migrations
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'waylore_jobs' AND c.relname = 'migrations'

-- name: create_migrations
CREATE SCHEMA IF NOT EXISTS waylore_jobs;
CREATE TABLE IF NOT EXISTS waylore_jobs.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE waylore_jobs.migrations ADD COLUMN IF NOT EXISTS checksum text NOT NULL DEFAULT ''

-- name: applied_migrations
-- Number 0 records that the schema was renamed. It is no migration.
SELECT number, checksum FROM waylore_jobs.migrations WHERE number > 0

-- name: record_migration
INSERT INTO waylore_jobs.migrations (number, name, checksum) VALUES (%s, %s, %s)
ON CONFLICT (number) DO UPDATE SET checksum = excluded.checksum

-- name: add
INSERT INTO waylore_jobs.jobs (id, collection, caller, kind, work, spool, made, changed)
VALUES (%(id)s, %(collection)s, %(caller)s, %(kind)s, %(work)s, %(spool)s, %(now)s, %(now)s)
ON CONFLICT (id) DO NOTHING

-- name: count_waiting
SELECT count(*) FROM waylore_jobs.jobs WHERE ended IS NULL AND state = 'waiting' AND caller = %(caller)s

-- name: take
-- A job can be taken if it waits and is due, or if its worker did not extend its time, and if no other job of the collection is
-- running. An earlier job of the collection comes first if it has the same caller or URI, or if one of the two has no URI, which
-- means the whole collection. Each collection and each caller offer their first job first. Callers with fewer running jobs come
-- first, then those whose last job ended earlier. SKIP LOCKED: another worker that takes a job at the same moment has that row.
WITH unfinished AS (
  SELECT id, collection, caller, work ->> 'uri' AS uri, made,
    spool IN ('', %(spool)s) AND CASE state WHEN 'waiting' THEN due <= now() ELSE held_until < now() END AS is_due,
    count(*) FILTER (WHERE state = 'running' AND held_until >= now()) OVER (PARTITION BY caller) AS running
  FROM waylore_jobs.jobs WHERE ended IS NULL
), last_ends AS (
  SELECT caller, max(ended) AS last_end
  FROM (SELECT caller, ended FROM waylore_jobs.jobs WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT 256) latest GROUP BY caller
), offered AS (
  SELECT DISTINCT ON (collection) id, caller, made, running, coalesce(last_end, 0) AS last_end
  FROM unfinished next LEFT JOIN last_ends USING (caller)
  WHERE is_due AND NOT EXISTS (
    SELECT FROM waylore_jobs.jobs other
    WHERE other.collection = next.collection AND other.ended IS NULL AND other.id <> next.id
      AND (other.state = 'running' OR ((other.made, other.id) < (next.made, next.id)
        AND (other.caller = next.caller OR coalesce(other.work ->> 'uri' = next.uri, true))))
  )
  ORDER BY collection, running, last_end, made, id
), ranked AS (
  SELECT id AS next_id, running + row_number() OVER (PARTITION BY caller ORDER BY made, id) AS place, last_end FROM offered
)
UPDATE waylore_jobs.jobs
SET state = 'running', run = run + 1, held_until = now() + make_interval(secs => %(seconds)s),
  began = coalesce(began, %(now)s), changed = %(now)s, version = version + 1
WHERE id = (
  SELECT id FROM waylore_jobs.jobs next JOIN ranked ON next_id = id
  WHERE ended IS NULL AND CASE state WHEN 'waiting' THEN due <= now() ELSE held_until < now() END
    AND (place = 1 OR NOT %(is_reserve)s)
  ORDER BY place, last_end, made, id LIMIT 1 FOR UPDATE OF next SKIP LOCKED
)
RETURNING id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version, spool, retries

-- name: hold
UPDATE waylore_jobs.jobs SET held_until = now() + make_interval(secs => %(seconds)s)
FROM unnest(%(ids)s::uuid[], %(runs)s::int4[]) AS held (id, run)
WHERE jobs.id = held.id AND jobs.run = held.run AND state = 'running'

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
-- A cancelled job ends here: it must not run again. Returns no row if another worker has started a later run.
UPDATE waylore_jobs.jobs
SET state = CASE WHEN is_cancelled THEN 'cancelled' ELSE 'waiting' END,
  problem = CASE WHEN is_cancelled THEN '' ELSE %(problem)s END,
  ended = CASE WHEN is_cancelled THEN %(now)s ELSE ended END,
  retries = retries + (%(problem)s <> '')::int4, due = now() + make_interval(secs => %(delay)s),
  changed = %(now)s, version = version + 1
WHERE id = %(id)s AND run = %(run)s AND state = 'running'
RETURNING state

-- name: cancel
-- A waiting job ends at once. A running job is marked, and its worker stops it.
UPDATE waylore_jobs.jobs
SET is_cancelled = true, changed = %(now)s, version = version + 1,
  state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END,
  ended = CASE state WHEN 'waiting' THEN %(now)s ELSE ended END
WHERE id = %(id)s AND collection = %(collection)s AND state IN ('waiting', 'running')
RETURNING id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version, spool, retries

-- name: get_job
SELECT id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version, spool, retries
FROM waylore_jobs.jobs WHERE id = %(id)s AND collection = %(collection)s

-- name: list_jobs
-- Newest first, older than a position, of one caller or of all.
SELECT id, collection, caller, kind, work, state, run, is_cancelled, progress, result, problem, made, began, ended, version, spool, retries
FROM waylore_jobs.jobs
WHERE collection = %(collection)s AND (made, id) < (%(made)s, %(id)s::uuid)
  AND (%(caller)s::text IS NULL OR caller = %(caller)s)
ORDER BY made DESC, id DESC LIMIT %(limit)s

-- name: find_cancelled
-- Those of the ids whose jobs a caller has cancelled.
SELECT id FROM waylore_jobs.jobs WHERE id = ANY(%(ids)s::uuid[]) AND is_cancelled

-- name: find_unfinished
-- Those of the ids whose jobs are waiting or running.
SELECT id FROM waylore_jobs.jobs WHERE id = ANY(%(ids)s::uuid[]) AND ended IS NULL

-- name: delete_ended
DELETE FROM waylore_jobs.jobs WHERE ended < %(before)s
