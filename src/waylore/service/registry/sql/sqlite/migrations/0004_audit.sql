-- Changes of keys, by whom and when. It has ids and labels, and no secret. Rows are never changed; old ones may be deleted. Each
-- row has a hash of its values and of the hash before.
CREATE TABLE registry_audit (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,          -- microseconds since 1970
  author TEXT NOT NULL,
  request TEXT NOT NULL,
  verb TEXT NOT NULL,
  key TEXT NOT NULL,
  labels_before TEXT NOT NULL,  -- in JSON; ["*"] for all
  labels_after TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE TRIGGER registry_audit_is_not_changed BEFORE UPDATE ON registry_audit BEGIN
  SELECT RAISE(ABORT, 'rows of the audit log are never changed');
END;
CREATE TRIGGER registry_audit_is_kept BEFORE DELETE ON registry_audit WHEN old.at > (unixepoch('now') - 400 * 86400) * 1000000 BEGIN
  SELECT RAISE(ABORT, 'rows of the audit log are kept for 400 days');
END;
