-- What became of each job. The queue itself is procrastinate's, in the same schema. Times are in seconds since 1970.
CREATE TABLE waylore_jobs.jobs (
  id uuid PRIMARY KEY,
  collection text NOT NULL,
  caller text NOT NULL,        -- who asked for it
  kind text NOT NULL,
  work jsonb NOT NULL,         -- what it works on, and how
  state text NOT NULL DEFAULT 'waiting',
  queued int8,                 -- its number in procrastinate's queue
  run int4 NOT NULL DEFAULT 0, -- how often it was begun: who began an earlier run has lost it
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
