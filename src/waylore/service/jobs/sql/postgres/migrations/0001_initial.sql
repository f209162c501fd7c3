-- The state and the result of each job. The queue itself is procrastinate's, in the same schema. Times are in seconds since
-- 1970.
CREATE TABLE waylore_jobs.jobs (
  id uuid PRIMARY KEY,
  collection text NOT NULL,
  caller text NOT NULL,        -- id of the caller who submitted it
  kind text NOT NULL,
  work jsonb NOT NULL,         -- arguments of the work
  state text NOT NULL DEFAULT 'waiting',
  queued int8,                 -- id in procrastinate_jobs
  run int4 NOT NULL DEFAULT 0, -- number of starts; only the worker of the last one may change the row
  is_cancelled bool NOT NULL DEFAULT false,
  progress jsonb NOT NULL DEFAULT '{}',
  result jsonb,
  problem text NOT NULL DEFAULT '',
  made float8 NOT NULL,
  began float8,
  ended float8,
  changed float8 NOT NULL,
  version int8 NOT NULL DEFAULT 0
);
CREATE INDEX jobs_of_collection ON waylore_jobs.jobs (collection, made, id);
CREATE INDEX jobs_ended ON waylore_jobs.jobs (ended) WHERE ended IS NOT NULL;
CREATE INDEX jobs_queued ON waylore_jobs.jobs (queued);
