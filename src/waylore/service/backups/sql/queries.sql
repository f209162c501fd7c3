-- Every statement of backups of PostgreSQL, by name.

-- name: role
-- The role that reads: waylore_backup for a member, unless the login bypasses row-level security.
SELECT CASE WHEN NOT (rolsuper OR rolbypassrls)
    AND EXISTS (SELECT 1 FROM pg_roles b WHERE b.rolname = 'waylore_backup' AND pg_has_role(b.oid, 'MEMBER'))
  THEN 'waylore_backup' ELSE 'none' END
FROM pg_roles WHERE rolname = current_user

-- name: begin
-- No SELECT, so that the snapshot is made after the tables were locked. A backup may take longer than a request.
SET LOCAL ROLE {role};
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0

-- name: lock
-- Readers and writers go on; a migration waits.
LOCK TABLE {tables} IN ACCESS SHARE MODE

-- name: tables
-- The tables with their columns, whether the role reads all of their rows, and whether row-level security also binds their
-- owner. A table that refers to another one comes later. The vectors of large collections are in tables of their own, which are
-- not listed: their rows are saved with those of the shared tables.
SELECT n.nspname, c.relname, array_agg(a.attname::text ORDER BY a.attnum),
  has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AND (NOT row_security_active(c.oid)
    OR current_user = 'waylore_backup' AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'backup')),
  c.relforcerowsecurity
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE n.nspname = ANY(%(schemas)s) AND c.relkind = 'r' AND c.relname <> 'migrations'
  AND c.relname !~ '^(passage|entity)_vectors_[0-9a-f]{16}$'
GROUP BY n.oid, c.oid
ORDER BY EXISTS (SELECT 1 FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f'), 1, 2

-- name: login
SELECT session_user::text

-- name: collections
SELECT name FROM waylore.collections ORDER BY name COLLATE "C"

-- name: large_collections
SELECT collection FROM waylore.collections WHERE own_vectors ORDER BY collection

-- name: rows
-- Without those of tables that inherit: while one of these is being filled, its rows are in the shared table too.
SELECT {columns} FROM ONLY {table}

-- name: copy_out
COPY ({rows}) TO STDOUT (FORMAT binary)

-- name: copy_in
COPY {table} ({columns}) FROM STDIN (FORMAT binary)

-- name: schemas
SELECT nspname FROM pg_namespace WHERE nspname = ANY(%(schemas)s)

-- name: truncate
-- Migrations insert some rows.
TRUNCATE {tables}

-- name: drop_search_indexes
-- The points on a Qdrant cluster belong to the database that was saved: a copy must not change them.
TRUNCATE waylore.indexes, waylore.outbox

-- name: share_vectors
-- All vectors were restored to the shared tables. Large collections get tables of their own when they are opened.
UPDATE waylore.collections SET own_vectors = false WHERE own_vectors

-- name: lift
-- COPY does not work with row-level security.
ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY

-- name: force
ALTER TABLE {table} FORCE ROW LEVEL SECURITY

-- name: identities
-- The columns that a sequence numbers, and the sequence of each.
SELECT n.nspname, c.relname, a.attname, pg_get_serial_sequence(format('%%I.%%I', n.nspname, c.relname), a.attname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = ANY(%(schemas)s) AND c.relkind = 'r' AND a.attidentity <> ''

-- name: continue
SELECT setval(%(sequence)s, (SELECT coalesce(max({column}), 0) + 1 FROM {table}), false)

-- name: analyze
ANALYZE {tables}
