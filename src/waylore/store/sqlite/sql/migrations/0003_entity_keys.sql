-- The keys of the names of an entity (names.py). Entities that share a key may be the same.
CREATE TABLE entity_keys (
  collection INTEGER NOT NULL,
  key TEXT NOT NULL,
  access INTEGER NOT NULL,
  entity INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  PRIMARY KEY (collection, key, access, entity)
) STRICT, WITHOUT ROWID;
