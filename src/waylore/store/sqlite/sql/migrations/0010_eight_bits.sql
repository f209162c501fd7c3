-- Vectors of passages and entities have eight bits per dimension. The store converts them (earlier/sqlite_vectors.py).
-- The vectors of statements are stored in parts of 1,000 bytes, because rows of half a page leave much of a page unused.
ALTER TABLE statement_vectors RENAME TO old_statement_vectors;
CREATE TABLE statement_vectors (
  row INTEGER NOT NULL,
  part INTEGER NOT NULL,
  codes BLOB NOT NULL,
  PRIMARY KEY (row, part)
) STRICT, WITHOUT ROWID;
WITH RECURSIVE parts (part) AS (
  SELECT 0 UNION ALL SELECT part + 1 FROM parts WHERE (part + 1) * 1000 < (SELECT max(length(codes)) FROM old_statement_vectors)
)
INSERT INTO statement_vectors (row, part, codes)
SELECT o.row, p.part, substr(o.codes, 1 + p.part * 1000, 1000) FROM old_statement_vectors o CROSS JOIN parts p
WHERE p.part * 1000 < length(o.codes);
DROP TABLE old_statement_vectors;
