-- The fingerprint of each file that was read completely. An unchanged file is not read again.
CREATE TABLE files (
  collection INTEGER NOT NULL,
  uri TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  PRIMARY KEY (collection, uri)
) STRICT, WITHOUT ROWID;
CREATE INDEX documents_by_uri ON documents (collection, uri, id);
