-- The tables of Waylore on PostgreSQL, in the schema waylore. Every key starts with the collection, so that the rows of a
-- tenant lie together in every index and the tables can be distributed by collection. Ids are the 128 bits of the domain
-- types as uuid, the same in every cell. Names, keys, terms, tags and sets of labels are indexed by a hash of 128 bits,
-- because an index entry may not be longer than 2,704 bytes.

-- A collection, its counters, and the embedding model that all of its vectors come from.
CREATE TABLE collections (
  collection int8 PRIMARY KEY,  -- 64 bits of the hash of its name
  name text NOT NULL,
  mark int4 GENERATED ALWAYS AS IDENTITY,  -- short prefix of the words in the inverted index
  version int8 NOT NULL DEFAULT 0,
  model text,
  dimension int4,
  documents int8 NOT NULL DEFAULT 0,
  passages int8 NOT NULL DEFAULT 0,
  entities int8 NOT NULL DEFAULT 0,
  facts int8 NOT NULL DEFAULT 0,
  mentions int8 NOT NULL DEFAULT 0,
  length int8 NOT NULL DEFAULT 0,        -- terms of all passages
  next_passage int8 NOT NULL DEFAULT 1,
  next_term int4 NOT NULL DEFAULT 1,
  next_access int4 NOT NULL DEFAULT 1,   -- never reused: an old permission must not become a new one
  -- the key of the marks around recalled texts; never exported
  secret bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
  weights text NOT NULL DEFAULT '',  -- of the graph search, fitted by `waylore tune`, as JSON; empty for the shipped ones
  own_vectors bool NOT NULL DEFAULT false  -- whether its vectors are in tables of its own
) WITH (fillfactor = 70);

-- Each set of labels with each user that a document has, so that a permission is one integer in every index. What a caller
-- with labels or a user gets depends on counts of its own permissions alone: on these, on term_counts and on entity_counts.
CREATE TABLE accesses (
  collection int8 NOT NULL,
  access int4 NOT NULL,
  id uuid NOT NULL,
  labels text[] NOT NULL,
  documents int8 NOT NULL,
  passages int8 NOT NULL,
  length int8 NOT NULL DEFAULT 0,      -- terms of these passages
  assertions int8 NOT NULL DEFAULT 0,  -- of facts, by these passages
  "user" text COLLATE "C" NOT NULL DEFAULT '',
  turns int8 NOT NULL DEFAULT 0,       -- passages that are turns of a conversation
  PRIMARY KEY (collection, access),
  UNIQUE (collection, id)
);
CREATE INDEX accesses_of_user ON accesses (collection, "user");

CREATE TABLE documents (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  access int4 NOT NULL,
  title text NOT NULL,
  uri text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL GENERATED ALWAYS AS (left(uri, 500)) STORED,  -- as much as an index entry can have
  source text NOT NULL CHECK (source IN ('user_edit', 'file', 'system', 'conversation')),
  metadata text NOT NULL,
  labels text NOT NULL,
  recorded_at int8 NOT NULL,
  digest uuid NOT NULL,
  "user" text NOT NULL DEFAULT '',
  agent text NOT NULL DEFAULT '',
  session text NOT NULL DEFAULT '',
  at int8,  -- when its event was
  expires_at int8,  -- from when on reads leave it out
  author text NOT NULL DEFAULT '',  -- the identity of the key or program that wrote it
  PRIMARY KEY (collection, id)
);
CREATE INDEX documents_by_address ON documents (collection, address, id);
CREATE INDEX documents_by_expiry ON documents (collection, access, expires_at) WHERE expires_at IS NOT NULL;

-- One row for each key and value of a document's metadata.
CREATE TABLE document_tags (
  collection int8 NOT NULL,
  document uuid NOT NULL,
  tag uuid NOT NULL,
  PRIMARY KEY (collection, document, tag)
);
CREATE INDEX documents_of_tag ON document_tags (collection, tag, document);

CREATE TABLE passages (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  number int8 NOT NULL,  -- grows with each passage, so that a limit cuts off the oldest
  document uuid NOT NULL,
  access int4 NOT NULL,
  position int8 NOT NULL,
  title text NOT NULL,
  text text NOT NULL,
  start int8 NOT NULL,
  "end" int8 NOT NULL,
  headings text NOT NULL,
  speaker text NOT NULL DEFAULT '',
  role text NOT NULL DEFAULT '',
  at int8,  -- when it was said
  session int8,  -- a hash of the user, the agent and the session
  PRIMARY KEY (collection, id)
);
CREATE INDEX passages_of_document ON passages (collection, document, position);
CREATE INDEX passages_by_time ON passages (collection, at) WHERE at IS NOT NULL;
CREATE INDEX passages_of_session ON passages (collection, session, position, id) WHERE session IS NOT NULL;

-- Vectors of eight bits per dimension, as whole numbers in half precision, in the row itself up to 4,000 dimensions. Small collections are scanned. A large one gets
-- tables of its own that inherit from these two, and an index there, so that no other tenant affects its searches, nor it theirs:
-- the server opens every index of a table when it plans a statement (vector_indexes.py).
CREATE TABLE passage_vectors (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  document uuid NOT NULL,
  access int4 NOT NULL,
  dimension int4 NOT NULL,
  vector halfvec NOT NULL,
  PRIMARY KEY (collection, id)
) WITH (toast_tuple_target = 8160);
ALTER TABLE passage_vectors ALTER COLUMN vector SET STORAGE MAIN;
CREATE INDEX passage_vectors_of_document ON passage_vectors (collection, document);
CREATE INDEX passage_vectors_of_access ON passage_vectors (collection, access);

-- Vectors of eight bits per dimension, and the bits by which they are found.
CREATE TABLE entity_vectors (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  dimension int4 NOT NULL,
  bits varbit NOT NULL,
  code bytea NOT NULL,
  PRIMARY KEY (collection, id)
) WITH (toast_tuple_target = 8160);
ALTER TABLE entity_vectors ALTER COLUMN code SET STORAGE EXTERNAL;

-- The inverted index finds candidates, and the columns beside it have the terms that BM25 scores. A word is the collection's
-- mark with the number of a term, a permission or a tag. fastupdate is off, because every search would read the pending list.
CREATE TABLE passage_terms (
  collection int8 NOT NULL,
  number int8 NOT NULL,
  id uuid NOT NULL,
  length int4 NOT NULL,
  terms bytea NOT NULL,
  words tsvector NOT NULL,
  sequence bytea,   -- of a turn: the numbers of its terms in the order of the text
  tells_time bool,  -- of a turn: whether it has an expression of time
  PRIMARY KEY (collection, number)
);
CREATE INDEX passage_terms_by_words ON passage_terms USING gin (words) WITH (fastupdate = off);

CREATE TABLE terms (
  collection int8 NOT NULL,
  term uuid NOT NULL,
  number int4 NOT NULL,
  passages int4 NOT NULL,
  PRIMARY KEY (collection, term)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX terms_by_number ON terms (collection, number);

-- The passages that have a term, for each permission.
CREATE TABLE term_counts (
  collection int8 NOT NULL,
  term int4 NOT NULL,
  access int4 NOT NULL,
  passages int4 NOT NULL,
  PRIMARY KEY (collection, term, access)
) WITH (fillfactor = 90);

CREATE TABLE entities (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  sense text NOT NULL,
  passages int4 NOT NULL DEFAULT 0,
  PRIMARY KEY (collection, id)
) WITH (fillfactor = 70);

-- The description of an entity by each document. An entity exists as long as it has a description.
CREATE TABLE profiles (
  collection int8 NOT NULL,
  entity uuid NOT NULL,
  access int4 NOT NULL,
  document uuid NOT NULL,
  name text NOT NULL,
  type text NOT NULL,
  description text NOT NULL,
  aliases text NOT NULL,
  PRIMARY KEY (collection, entity, access, document)
);
CREATE INDEX profiles_of_document ON profiles (collection, document);

CREATE TABLE names (
  collection int8 NOT NULL,
  name uuid NOT NULL,
  entity uuid NOT NULL,
  access int4 NOT NULL,
  documents int4 NOT NULL,
  PRIMARY KEY (collection, name, entity, access)
);

-- The keys of the names of an entity (names.py). Entities that share a key may be the same.
CREATE TABLE entity_keys (
  collection int8 NOT NULL,
  key uuid NOT NULL,
  access int4 NOT NULL,
  entity uuid NOT NULL,
  documents int4 NOT NULL,
  PRIMARY KEY (collection, key, access, entity)
);

-- The passages of an entity, best first: those about it, then those that mention it most (rank_mention).
CREATE TABLE mentions (
  collection int8 NOT NULL,
  entity uuid NOT NULL,
  access int4 NOT NULL,
  rank int4 NOT NULL,
  passage uuid NOT NULL,
  PRIMARY KEY (collection, entity, access, rank, passage)
);

-- The passages that mention an entity, for each permission.
CREATE TABLE entity_counts (
  collection int8 NOT NULL,
  entity uuid NOT NULL,
  access int4 NOT NULL,
  passages int4 NOT NULL,
  PRIMARY KEY (collection, entity, access)
) WITH (fillfactor = 90);

-- What a passage says: its mentions, its facts and their statements (store/packs.py). `facts` has the ids of the facts in the
-- order of the pack, so that one statement also finds their uses and whether they are retracted. Rows of up to half a page
-- are not compressed.
CREATE TABLE packs (
  collection int8 NOT NULL,
  passage uuid NOT NULL,
  facts uuid[] NOT NULL,
  pack bytea NOT NULL,
  PRIMARY KEY (collection, passage)
) WITH (toast_tuple_target = 4080);

-- The vectors of the statements of a pack, in eight bits per dimension. They do not compress, so it is not tried, and they stay
-- in the row up to a page: a search reads many of them, and one in another table costs several more pages.
CREATE TABLE statement_vectors (
  collection int8 NOT NULL,
  passage uuid NOT NULL,
  codes bytea NOT NULL,
  PRIMARY KEY (collection, passage)
) WITH (toast_tuple_target = 8160);
ALTER TABLE statement_vectors ALTER COLUMN codes SET STORAGE EXTERNAL;

-- The passages that assert a fact, the most trusted first: by source, then by strength. The columns are in an order without
-- gaps between them.
CREATE TABLE assertions (
  collection int8 NOT NULL,
  rank float8 NOT NULL,  -- weight times confidence, negative
  valid_from int8,
  valid_to int8,
  fact uuid NOT NULL,
  passage uuid NOT NULL,
  place int4 NOT NULL,  -- of the fact in the pack
  access int4 NOT NULL,
  source int2 NOT NULL,  -- 0 is the most trusted
  status int2 NOT NULL,
  series int8 NOT NULL DEFAULT 0,  -- a hash of the subject and the predicate
  began int8 NOT NULL DEFAULT 0,  -- valid_from, or when it was said, or when it was recorded
  PRIMARY KEY (collection, fact, source, rank, passage)
);
CREATE INDEX unconfirmed_assertions ON assertions (collection, fact) WHERE status <> 1;
-- The assertions of one subject and predicate, newest first, for each permission.
CREATE INDEX assertions_by_time ON assertions (collection, series, access, began DESC, passage, fact);

-- The facts of an entity, strongest first, for each permission and for each predicate.
CREATE TABLE edges (
  collection int8 NOT NULL,
  entity uuid NOT NULL,
  access int4 NOT NULL,
  rank float8 NOT NULL,  -- weight times confidence, negative
  fact uuid NOT NULL,
  predicate int8 NOT NULL,
  PRIMARY KEY (collection, entity, access, rank, fact)
);
CREATE INDEX edges_of_predicate ON edges (collection, entity, predicate, access, rank, fact);

-- How often an item was used, and when last. Rows are narrow and pages have free space, so that counting stays cheap.
CREATE TABLE usage (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  access_count int8 NOT NULL,
  last_accessed int8 NOT NULL,
  PRIMARY KEY (collection, id)
) WITH (fillfactor = 70);

-- Vectors of the next embedding model, until all are staged (waylore reembed).
CREATE TABLE staged (
  collection int8 NOT NULL,
  model text NOT NULL,
  kind text NOT NULL,
  id uuid NOT NULL,  -- of a fact: the passage
  place int4 NOT NULL,  -- of a fact in its pack; otherwise 0
  code bytea NOT NULL,
  PRIMARY KEY (collection, kind, id, place, model)
) WITH (toast_tuple_target = 8160);

-- The fingerprint of each file that was read completely. An unchanged file is not read again.
CREATE TABLE files (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  uri text NOT NULL,
  fingerprint text NOT NULL,
  PRIMARY KEY (collection, id)
);

-- What a request has changed, by the id of the request, so that its answer can be given again. It has ids and no content.
CREATE TABLE receipts (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  until int8 NOT NULL,
  author text NOT NULL,
  documents bytea NOT NULL,
  passages bytea NOT NULL,
  entities bytea NOT NULL,
  facts bytea NOT NULL,
  missing bytea NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE INDEX receipts_by_end ON receipts (collection, until);

-- What was changed, by whom and when. It has ids and no content. Rows are never changed; old ones may be deleted. Each row has
-- a hash of its values and of the hash before.
CREATE TABLE audit (
  collection int8 NOT NULL,
  number int8 NOT NULL,
  at int8 NOT NULL,
  author text NOT NULL,
  request text NOT NULL,
  verb text NOT NULL,
  count int8 NOT NULL,
  documents bytea NOT NULL,  -- the first 100 ids
  labels_before text NOT NULL,
  labels_after text NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (collection, number)
);

-- A collection may have an index on a Qdrant cluster, which finds candidates (store/qdrant). The rows here stay the truth.
-- `tenant` marks the points of the collection there. While `passages_after` or `entities_after` is not null, the index is
-- being built: the items up to these ids are in it, and no search uses it.
CREATE TABLE indexes (
  collection int8 NOT NULL,
  tenant uuid NOT NULL,
  url text NOT NULL,  -- of each peer, separated by commas
  shards int4,
  replicas int4,
  passages_after uuid,
  entities_after uuid,
  PRIMARY KEY (collection)
);

-- Items that were changed since they were last sent to the index. A row is deleted when the index has confirmed the change.
CREATE TABLE outbox (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  version int8 NOT NULL,  -- of the collection, since the last change
  at timestamptz NOT NULL DEFAULT now(),  -- of the first change
  access int4 NOT NULL,
  kind int2 NOT NULL,  -- 0 for a passage, 1 for an entity, 2 for a tenant that was replaced
  PRIMARY KEY (collection, kind, id, access)
);
CREATE INDEX outbox_by_version ON outbox (collection, version);
CREATE INDEX outbox_of_access ON outbox (collection, kind, access);

-- Under row-level security an operator uses an index only if PostgreSQL marks it as leakproof, and @@ is not marked. So one
-- function searches the inverted index as a role that may see all rows, and returns only those of the collection. It compares
-- by IS NOT DISTINCT FROM, which uses no index: the words already select the collection, and the primary key must not be read.
CREATE FUNCTION matching(question tsquery, cap int8)
RETURNS TABLE (number int8, id uuid, length int4, terms bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = waylore, pg_temp
AS $$
  SELECT p.number, p.id, p.length, p.terms FROM passage_terms p
  WHERE p.words @@ question AND p.collection IS NOT DISTINCT FROM nullif(current_setting('waylore.collection', true), '')::int8
  ORDER BY p.number DESC LIMIT cap
$$;
REVOKE ALL ON FUNCTION matching FROM PUBLIC;

-- Whether a passage is about an entity, and how often it mentions it, as one number: the best mention has the lowest.
CREATE FUNCTION rank_mention(is_own bool, count int4) RETURNS int4 LANGUAGE sql IMMUTABLE AS $$
  SELECT -$2 - CASE WHEN $1 THEN 1073741824 ELSE 0 END
$$;

-- Rows are deleted one by one, by their complete key. If a statement joined the table with the keys, the planner might read
-- all rows of the collection instead, because its statistics may be those of other collections.
CREATE FUNCTION delete_mention(int8, uuid, int4, bool, int4, uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM waylore.mentions WHERE collection = $1 AND entity = $2 AND access = $3 AND passage = $6
    AND rank = waylore.rank_mention($4, $5)
$$;
CREATE FUNCTION delete_assertion(int8, uuid, int2, float8, uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM waylore.assertions WHERE collection = $1 AND fact = $2 AND source = $3 AND rank = $4 AND passage = $5
$$;
CREATE FUNCTION delete_edge(int8, uuid, int4, float8, uuid) RETURNS void LANGUAGE sql AS $$
  DELETE FROM waylore.edges WHERE collection = $1 AND entity = $2 AND access = $3 AND rank = $4 AND fact = $5
$$;

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of the audit log are never changed, and are kept for 400 days';
END
$$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit FOR EACH ROW
  WHEN (old.at > (extract(epoch FROM now()) - 400 * 86400) * 1000000) EXECUTE FUNCTION refuse_audit_change();

-- Each transaction sets its collection, and neither reads nor writes another; if it sets none, it sees no rows. This holds for
-- the owner of the tables too. The application works as waylore_app, which owns no table and bypasses no policy.
DO $$
DECLARE
  of_collection text;
  own text := 'collection = (SELECT nullif(current_setting(''waylore.collection'', true), '''')::int8)';
BEGIN
  FOR of_collection IN
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'waylore'::regnamespace AND c.relkind = 'r' AND a.attname = 'collection' AND NOT a.attisdropped
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', of_collection);
    EXECUTE format('CREATE POLICY own ON %I USING (%s) WITH CHECK (%s)', of_collection, own, own);
  END LOOP;
END
$$;

-- The roles, if the migrating role may create them. They belong to the whole server, so another database may have made them.
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NULL THEN
    CREATE ROLE waylore_app NOLOGIN;
  END IF;
  IF to_regrole('waylore_matching') IS NULL THEN
    CREATE ROLE waylore_matching NOLOGIN;
  END IF;
  EXECUTE format('GRANT waylore_app, waylore_matching TO %I', current_user);
EXCEPTION
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'waylore: % may not make roles, and stays what it is', current_user;
  WHEN duplicate_object OR unique_violation THEN
    EXECUTE format('GRANT waylore_app, waylore_matching TO %I', current_user);
END
$$;
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore TO waylore_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA waylore TO waylore_app;
    REVOKE INSERT, UPDATE, DELETE ON migrations FROM waylore_app;
    REVOKE UPDATE, DELETE ON audit FROM waylore_app;
    GRANT EXECUTE ON FUNCTION matching TO waylore_app;
  END IF;
  IF to_regrole('waylore_matching') IS NOT NULL AND pg_has_role(current_user, 'waylore_matching', 'MEMBER') THEN
    CREATE POLICY matching ON passage_terms FOR SELECT TO waylore_matching USING (true);
    GRANT USAGE, CREATE ON SCHEMA waylore TO waylore_matching;
    GRANT SELECT ON passage_terms TO waylore_matching;
    ALTER FUNCTION matching OWNER TO waylore_matching;
    REVOKE CREATE ON SCHEMA waylore FROM waylore_matching;
  END IF;
END
$$;

-- A backup reads the rows of all collections as a role of its own, and changes none. The policy holds only for a session that has
-- taken the role: a member, such as the owner, still sees one collection at a time. A migration that adds a table grants SELECT
-- on it to this role and makes the same policy; otherwise backups are refused.
DO $$
BEGIN
  IF to_regrole('waylore_backup') IS NULL THEN
    CREATE ROLE waylore_backup NOLOGIN;
  END IF;
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    EXECUTE format('GRANT waylore_backup TO %I', current_user);
  END IF;
EXCEPTION
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'waylore: % may not make roles: a superuser has to make backups', current_user;
  WHEN duplicate_object OR unique_violation THEN
    EXECUTE format('GRANT waylore_backup TO %I', current_user);
END
$$;
DO $$
DECLARE
  of_collection text;
BEGIN
  IF to_regrole('waylore_backup') IS NOT NULL THEN
    GRANT USAGE ON SCHEMA waylore TO waylore_backup;
    GRANT SELECT ON ALL TABLES IN SCHEMA waylore TO waylore_backup;
    FOR of_collection IN
      SELECT relname FROM pg_class WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r' AND relrowsecurity
    LOOP
      EXECUTE format('DROP POLICY IF EXISTS backup ON %I', of_collection);
      EXECUTE format(
        'CREATE POLICY backup ON %I FOR SELECT TO waylore_backup USING (current_user = ''waylore_backup'')', of_collection);
    END LOOP;
  END IF;
END
$$;
