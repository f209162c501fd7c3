-- Every statement of a service's registry by name: API keys, collections and cached responses.

-- name: has_migrations
SELECT count(*) FROM pragma_table_info('registry_migrations')

-- name: create_migrations
-- The name differs from that of other migration tables, because a store, a registry and a catalogue may share a file.
CREATE TABLE IF NOT EXISTS registry_migrations (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL,
  checksum TEXT NOT NULL
) STRICT

-- name: applied_migrations
SELECT number, name, applied_at, checksum FROM registry_migrations

-- name: record_migration
INSERT INTO registry_migrations (number, name, applied_at, checksum) VALUES (?, ?, ?, ?)

-- name: secret
SELECT secret FROM registry

-- name: keys
SELECT id, name, hash, collections, scope, labels, created, expires, revoked, used, former, former_until, max_source,
  "user"
FROM registry_keys WHERE (created, id) > (:created, :id) ORDER BY created, id LIMIT :limit

-- name: key
SELECT id, name, hash, collections, scope, labels, created, expires, revoked, used, former, former_until, max_source,
  "user"
FROM registry_keys WHERE id = :id

-- name: set_key
INSERT INTO registry_keys (id, name, hash, collections, scope, labels, created, expires, revoked, former, former_until, max_source,
  "user")
VALUES (:id, :name, :hash, :collections, :scope, :labels, :created, :expires, :revoked, :former, :former_until, :max_source,
  :user)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, hash = excluded.hash, collections = excluded.collections,
  scope = excluded.scope, labels = excluded.labels, expires = excluded.expires, revoked = excluded.revoked,
  former = excluded.former, former_until = excluded.former_until, max_source = excluded.max_source, "user" = excluded."user"

-- name: use_key
UPDATE registry_keys SET used = :at WHERE id = :id

-- name: last_audit
SELECT number, hash FROM registry_audit ORDER BY number DESC LIMIT 1

-- name: add_audit
INSERT INTO registry_audit (number, at, author, request, verb, key, labels_before, labels_after, hash)
VALUES (:number, :at, :author, :request, :verb, :key, :labels_before, :labels_after, :hash)

-- name: audit
-- A negative number of an entry counts from the end. The columns are those of the log of a collection, and the key.
SELECT number, at, author, request, verb, 0, x'', labels_before, labels_after, hash, key FROM registry_audit
WHERE number > :after + CASE WHEN :after < 0 THEN coalesce((SELECT max(number) FROM registry_audit), 0) ELSE 0 END
ORDER BY number LIMIT :limit

-- name: collections
-- Collections after a name: all, or those in a list of names in JSON.
SELECT name, description, created FROM registry_collections
WHERE name > :after AND (:among = '' OR name IN (SELECT value FROM json_each(CASE :among WHEN '' THEN '[]' ELSE :among END)))
ORDER BY name LIMIT :limit

-- name: collection
SELECT name, description, created FROM registry_collections WHERE name = :name

-- name: add_collection
-- Returns a row if the collection is new.
INSERT INTO registry_collections (name, description, created) VALUES (:name, :description, :created)
ON CONFLICT (name) DO NOTHING RETURNING name

-- name: describe_collection
UPDATE registry_collections SET description = :description WHERE name = :name

-- name: remove_collection
DELETE FROM registry_collections WHERE name = :name RETURNING name

-- name: claim
-- Reserves a request. Returns a row if it is new, or if its former response has expired.
INSERT INTO registry_answers (caller, word, digest, status, body, media_type, until)
VALUES (:caller, :word, :digest, 0, x'', '', :until)
ON CONFLICT (caller, word) DO UPDATE SET digest = excluded.digest, status = 0, body = x'', until = excluded.until
WHERE registry_answers.until <= :now
RETURNING digest

-- name: kept
-- The cached response of a request. Status 0 means that the request is still running.
SELECT digest, status, body, media_type FROM registry_answers WHERE caller = :caller AND word = :word

-- name: keep
-- Stores the response of a reserved request.
UPDATE registry_answers SET status = :status, body = :body, media_type = :media_type, until = :until
WHERE caller = :caller AND word = :word AND digest = :digest

-- name: release
DELETE FROM registry_answers WHERE caller = :caller AND word = :word AND digest = :digest AND status = 0

-- name: sweep
-- Deletes expired responses.
DELETE FROM registry_answers WHERE until <= :now
