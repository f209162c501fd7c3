-- What a caller with labels gets must not depend on documents that it may not see. So the passages that have a term or mention
-- an entity are counted for each permission, and so are the length of passages in terms and assertions of facts.
CREATE TABLE term_counts (
  collection int8 NOT NULL,
  term int4 NOT NULL,
  access int4 NOT NULL,
  passages int4 NOT NULL,
  PRIMARY KEY (collection, term, access)
) WITH (fillfactor = 90);
CREATE TABLE entity_counts (
  collection int8 NOT NULL,
  entity uuid NOT NULL,
  access int4 NOT NULL,
  passages int4 NOT NULL,
  PRIMARY KEY (collection, entity, access)
) WITH (fillfactor = 90);
ALTER TABLE accesses ADD COLUMN length int8 NOT NULL DEFAULT 0, ADD COLUMN assertions int8 NOT NULL DEFAULT 0;

-- The rows of all collections are counted, so for this transaction row-level security does not bind the owner.
ALTER TABLE accesses NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_terms NO FORCE ROW LEVEL SECURITY;
ALTER TABLE mentions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE supports NO FORCE ROW LEVEL SECURITY;
-- Four bytes of the packed terms are one term: its number in the upper 26 bits, the lowest byte first.
INSERT INTO term_counts (collection, term, access, passages)
SELECT p.collection, ((get_byte(t.terms, i)::int8 | (get_byte(t.terms, i + 1)::int8 << 8)
  | (get_byte(t.terms, i + 2)::int8 << 16) | (get_byte(t.terms, i + 3)::int8 << 24)) >> 6)::int4 AS term, p.access, count(*)
FROM passages p JOIN passage_terms t ON t.collection = p.collection AND t.number = p.number
CROSS JOIN LATERAL generate_series(0, length(t.terms) - 4, 4) i GROUP BY 1, 2, 3;
INSERT INTO entity_counts (collection, entity, access, passages)
SELECT collection, entity, access, count(*) FROM mentions GROUP BY 1, 2, 3;
UPDATE accesses a SET length = c.length
FROM (SELECT p.collection, p.access, sum(t.length) AS length FROM passages p
  JOIN passage_terms t ON t.collection = p.collection AND t.number = p.number GROUP BY 1, 2) c
WHERE c.collection = a.collection AND c.access = a.access;
UPDATE accesses a SET assertions = c.assertions
FROM (SELECT collection, access, count(*) AS assertions FROM supports GROUP BY 1, 2) c
WHERE c.collection = a.collection AND c.access = a.access;
ALTER TABLE accesses FORCE ROW LEVEL SECURITY;
ALTER TABLE passages FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_terms FORCE ROW LEVEL SECURITY;
ALTER TABLE mentions FORCE ROW LEVEL SECURITY;
ALTER TABLE supports FORCE ROW LEVEL SECURITY;

ALTER TABLE term_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE entity_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON term_counts USING (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8))
  WITH CHECK (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8));
CREATE POLICY own ON entity_counts USING (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8))
  WITH CHECK (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8));
-- Whoever may write to the older tables may write to the new ones: waylore_app, or members of a role with its old name.
DO $$
DECLARE
  writer text;
BEGIN
  FOR writer IN
    SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = 'accesses'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON term_counts, entity_counts, receipts TO %I', writer);
  END LOOP;
END
$$;
