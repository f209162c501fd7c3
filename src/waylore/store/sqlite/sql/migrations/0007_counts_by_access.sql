-- What a caller with labels gets must not depend on documents that it may not see. So the passages that have a term or mention
-- an entity are counted for each permission, and so are passages, their length in terms, and assertions of facts.
CREATE TABLE term_counts (
  term INTEGER NOT NULL,
  access INTEGER NOT NULL,
  passages INTEGER NOT NULL,
  PRIMARY KEY (term, access)
) STRICT, WITHOUT ROWID;
CREATE TABLE entity_counts (
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  passages INTEGER NOT NULL,
  PRIMARY KEY (entity, access)
) STRICT, WITHOUT ROWID;
ALTER TABLE accesses ADD COLUMN passages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accesses ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accesses ADD COLUMN assertions INTEGER NOT NULL DEFAULT 0;

-- The inverted index knows the terms of each passage by their rows.
CREATE VIRTUAL TABLE instances USING fts5vocab (words, instance);
INSERT INTO term_counts (term, access, passages)
SELECT t.row, p.access, count(*) FROM terms t CROSS JOIN instances i ON i.term = CAST(t.row AS TEXT)
CROSS JOIN passages p ON p.row = i.doc GROUP BY t.row, p.access;
DROP TABLE instances;
INSERT INTO entity_counts (entity, access, passages) SELECT entity, access, count(*) FROM mentions GROUP BY entity, access;
UPDATE accesses SET passages = c.passages, length = c.length
FROM (SELECT p.access, count(*) AS passages, sum(t.length) AS length FROM passages p JOIN passage_terms t ON t.row = p.row
  GROUP BY p.access) c WHERE c.access = accesses.row;
UPDATE accesses SET assertions = c.assertions
FROM (SELECT access, count(*) AS assertions FROM supports GROUP BY access) c WHERE c.access = accesses.row;
