-- Every statement that gives a database the new name of this product, by name. They run once, in the transaction and
-- under the lock of the migrations, before the migrations are read. What else knows the old name is in legacy.py.

-- name: find
-- Whether the schema of the old name holds tables of ours, whether that of the new name exists, and whether it is ours.
SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %(old)s AND tablename = 'migrations')
    AND EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %(old)s AND tablename <> 'migrations'),
  EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = %(new)s),
  EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %(new)s AND tablename = 'migrations')

-- name: rename
-- A process of an old version that connects later would create an empty schema and answer from it. It finds this table
-- of migrations instead, which is newer than any that it knows, and refuses. Everyone may read it, so that every process
-- gets that error. Number 0 records the renaming; numbers of migrations begin at 1.
ALTER SCHEMA {old} RENAME TO {new};
INSERT INTO {new}.migrations (number, name) VALUES (0, 'renamed from {old}');
CREATE SCHEMA {old};
CREATE TABLE {old}.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
INSERT INTO {old}.migrations (number, name) VALUES (9999, 'renamed to {new}');
GRANT USAGE ON SCHEMA {old} TO PUBLIC;
GRANT SELECT ON {old}.migrations TO PUBLIC

-- name: carry_roles
-- Roles belong to the whole server, where another database may use the old ones, so these stay. The new ones stand beside
-- them and have the same members, with the same options. If we may not create or grant roles, members of the old ones
-- still may do what they were granted: the tables keep those grants.
DO $$
DECLARE
  old text;
  granted record;
BEGIN
  FOR old IN SELECT rolname FROM pg_roles WHERE rolname IN ('weft_app', 'weft_matching') LOOP
    BEGIN
      IF to_regrole(replace(old, 'weft', 'waylore')) IS NULL THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN', replace(old, 'weft', 'waylore'));
      END IF;
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN
        NULL;  -- another database of this server was faster
    END;
    EXECUTE format('GRANT %I TO %I', replace(old, 'weft', 'waylore'), current_user);
  END LOOP;
  FOR granted IN
    SELECT replace(r.rolname, 'weft', 'waylore') AS role, m.rolname AS member, concat_ws(', ',
      CASE WHEN bool_or(a.admin_option) THEN 'ADMIN OPTION' END,
      -- These two options are new in PostgreSQL 16.
      CASE WHEN NOT bool_or(coalesce((to_jsonb(a) ->> 'inherit_option')::bool, true)) THEN 'INHERIT FALSE' END,
      CASE WHEN NOT bool_or(coalesce((to_jsonb(a) ->> 'set_option')::bool, true)) THEN 'SET FALSE' END) AS options
    FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
    WHERE r.rolname IN ('weft_app', 'weft_matching') AND m.rolname <> current_user
    GROUP BY r.rolname, m.rolname
  LOOP
    EXECUTE format('GRANT %I TO %I', granted.role, granted.member)
      || CASE granted.options WHEN '' THEN '' ELSE ' WITH ' || granted.options END;
  END LOOP;
EXCEPTION
  WHEN insufficient_privilege OR invalid_grant_operation THEN
    RAISE NOTICE 'waylore: % may not create or grant roles: members of the old ones keep their rights', current_user;
END
$$

-- name: carry_policies
-- The setting that names the collection of a transaction has a new name.
DO $$
DECLARE
  of_collection text;
  own text := 'collection = (SELECT nullif(current_setting(''waylore.collection'', true), '''')::int8)';
BEGIN
  FOR of_collection IN SELECT tablename FROM pg_policies WHERE schemaname = 'waylore' AND policyname = 'own' LOOP
    EXECUTE format('ALTER POLICY own ON waylore.%I USING (%s) WITH CHECK (%s)', of_collection, own, own);
  END LOOP;
END
$$

-- name: carry_functions
-- The bodies of these functions name the schema, or the setting. `ranked_words` exists only with pg_textsearch; the column
-- that it computes is not computed again.
CREATE OR REPLACE FUNCTION waylore.matching(question tsquery, cap int8)
RETURNS TABLE (number int8, id uuid, length int4, terms bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = waylore, pg_temp
AS $$
  SELECT p.number, p.id, p.length, p.terms FROM passage_terms p
  WHERE p.words @@ question AND p.collection IS NOT DISTINCT FROM nullif(current_setting('waylore.collection', true), '')::int8
  ORDER BY p.number DESC LIMIT cap
$$;
DO $$
BEGIN
  IF to_regproc('waylore.ranked_words') IS NOT NULL THEN
    CREATE OR REPLACE FUNCTION waylore.ranked_words(collection int8, terms bytea) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $body$
      SELECT coalesce(string_agg(repeat(waylore.ranked_word(collection, c.cell >> 6) || ' ', (c.cell & 63)::int), ''), '')
      FROM (SELECT get_byte(terms, i)::int8 | (get_byte(terms, i + 1)::int8 << 8) | (get_byte(terms, i + 2)::int8 << 16)
        | (get_byte(terms, i + 3)::int8 << 24) AS cell FROM generate_series(0, length(terms) - 4, 4) i) c
    $body$;
  END IF;
END
$$

-- name: carry_grants
-- The new roles get what migration 0001 grants them.
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore TO waylore_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA waylore TO waylore_app;
    REVOKE INSERT, UPDATE, DELETE ON waylore.migrations FROM waylore_app;
    GRANT EXECUTE ON FUNCTION waylore.matching TO waylore_app;
  END IF;
  IF to_regrole('waylore_matching') IS NOT NULL AND pg_has_role(current_user, 'waylore_matching', 'MEMBER') THEN
    DROP POLICY IF EXISTS matching ON waylore.passage_terms;
    CREATE POLICY matching ON waylore.passage_terms FOR SELECT TO waylore_matching USING (true);
    GRANT USAGE, CREATE ON SCHEMA waylore TO waylore_matching;
    GRANT SELECT ON waylore.passage_terms TO waylore_matching;
    ALTER FUNCTION waylore.matching OWNER TO waylore_matching;
    REVOKE CREATE ON SCHEMA waylore FROM waylore_matching;
  END IF;
END
$$
