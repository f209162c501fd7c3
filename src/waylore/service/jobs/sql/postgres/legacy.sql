-- Statements that rename the schema of jobs to the new name of this product (see the store's legacy.sql). Procrastinate's
-- functions name no schema, so they move with it.

-- name: carry_queue
-- Rename the task of jobs that wait, or that a worker of the old release did not finish.
UPDATE waylore_jobs.procrastinate_jobs SET task_name = 'waylore.job' WHERE task_name = 'weft.job'
