-- What a request has changed, by the id of the request, so that its answer can be given again. It has ids and no content.
CREATE TABLE receipts (
  collection INTEGER NOT NULL,
  id BLOB NOT NULL,
  until INTEGER NOT NULL,
  author TEXT NOT NULL,
  documents BLOB NOT NULL,
  passages BLOB NOT NULL,
  entities BLOB NOT NULL,
  facts BLOB NOT NULL,
  missing BLOB NOT NULL,
  PRIMARY KEY (collection, id)
) STRICT;
CREATE INDEX receipts_by_end ON receipts (collection, until);
