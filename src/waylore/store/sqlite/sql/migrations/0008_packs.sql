-- What a passage says becomes one pack. What documents share stays rows, which are narrow: by entity and by fact.
-- The store fills the tables from the old ones (carry_over.py), and 0009 drops these.
ALTER TABLE mentions RENAME TO old_mentions;
ALTER TABLE facts RENAME TO old_facts;
ALTER TABLE supports RENAME TO old_supports;
ALTER TABLE usage RENAME TO old_usage;
ALTER TABLE staged RENAME TO old_staged;
DROP TABLE edges;

CREATE TABLE packs (
  row INTEGER PRIMARY KEY,
  facts INTEGER NOT NULL,
  pack BLOB NOT NULL
) STRICT;
CREATE TABLE statement_vectors (row INTEGER PRIMARY KEY, codes BLOB NOT NULL) STRICT;

CREATE TABLE mentions (
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  is_own INTEGER NOT NULL,
  count INTEGER NOT NULL,
  tie INTEGER NOT NULL,
  passage INTEGER NOT NULL,
  PRIMARY KEY (entity, access, is_own DESC, count DESC, tie, passage)
) STRICT, WITHOUT ROWID;

CREATE TABLE assertions (
  collection INTEGER NOT NULL,
  fact INTEGER NOT NULL,
  source INTEGER NOT NULL,
  strength REAL NOT NULL,
  tie INTEGER NOT NULL,
  passage INTEGER NOT NULL,
  place INTEGER NOT NULL,
  access INTEGER NOT NULL,
  status INTEGER NOT NULL,
  valid_from INTEGER,
  valid_to INTEGER,
  PRIMARY KEY (collection, fact, source, strength DESC, tie, passage)
) STRICT, WITHOUT ROWID;
CREATE INDEX unconfirmed_assertions ON assertions (collection, fact) WHERE status <> 1;

CREATE TABLE edges (
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  strength REAL NOT NULL,
  fact INTEGER NOT NULL,
  predicate INTEGER NOT NULL,
  PRIMARY KEY (entity, access, strength DESC, fact)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_of_predicate ON edges (entity, predicate, access, strength DESC, fact);

CREATE TABLE usage (
  collection INTEGER NOT NULL,
  kind TEXT NOT NULL,
  row INTEGER NOT NULL,
  access_count INTEGER NOT NULL,
  last_accessed INTEGER NOT NULL,
  PRIMARY KEY (collection, kind, row)
) STRICT, WITHOUT ROWID;

CREATE TABLE staged (
  collection INTEGER NOT NULL,
  model TEXT NOT NULL,
  kind TEXT NOT NULL,
  row INTEGER NOT NULL,
  place INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (collection, model, kind, row, place)
) STRICT, WITHOUT ROWID;
