-- Every statement of a service's registry by name: keys, collections, answers that are kept for a while.

-- name: has_registry
SELECT count(*) FROM sqlite_schema WHERE name = 'registry'

-- name: create
-- One row tells the schema and the secret that cursors are signed with. Times are in seconds since 1970.
CREATE TABLE IF NOT EXISTS registry (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  schema INTEGER NOT NULL,
  secret BLOB NOT NULL
) STRICT;
INSERT OR IGNORE INTO registry (one, schema, secret) VALUES (1, 1, randomblob(32));
CREATE TABLE IF NOT EXISTS registry_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  collections TEXT NOT NULL,
  scope TEXT NOT NULL,
  labels TEXT,
  created REAL NOT NULL,
  expires REAL,
  revoked REAL,
  used REAL,
  former TEXT NOT NULL,
  former_until REAL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS registry_keys_created ON registry_keys (created, id);
CREATE TABLE IF NOT EXISTS registry_collections (
  name TEXT PRIMARY KEY,
  description TEXT NOT NULL,
  created REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS registry_answers (
  caller TEXT NOT NULL,
  word TEXT NOT NULL,
  digest TEXT NOT NULL,
  status INTEGER NOT NULL,
  body BLOB NOT NULL,
  media_type TEXT NOT NULL,
  until REAL NOT NULL,
  PRIMARY KEY (caller, word)
) STRICT;
CREATE INDEX IF NOT EXISTS registry_answers_until ON registry_answers (until);

-- name: schema
SELECT schema FROM registry

-- name: secret
SELECT secret FROM registry

-- name: keys
SELECT id, name, hash, collections, scope, labels, created, expires, revoked, used, former, former_until
FROM registry_keys WHERE (created, id) > (:created, :id) ORDER BY created, id LIMIT :limit

-- name: key
SELECT id, name, hash, collections, scope, labels, created, expires, revoked, used, former, former_until
FROM registry_keys WHERE id = :id

-- name: set_key
INSERT INTO registry_keys (id, name, hash, collections, scope, labels, created, expires, revoked, former, former_until)
VALUES (:id, :name, :hash, :collections, :scope, :labels, :created, :expires, :revoked, :former, :former_until)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, hash = excluded.hash, collections = excluded.collections,
  scope = excluded.scope, labels = excluded.labels, expires = excluded.expires, revoked = excluded.revoked,
  former = excluded.former, former_until = excluded.former_until

-- name: use_key
UPDATE registry_keys SET used = :at WHERE id = :id

-- name: collections
-- Those after a name, of all or among some: a list in JSON.
SELECT name, description, created FROM registry_collections
WHERE name > :after AND (:among = '' OR name IN (SELECT value FROM json_each(CASE :among WHEN '' THEN '[]' ELSE :among END)))
ORDER BY name LIMIT :limit

-- name: collection
SELECT name, description, created FROM registry_collections WHERE name = :name

-- name: add_collection
-- Gives a row if the collection is new.
INSERT INTO registry_collections (name, description, created) VALUES (:name, :description, :created)
ON CONFLICT (name) DO NOTHING RETURNING name

-- name: describe_collection
UPDATE registry_collections SET description = :description WHERE name = :name

-- name: remove_collection
DELETE FROM registry_collections WHERE name = :name RETURNING name

-- name: claim
-- Gives a row if nobody has it: not asked before, or so long ago that it counts no more.
INSERT INTO registry_answers (caller, word, digest, status, body, media_type, until)
VALUES (:caller, :word, :digest, 0, x'', '', :until)
ON CONFLICT (caller, word) DO UPDATE SET digest = excluded.digest, status = 0, body = x'', until = excluded.until
WHERE registry_answers.until <= :now
RETURNING digest

-- name: kept
SELECT digest, status, body, media_type FROM registry_answers WHERE caller = :caller AND word = :word

-- name: keep
UPDATE registry_answers SET status = :status, body = :body, media_type = :media_type, until = :until
WHERE caller = :caller AND word = :word AND digest = :digest

-- name: release
DELETE FROM registry_answers WHERE caller = :caller AND word = :word AND digest = :digest AND status = 0

-- name: sweep
DELETE FROM registry_answers WHERE until <= :now
