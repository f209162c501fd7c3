-- Statements that convert vectors from half precision to eight bits per dimension (earlier/sqlite_vectors.py).

-- name: begin
ALTER TABLE passage_vectors RENAME TO half_passage_vectors;
ALTER TABLE entity_vectors RENAME TO half_entity_vectors;
ALTER TABLE staged RENAME TO half_staged;
CREATE TABLE passage_vectors (row INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;
CREATE TABLE entity_vectors (row INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;
CREATE TABLE staged (
  collection INTEGER NOT NULL,
  model TEXT NOT NULL,
  kind TEXT NOT NULL,
  row INTEGER NOT NULL,
  place INTEGER NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (collection, model, kind, row, place)
) STRICT, WITHOUT ROWID;
INSERT INTO staged SELECT * FROM half_staged WHERE kind = 'fact'

-- name: passages
SELECT row, vector FROM half_passage_vectors ORDER BY row

-- name: entities
SELECT row, vector FROM half_entity_vectors ORDER BY row

-- name: staged
SELECT collection, model, kind, row, place, vector FROM half_staged WHERE kind <> 'fact'
ORDER BY collection, model, kind, row, place

-- name: end
DROP TABLE half_passage_vectors;
DROP TABLE half_entity_vectors;
DROP TABLE half_staged

-- name: collections
SELECT row, dimension FROM collections WHERE dimension IS NOT NULL
