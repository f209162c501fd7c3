-- Who wrote a document: the identity of a key or of a program.
ALTER TABLE documents ADD COLUMN author TEXT NOT NULL DEFAULT '';

-- What was changed, by whom and when. It has ids and no content. Rows are never changed; old ones may be deleted. Each row has
-- a hash of its values and of the hash before.
CREATE TABLE audit (
  collection INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  author TEXT NOT NULL,
  request TEXT NOT NULL,
  verb TEXT NOT NULL,
  count INTEGER NOT NULL,
  documents BLOB NOT NULL,  -- the first 100 ids
  labels_before TEXT NOT NULL,
  labels_after TEXT NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (collection, number)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'rows of the audit log are never changed');
END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN old.at > (unixepoch('now') - 400 * 86400) * 1000000 BEGIN
  SELECT RAISE(ABORT, 'rows of the audit log are kept for 400 days');
END;
