-- A document has one of four sources; another one made every search that found it fail. Versions before the check of
-- `Waylore.add` could store another: such a document becomes one of the source 'system'. Its digest stays, so
-- `waylore doctor --deep` names it, and adding it again replaces it.
DROP INDEX documents_by_uri;
DROP INDEX documents_by_expiry;
ALTER TABLE documents RENAME TO documents_of_any_source;
CREATE TABLE documents (
  row INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  id BLOB NOT NULL,
  tie INTEGER NOT NULL,  -- the first half of the id, for sorting
  access INTEGER NOT NULL,
  title TEXT NOT NULL,
  uri TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('user_edit', 'file', 'system', 'conversation')),
  metadata TEXT NOT NULL,
  labels TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  digest BLOB NOT NULL,
  user TEXT NOT NULL DEFAULT '',
  agent TEXT NOT NULL DEFAULT '',
  session TEXT NOT NULL DEFAULT '',
  at INTEGER,  -- when its event was
  expires_at INTEGER,  -- from when on reads leave it out
  author TEXT NOT NULL DEFAULT '',  -- the identity of the key or program that wrote it
  UNIQUE (collection, id)
) STRICT;
INSERT INTO documents (row, collection, id, tie, access, title, uri, source,
  metadata, labels, recorded_at, digest, user, agent, session, at, expires_at, author)
SELECT row, collection, id, tie, access, title, uri,
  CASE WHEN source IN ('user_edit', 'file', 'system', 'conversation') THEN source ELSE 'system' END,
  metadata, labels, recorded_at, digest, user, agent, session, at, expires_at, author
FROM documents_of_any_source;
DROP TABLE documents_of_any_source;
CREATE INDEX documents_by_uri ON documents (collection, uri, id);
CREATE INDEX documents_by_expiry ON documents (access, expires_at) WHERE expires_at IS NOT NULL;
