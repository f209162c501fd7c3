-- Words that were deleted from the inverted index used to remain under a tombstone; secure-delete removes them. The index
-- is rebuilt from its own entries, with the rows of terms in place of the terms (`collection·term`).
CREATE VIRTUAL TABLE instances USING fts5vocab (words, instance);
CREATE TABLE moved AS
SELECT i.doc, group_concat(coalesce(t.row, i.term), ' ') AS terms FROM instances i LEFT JOIN terms t
  ON t.collection = CAST(substr(i.term, 1, instr(i.term, '·') - 1) AS INTEGER) AND t.term = substr(i.term, instr(i.term, '·') + 1)
GROUP BY i.doc;
DROP TABLE instances;
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5 (terms, content='', columnsize=0, detail=none, tokenize='ascii');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
INSERT INTO words (rowid, terms) SELECT doc, terms FROM moved;
DROP TABLE moved;
