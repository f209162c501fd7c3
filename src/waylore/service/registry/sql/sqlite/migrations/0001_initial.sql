-- A service's registry in a SQLite file. Times are in seconds since 1970. IF NOT EXISTS: files of releases that recorded no
-- migrations have these tables.

-- One row: the secret with which all processes of the service sign cursors. Only earlier releases read `schema`: a
-- migration that they cannot read sets it to its own number.
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
