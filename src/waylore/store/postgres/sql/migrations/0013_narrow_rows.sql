-- Counts have four bytes, so that rows have no gaps between their columns: 8 bytes less for each term, entity, name and key.
ALTER TABLE terms ALTER COLUMN passages TYPE int4;
ALTER TABLE entities ALTER COLUMN passages TYPE int4;
ALTER TABLE names ALTER COLUMN documents TYPE int4;
ALTER TABLE entity_keys ALTER COLUMN documents TYPE int4;

-- A mention has its rank in four bytes, from which its count is read: 24 bytes less in its row and its index.
CREATE FUNCTION rank_mention(is_own bool, count int4) RETURNS int4 LANGUAGE sql IMMUTABLE AS $$
  SELECT -$2 - CASE WHEN $1 THEN 1073741824 ELSE 0 END
$$;
ALTER TABLE mentions DROP CONSTRAINT mentions_pkey, ALTER COLUMN rank DROP EXPRESSION;
ALTER TABLE mentions ALTER COLUMN rank TYPE int4 USING CASE WHEN rank <= -4294967296 THEN rank + 3221225472 ELSE rank END,
  DROP COLUMN count, DROP COLUMN is_own, ADD PRIMARY KEY (collection, entity, access, rank, passage);
CREATE OR REPLACE FUNCTION delete_mention(int8, uuid, int4, bool, int4, uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM waylore.mentions WHERE collection = $1 AND entity = $2 AND access = $3 AND passage = $6
    AND rank = waylore.rank_mention($4, $5)
$$;
