-- A document may belong to a user, an agent and a session, and may have the time of its event; a turn of a conversation has
-- a speaker, a role and a time. A permission is a set of labels and a user.
ALTER TABLE accesses RENAME TO old_accesses;
CREATE TABLE accesses (
  row INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: an old permission must not become a new one
  collection INTEGER NOT NULL,
  labels TEXT NOT NULL,
  documents INTEGER NOT NULL DEFAULT 0,
  passages INTEGER NOT NULL DEFAULT 0,
  length INTEGER NOT NULL DEFAULT 0,      -- terms of these passages
  assertions INTEGER NOT NULL DEFAULT 0,  -- of facts, by these passages
  user TEXT NOT NULL DEFAULT '',
  turns INTEGER NOT NULL DEFAULT 0,       -- passages that are turns of a conversation
  UNIQUE (collection, user, labels)
) STRICT;
INSERT INTO accesses (row, collection, labels, documents, passages, length, assertions)
SELECT row, collection, labels, documents, passages, length, assertions FROM old_accesses;
DELETE FROM sqlite_sequence WHERE name = 'accesses';
INSERT INTO sqlite_sequence (name, seq) SELECT 'accesses', seq FROM sqlite_sequence WHERE name = 'old_accesses';
DROP TABLE old_accesses;

ALTER TABLE documents ADD COLUMN user TEXT NOT NULL DEFAULT '';
ALTER TABLE documents ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE documents ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE documents ADD COLUMN at INTEGER;
ALTER TABLE passages ADD COLUMN speaker TEXT NOT NULL DEFAULT '';
ALTER TABLE passages ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE passages ADD COLUMN at INTEGER;
ALTER TABLE passages ADD COLUMN session INTEGER;
CREATE INDEX passages_of_session ON passages (collection, session, position, id) WHERE session IS NOT NULL;
CREATE INDEX passages_by_time ON passages (collection, at) WHERE at IS NOT NULL;
ALTER TABLE passage_terms ADD COLUMN sequence BLOB;
ALTER TABLE passage_terms ADD COLUMN tells_time INTEGER;

-- The assertions of one subject and predicate are read newest first. The store fills both columns from the packs.
ALTER TABLE assertions ADD COLUMN series INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assertions ADD COLUMN began INTEGER NOT NULL DEFAULT 0;
CREATE INDEX assertions_by_time ON assertions (collection, series, access, began DESC, tie, fact);
