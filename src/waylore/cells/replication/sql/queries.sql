-- Every statement of a move by logical replication, by name. The parts in braces are names and values for which PostgreSQL takes
-- no parameters.

-- ------------------------------------------------------------------------------------------- connections

-- name: settings
-- Limits of the operator must not end a copy, what is committed is on disk, and row-level security shows this collection.
SELECT set_config('synchronous_commit', 'on', false), set_config('waylore.collection', %(collection)s, false),
  (SELECT count(set_config(name, '0', false)) FROM pg_settings WHERE name IN
    ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'))

-- name: database
SELECT oid::int8 FROM pg_database WHERE datname = current_database()

-- name: bytes
SELECT pg_database_size(current_database())

-- name: rights
-- What a server and the role of this session allow: the log that logical replication needs, publishing and subscribing.
SELECT current_setting('wal_level'), r.rolname::text, r.rolsuper,
  r.rolsuper OR (r.rolreplication AND owned.all_tables AND has_database_privilege(current_database(), 'CREATE')),
  r.rolsuper OR (r.rolbypassrls AND owned.all_tables AND has_database_privilege(current_database(), 'CREATE')
    AND EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'pg_create_subscription' AND pg_has_role(oid, 'USAGE')))
FROM pg_roles r, (
  SELECT bool_and(pg_has_role(relowner, 'USAGE')) AS all_tables FROM pg_class
  WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r'
) owned
WHERE r.rolname = current_user

-- ------------------------------------------------------------------------------------------- tables

-- name: columns
-- The tables that move, with their columns: of tables for the vectors of one collection only its own. The audit log stays, because its entries are a chain of their own in each cell. The
-- number of a collection in the words of its passages (mark) and the version that readers compare are those of the cell.
SELECT c.relname::text, array_agg(a.attname::text ORDER BY a.attname)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'waylore'::regnamespace AND c.relkind = 'r' AND c.relname <> 'audit'
  AND (c.relname !~ '^(passage|entity)_vectors_[0-9a-f]{16}$'
    OR c.relname = ANY(%(own)s) AND EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid))
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  AND NOT (c.relname = 'collections' AND a.attname IN ('mark', 'version'))
GROUP BY c.relname HAVING bool_or(a.attname = 'collection') ORDER BY c.relname

-- name: lock
SELECT pg_advisory_xact_lock(%(collection)s)

-- name: delete_rows
DELETE FROM ONLY waylore.{table} WHERE collection = %(collection)s

-- name: reset_collection
-- Numbers that must not be used again stay.
UPDATE waylore.collections SET version = version + 1, model = NULL, dimension = NULL, documents = 0, passages = 0, entities = 0,
  facts = 0, mentions = 0, length = 0, weights = '' WHERE collection = %(collection)s

-- name: add_collection
INSERT INTO waylore.collections (collection, name) VALUES (%(collection)s, %(name)s)
ON CONFLICT (collection) DO UPDATE SET name = excluded.name RETURNING mark

-- name: read_collection
SELECT {columns} FROM waylore.collections WHERE collection = %(collection)s

-- name: set_collection
UPDATE waylore.collections SET ({columns}) = ROW ({values}) WHERE collection = {collection}

-- name: version
SELECT version FROM waylore.collections WHERE collection = %(collection)s

-- name: grow_version
UPDATE waylore.collections SET version = version + 1 WHERE collection = %(collection)s

-- name: read_rows
COPY (SELECT {values} FROM ONLY waylore.{table} WHERE collection = {collection}) TO STDOUT (FORMAT binary)

-- name: write_rows
COPY waylore.{table} ({columns}) FROM STDIN (FORMAT binary)

-- name: marked_words
-- The words of a passage with the mark of another cell.
@mark({words}, {mark})

-- fragment: mark
-- Words begin with the digits of the mark, followed by a letter.
coalesce((SELECT array_to_tsvector(array_agg($2 || ltrim(word, '0123456789'))) FROM unnest(tsvector_to_array($1)) word), ''::tsvector)

-- name: has_trigger
SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'waylore.passage_terms'::regclass AND tgname = 'words_get_own_mark')

-- name: create_trigger
-- It runs for replicated rows only.
CREATE OR REPLACE FUNCTION waylore.set_own_mark() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  own text := (SELECT mark::text FROM waylore.collections WHERE collection = new.collection);
BEGIN
  IF own IS NOT NULL THEN
    new.words := @mark(new.words, own);
  END IF;
  RETURN new;
END
$$;
CREATE OR REPLACE TRIGGER words_get_own_mark BEFORE INSERT OR UPDATE ON waylore.passage_terms
  FOR EACH ROW EXECUTE FUNCTION waylore.set_own_mark();
ALTER TABLE waylore.passage_terms ENABLE REPLICA TRIGGER words_get_own_mark

-- ------------------------------------------------------------------------------------------- the old cell

-- name: drop_publication
DROP PUBLICATION IF EXISTS {name}

-- name: create_publication
CREATE PUBLICATION {name} FOR TABLE {tables} WITH (publish = 'insert, update, delete')

-- name: published_table
ONLY waylore.{table} ({columns}) WHERE (collection = {collection})

-- name: create_temporary_slot
CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')

-- name: begin_snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET TRANSACTION SNAPSHOT {snapshot}

-- name: rollback
ROLLBACK

-- name: keep_slot
SELECT pg_copy_logical_replication_slot(%(temporary)s, %(name)s, false)

-- name: drop_slot
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %(name)s

-- name: emit_position
-- Every commit that was acknowledged before comes before this message in the log.
SELECT pg_logical_emit_message(true, 'waylore', '')::text

-- name: slot
-- How far the new cell has followed, on its disk.
SELECT confirmed_flush_lsn >= %(position)s::pg_lsn, confirmed_flush_lsn::text FROM pg_replication_slots
WHERE slot_name = %(name)s AND wal_status IS DISTINCT FROM 'lost'

-- name: wal_level
SHOW wal_level

-- name: left_slots
-- Slots of moves, with the bytes of the log that each keeps.
SELECT slot_name::text, coalesce(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn), 0)::int8
FROM pg_replication_slots WHERE starts_with(slot_name, 'waylore_move_') AND database = current_database() ORDER BY slot_name

-- ------------------------------------------------------------------------------------------- the new cell

-- name: keep_quiet
-- The statement that creates a subscription contains a password: no log, no list of activities and no statistics may have it.
SELECT set_config('log_statement', 'none', true), set_config('log_min_error_statement', 'panic', true),
  set_config('log_min_duration_statement', '-1', true), set_config('log_min_duration_sample', '-1', true),
  set_config('track_activities', 'off', true), set_config('pg_stat_statements.track_utility', 'off', true),
  set_config('pgaudit.log', 'none', true)

-- name: create_subscription
CREATE SUBSCRIPTION {name} CONNECTION {connection} PUBLICATION {name}
WITH (create_slot = false, enabled = false, copy_data = false, slot_name = {slot}, synchronous_commit = 'on',
  streaming = off, disable_on_error = true{more})

-- name: subscription
SELECT subenabled FROM pg_subscription WHERE subname = %(name)s
  AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: enable_subscription
ALTER SUBSCRIPTION {name} ENABLE

-- name: drop_subscription
-- Without its slot, so that the old cell need not be reachable.
ALTER SUBSCRIPTION {name} DISABLE;
ALTER SUBSCRIPTION {name} SET (slot_name = NONE);
DROP SUBSCRIPTION {name}
