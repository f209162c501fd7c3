-- Every statement of a service's registry by name. Statements that do the same in SQLite have the same name.

-- name: lock_migrations
-- The store and the catalogue use other numbers, because they may be in the same database.
SELECT pg_advisory_xact_lock(2003789428, 4)

-- name: has_migrations
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'waylore_service' AND c.relname = 'migrations'

-- name: create_migrations
CREATE SCHEMA IF NOT EXISTS waylore_service;
CREATE TABLE IF NOT EXISTS waylore_service.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE waylore_service.migrations ADD COLUMN IF NOT EXISTS checksum text NOT NULL DEFAULT ''

-- name: applied_migrations
-- Number 0 records that the schema was renamed. It is no migration.
SELECT number, checksum FROM waylore_service.migrations WHERE number > 0

-- name: record_migration
INSERT INTO waylore_service.migrations (number, name, checksum) VALUES (%s, %s, %s)
ON CONFLICT (number) DO UPDATE SET checksum = excluded.checksum

-- name: secret
SELECT secret FROM waylore_service.registry

-- name: keys
SELECT id, name, hash, collections, scope, labels, created, expires, revoked, used, former, former_until, max_source,
  "user"
FROM waylore_service.keys WHERE (created, id) > (%(created)s, %(id)s) ORDER BY created, id LIMIT %(limit)s

-- name: key
SELECT id, name, hash, collections, scope, labels, created, expires, revoked, used, former, former_until, max_source,
  "user"
FROM waylore_service.keys WHERE id = %(id)s

-- name: set_key
INSERT INTO waylore_service.keys (id, name, hash, collections, scope, labels, created, expires, revoked, former, former_until, max_source,
  "user")
VALUES (%(id)s, %(name)s, %(hash)s, %(collections)s, %(scope)s, %(labels)s, %(created)s, %(expires)s, %(revoked)s, %(former)s, %(former_until)s, %(max_source)s,
  %(user)s)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, hash = excluded.hash, collections = excluded.collections,
  scope = excluded.scope, labels = excluded.labels, expires = excluded.expires, revoked = excluded.revoked,
  former = excluded.former, former_until = excluded.former_until, max_source = excluded.max_source, "user" = excluded."user"

-- name: use_key
UPDATE waylore_service.keys SET used = %(at)s WHERE id = %(id)s

-- name: lock_keys
-- Of two changes of keys, the second waits for the first, because its entry follows from that of the first.
SELECT pg_advisory_xact_lock(2003789428, 6)

-- name: last_audit
SELECT number, hash FROM waylore_service.audit ORDER BY number DESC LIMIT 1

-- name: add_audit
INSERT INTO waylore_service.audit (number, at, author, request, verb, key, labels_before, labels_after, hash)
VALUES (%(number)s, %(at)s, %(author)s, %(request)s, %(verb)s, %(key)s, %(labels_before)s, %(labels_after)s, %(hash)s)

-- name: audit
-- A negative number of an entry counts from the end. The columns are those of the log of a collection, and the key.
SELECT number, at, author, request, verb, 0, ''::bytea, labels_before, labels_after, hash, key FROM waylore_service.audit
WHERE number > %(after)s + CASE WHEN %(after)s < 0
  THEN coalesce((SELECT max(number) FROM waylore_service.audit), 0) ELSE 0 END
ORDER BY number LIMIT %(limit)s

-- name: collections
-- Collections after a name: all, or those in a list of names in JSON.
SELECT name, description, created FROM waylore_service.collections
WHERE name > %(after)s AND (%(among)s = '' OR name IN (SELECT jsonb_array_elements_text(nullif(%(among)s, '')::jsonb)))
ORDER BY name LIMIT %(limit)s

-- name: collection
SELECT name, description, created FROM waylore_service.collections WHERE name = %(name)s

-- name: add_collection
-- Returns a row if the collection is new.
INSERT INTO waylore_service.collections (name, description, created) VALUES (%(name)s, %(description)s, %(created)s)
ON CONFLICT (name) DO NOTHING RETURNING name

-- name: describe_collection
UPDATE waylore_service.collections SET description = %(description)s WHERE name = %(name)s

-- name: remove_collection
DELETE FROM waylore_service.collections WHERE name = %(name)s RETURNING name

-- name: claim
-- Reserves a request. Returns a row if it is new, or if its former response has expired.
INSERT INTO waylore_service.answers (caller, word, digest, status, body, media_type, until)
VALUES (%(caller)s, %(word)s, %(digest)s, 0, '', '', %(until)s)
ON CONFLICT (caller, word) DO UPDATE SET digest = excluded.digest, status = 0, body = '', until = excluded.until
WHERE answers.until <= %(now)s
RETURNING digest

-- name: kept
-- The cached response of a request. Status 0 means that the request is still running.
SELECT digest, status, body, media_type FROM waylore_service.answers WHERE caller = %(caller)s AND word = %(word)s

-- name: keep
-- Stores the response of a reserved request.
UPDATE waylore_service.answers SET status = %(status)s, body = %(body)s, media_type = %(media_type)s, until = %(until)s
WHERE caller = %(caller)s AND word = %(word)s AND digest = %(digest)s

-- name: release
DELETE FROM waylore_service.answers WHERE caller = %(caller)s AND word = %(word)s AND digest = %(digest)s AND status = 0

-- name: sweep
-- Deletes expired responses.
DELETE FROM waylore_service.answers WHERE until <= %(now)s
