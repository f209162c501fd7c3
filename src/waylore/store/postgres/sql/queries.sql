-- Every statement of the PostgreSQL store by name. A statement that does the same as one of SQLite has the same name.
-- %(accesses)s are the permissions of the caller. %(tags)s are the tags of the filter and %(of_keys)s the key of each: a
-- document passes if it has a tag of each key. LATERAL … LIMIT applies a limit for each requested item, after the filter.
-- A fragment is a part of several statements.
-- Statements over many rows take them as arrays, one for each column, because COPY does not work with row-level security.
--
-- The planner's statistics of a collection may be out of date, or those of another collection. So joins from requested items
-- to their rows are LATERAL with a LIMIT, or scalar subqueries: the planner then looks them up one by one, by key.

-- ------------------------------------------------------------------------------------------- the database

-- name: extension
-- The version of pgvector and its schema.
SELECT extversion, extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'

-- name: available_extension
-- The version of pgvector that the server can install.
SELECT default_version FROM pg_available_extensions WHERE name = 'vector'

-- name: data_checksums
-- Whether the server compares the pages that it reads with checksums: on or off.
SHOW data_checksums

-- name: create_extension
CREATE EXTENSION IF NOT EXISTS vector

-- name: available_textsearch
-- The version of pg_textsearch that the server can install, and whether the server has loaded it, if the role may see that.
SELECT (SELECT default_version FROM pg_available_extensions WHERE name = 'pg_textsearch'),
  EXISTS (SELECT 1 FROM pg_settings WHERE name = 'shared_preload_libraries' AND setting LIKE '%pg_textsearch%')

-- name: textsearch
-- The version of pg_textsearch in this database, whether its index exists, and whether the role owns the tables.
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'pg_textsearch'),
  EXISTS (SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = 'waylore'::regnamespace AND c.relname = 'passage_terms_ranked' AND i.indisvalid),
  pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'waylore.passage_terms'::regclass), 'USAGE')

-- name: create_textsearch
CREATE EXTENSION IF NOT EXISTS pg_textsearch

-- name: add_ranked
-- A word of a passage is its collection and the number of a term in plain letters, which no text configuration changes. It is
-- repeated as often as the term occurs. Adding this column rewrites the table.
CREATE OR REPLACE FUNCTION waylore.ranked_word(collection int8, number int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT translate(to_hex(collection) || 'x' || to_hex(number), '0123456789', 'ghijklmnop') $$;
CREATE OR REPLACE FUNCTION waylore.ranked_words(collection int8, terms bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT coalesce(string_agg(repeat(waylore.ranked_word(collection, c.cell >> 6) || ' ', (c.cell & 63)::int), ''), '')
  FROM (SELECT get_byte(terms, i)::int8 | (get_byte(terms, i + 1)::int8 << 8) | (get_byte(terms, i + 2)::int8 << 16)
    | (get_byte(terms, i + 3)::int8 << 24) AS cell FROM generate_series(0, length(terms) - 4, 4) i) c
$$;
ALTER TABLE waylore.passage_terms
  ADD COLUMN IF NOT EXISTS ranked text GENERATED ALWAYS AS (waylore.ranked_words(collection, terms)) STORED;
CREATE INDEX IF NOT EXISTS passage_terms_ranked ON waylore.passage_terms USING bm25 (ranked)
  WITH (text_config = 'simple', k1 = 1.2, b = 0.75)

-- name: lock_migrations
-- Its two numbers differ from the one of a collection's lock.
SELECT pg_advisory_xact_lock(2003789428, 1)

-- name: has_migrations
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'waylore' AND c.relname = 'migrations'

-- name: create_migrations
CREATE SCHEMA IF NOT EXISTS waylore;
CREATE TABLE IF NOT EXISTS waylore.migrations (number int4 PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE waylore.migrations ADD COLUMN IF NOT EXISTS checksum text NOT NULL DEFAULT ''

-- name: applied_migrations
-- Without number 0, which records that the schema was renamed.
SELECT number, checksum FROM waylore.migrations WHERE number > 0

-- name: record_migration
INSERT INTO waylore.migrations (number, name, checksum) VALUES (%s, %s, %s)
ON CONFLICT (number) DO UPDATE SET checksum = excluded.checksum

-- name: standing
-- Whether the role may become waylore_app, and whether it bypasses row-level security otherwise.
SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'waylore_app' AND pg_has_role(oid, 'MEMBER')),
  rolsuper OR rolbypassrls, current_user::text FROM pg_roles WHERE rolname = current_user

-- name: begin
BEGIN

-- name: begin_reading
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: commit
COMMIT

-- name: settings
-- The settings of one transaction: role, collection and search path. JIT is off and plans are generic, because compiling a plan
-- or making one for each call takes longer than our statements do, and the best plan does not depend on the parameters. A
-- statement may take as long as the deadline allows, but not longer than the server does.
SELECT set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('search_path', %(path)s, true), set_config('role', %(role)s, true),
  set_config('waylore.collection', %(collection)s, true),
  set_config('statement_timeout', coalesce(least(%(milliseconds)s::int8,
    nullif(extract(epoch FROM current_setting('statement_timeout')::interval) * 1000, 0)::int8), 0)::text, true)

-- name: search_path
SELECT set_config('search_path', %(path)s, false)

-- name: lock
-- Writers of a collection wait for each other. Transactions that only count uses wait only for writers. Both learn whether the
-- server takes writes, before they write.
SELECT pg_advisory_xact_lock(%(collection)s), current_setting('transaction_read_only')::bool

-- name: lock_shared
SELECT pg_advisory_xact_lock_shared(%(collection)s), current_setting('transaction_read_only')::bool

-- ------------------------------------------------------------------------------------------- collection

-- name: ensure_collection
INSERT INTO collections (collection, name) VALUES (%(collection)s, %(name)s) ON CONFLICT DO NOTHING

-- name: collection
SELECT c.name, c.mark, c.version, c.model, c.dimension, c.documents, c.passages, c.entities, c.facts, c.mentions, c.weights,
  c.length, c.next_passage, c.next_term, c.next_access, c.own_vectors, i.tenant, i.url, i.shards, i.replicas,
  i.passages_after IS NULL AND i.entities_after IS NULL
FROM collections c LEFT JOIN indexes i ON i.collection = %(collection)s WHERE c.collection = %(collection)s

-- name: secret
SELECT secret FROM collections WHERE collection = %(collection)s

-- name: version
SELECT version FROM collections WHERE collection = %(collection)s

-- name: count
-- Add the changes of a write to the counters.
UPDATE collections SET version = version + 1, documents = documents + %(documents)s, passages = passages + %(passages)s,
  entities = entities + %(entities)s, facts = facts + %(facts)s, mentions = mentions + %(mentions)s,
  length = length + %(length)s
WHERE collection = %(collection)s

-- name: set_model
UPDATE collections SET model = %(model)s, dimension = %(dimension)s, weights = '', version = version + 1
WHERE collection = %(collection)s

-- name: set_weights
UPDATE collections SET weights = %(weights)s, version = version + 1 WHERE collection = %(collection)s

-- name: set_next
UPDATE collections SET next_passage = %(next_passage)s, next_term = %(next_term)s, next_access = %(next_access)s
WHERE collection = %(collection)s

-- --------------------------------------------------------------------------------------------- visibility

-- fragment: count_tags
-- The keys of the filter of which a document has a tag.
(SELECT count(DISTINCT g.key) FROM document_tags t
  JOIN unnest(%(tags)s::uuid[], %(of_keys)s::int4[]) g(tag, key) ON g.tag = t.tag
  WHERE t.collection = %(collection)s AND t.document = $1)

-- fragment: has_tags
(%(keys)s = 0 OR %(keys)s = @count_tags($1))

-- fragment: is_unexpired
-- Whether a document has not expired. %(expired_by)s is null if no document that the caller may see has.
(%(expired_by)s::int8 IS NULL OR (
  SELECT x.expires_at <= %(expired_by)s FROM documents x WHERE x.collection = %(collection)s AND x.id = $1) IS NOT TRUE)

-- fragment: is_kept
-- Whether a document has the tags of the filter and has not expired.
(@has_tags($1) AND @is_unexpired($1))

-- fragment: is_wanted
-- Whether a passage passes the filter by its speaker and time, and its document by its tags and expiry.
((%(keys)s = 0 AND NOT %(has_turns)s AND %(expired_by)s::int8 IS NULL) OR (
  SELECT @is_kept(o.document) AND @is_said(o) FROM passages o WHERE o.collection = %(collection)s AND o.id = $1))

-- fragment: is_said
-- Whether a passage was said by the speaker and at the time of the filter.
(NOT %(has_turns)s OR (@is_dated($1) AND (%(speaker)s::text IS NULL OR $1.speaker = %(speaker)s)))

-- fragment: is_shown
-- Whether the caller may see a passage, and the filter lets it through.
($1.access = ANY(%(accesses)s::int4[]) AND @is_kept($1.document) AND @is_said($1))

-- fragment: is_selected
-- Whether a passage, given by id, passes the filter by its speaker and time, and its document has not expired.
((NOT %(has_turns)s AND %(expired_by)s::int8 IS NULL) OR (SELECT @is_said(o) AND @is_unexpired(o.document) FROM passages o WHERE o.collection = %(collection)s AND o.id = $1))

-- fragment: is_dated
-- Whether a passage, or the event of a document, has the time of the filter.
coalesce((%(since)s::int8 IS NULL OR $1.at >= %(since)s) AND (%(until)s::int8 IS NULL OR $1.at < %(until)s)
  AND (%(said_by)s::int8 IS NULL OR $1.at IS NULL OR $1.at <= %(said_by)s), false)

-- fragment: most_trusted
-- Of the assertions of a fact that the caller may see: the most trusted one.
FROM assertions z
WHERE z.collection = %(collection)s AND z.fact = $1 AND z.access = ANY(%(accesses)s::int4[])
  AND (%(as_of)s::int8 IS NULL OR (coalesce(z.valid_from <= %(as_of)s, true) AND coalesce(z.valid_to > %(as_of)s, true)))
  AND @is_wanted(z.passage)
ORDER BY z.source, z.rank, z.passage LIMIT 1

-- fragment: best_mentions
-- The mentions of an entity with one permission, at most $2.
SELECT n.passage, -n.rank & 1073741823 AS count, n.rank <= -1073741824 AS is_own FROM mentions n
WHERE n.collection = %(collection)s AND n.entity = $1 AND n.access = a.access AND @is_wanted(n.passage)
ORDER BY n.rank, n.passage LIMIT $2

-- fragment: first_profiles
-- The descriptions of an entity with one permission, at most $2.
(SELECT q.document, q.name, q.type, q.description, q.aliases FROM profiles q
  WHERE q.collection = %(collection)s AND q.entity = $1 AND q.access = a.access AND @is_kept(q.document)
  ORDER BY q.document LIMIT $2)

-- fragment: count_passages
-- The passages that mention an entity and that the caller may see.
CASE WHEN %(is_limited)s THEN (SELECT coalesce(sum(c.passages), 0) FROM entity_counts c
  WHERE c.collection = %(collection)s AND c.entity = $1.id AND c.access = ANY(%(accesses)s::int4[])) ELSE $1.passages END

-- fragment: find_by_keys
-- The entities that have a key, at most a number for each permission.
SELECT DISTINCT w.key, k.entity FROM unnest(%(ids)s::uuid[]) w(key) CROSS JOIN unnest(%(accesses)s::int4[]) a(access)
CROSS JOIN LATERAL (
  SELECT l.entity FROM entity_keys l WHERE l.collection = %(collection)s AND l.key = w.key AND l.access = a.access
    AND (%(keys)s = 0 AND %(expired_by)s::int8 IS NULL OR EXISTS (SELECT 1 FROM profiles p
      WHERE p.collection = %(collection)s AND p.entity = l.entity AND p.access = a.access AND @is_kept(p.document)))
  ORDER BY l.entity LIMIT %(cap)s) k

-- fragment: join_packs
-- Text, time, pack and vectors of statements of a passage.
CROSS JOIN LATERAL (SELECT q.id, q.document, q.text, q.at FROM passages q WHERE q.collection = %(collection)s AND q.id = $1 LIMIT 1) p
CROSS JOIN LATERAL (SELECT e.recorded_at FROM documents e WHERE e.collection = %(collection)s AND e.id = p.document LIMIT 1) d
CROSS JOIN LATERAL (SELECT l.pack FROM packs l WHERE l.collection = %(collection)s AND l.passage = p.id LIMIT 1) k
LEFT JOIN LATERAL (SELECT w.codes FROM statement_vectors w WHERE w.collection = %(collection)s AND w.passage = p.id LIMIT 1) v ON true

-- fragment: join_uses
-- How often a fact was used.
LEFT JOIN LATERAL (SELECT w.access_count, w.last_accessed FROM usage w
  WHERE w.collection = %(collection)s AND w.id = $1 LIMIT 1) u ON true

-- name: visible_accesses
-- Of the caller's labels, without a user and of its own user, with the time at which the first document of each expires.
SELECT a.access, a.passages, a.length, a.assertions, a.turns, coalesce((SELECT d.expires_at FROM documents d
    WHERE d.collection = %(collection)s AND d.access = a.access AND d.expires_at IS NOT NULL ORDER BY d.expires_at LIMIT 1),
  9223372036854775807), a."user" > ''
FROM accesses a WHERE a.collection = %(collection)s AND a."user" IN ('', %(user)s::text)
  AND (%(labels)s::text[] IS NULL OR a.labels = '{}' OR a.labels && %(labels)s::text[])

-- name: has_users
SELECT EXISTS (SELECT 1 FROM accesses WHERE collection = %(collection)s AND "user" > '')

-- name: users
SELECT "user", sum(documents)::int8, sum(passages)::int8 FROM accesses
WHERE collection = %(collection)s AND "user" > %(after)s::text GROUP BY "user" ORDER BY "user" LIMIT %(limit)s

-- name: known_accesses
SELECT id, access FROM accesses WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: use_access
INSERT INTO accesses (collection, access, id, labels, "user", documents, passages)
VALUES (%(collection)s, %(access)s, %(id)s, %(labels)s, %(user)s, %(documents)s, 0)
ON CONFLICT (collection, id) DO UPDATE SET documents = accesses.documents + excluded.documents

-- name: leave_access
UPDATE accesses a SET documents = a.documents - u.documents
FROM (SELECT %s::int8 AS collection) c, unnest(%b::int4[], %b::int8[]) u(access, documents)
WHERE a.collection = c.collection AND a.access = u.access

-- name: count_access
UPDATE accesses a SET passages = a.passages + u.passages, length = a.length + u.length, assertions = a.assertions + u.assertions,
  turns = a.turns + u.turns
FROM (SELECT %s::int8 AS collection) c,
  unnest(%b::int4[], %b::int8[], %b::int8[], %b::int8[], %b::int8[]) u(access, passages, length, assertions, turns)
WHERE a.collection = c.collection AND a.access = u.access

-- name: drop_unused_accesses
DELETE FROM accesses WHERE collection = %(collection)s AND documents = 0

-- ---------------------------------------------------------------------------------------------- documents

-- name: digests
SELECT id, digest, access, labels, "user" FROM documents WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: labels_of_file
-- Of the documents that were read from a file. The URI of a row in a file ends in # and its place.
SELECT DISTINCT labels, "user" FROM documents
WHERE collection = %(collection)s AND address >= left(%(file)s::text, 500) AND address <= left(%(file)s::text || '$', 500)
  AND (uri = %(file)s::text OR uri >= %(file)s::text || '#' AND uri < %(file)s::text || '$')

-- name: insert_document
INSERT INTO documents (collection, id, access, title, uri, source, metadata, labels, recorded_at, digest, "user", agent, session, at, expires_at, author)
SELECT %s, * FROM unnest(%b::uuid[], %b::int4[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::int8[], %b::uuid[],
  %b::text[], %b::text[], %b::text[], %b::int8[], %b::int8[], %b::text[])

-- name: insert_document_tag
INSERT INTO document_tags (collection, document, tag) SELECT %s, * FROM unnest(%b::uuid[], %b::uuid[]) ON CONFLICT DO NOTHING

-- name: documents
SELECT d.id, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d."user", d.agent, d.session, d.at, d.expires_at, d.author
FROM documents d
WHERE d.collection = %(collection)s AND d.id = ANY(%(ids)s::uuid[]) AND d.access = ANY(%(accesses)s::int4[])
  AND @is_kept(d.id) AND @is_dated(d)

-- name: sources
-- The documents of passages, with the id of the passage in the first column.
SELECT p.id, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d."user", d.agent, d.session, d.at, d.expires_at, d.author
FROM passages p
CROSS JOIN LATERAL (SELECT f.* FROM documents f WHERE f.collection = %(collection)s AND f.id = p.document LIMIT 1) d
WHERE p.collection = %(collection)s AND p.id = ANY(%(ids)s::uuid[]) AND d.access = ANY(%(accesses)s::int4[])
  AND @is_kept(d.id) AND @is_said(p)

-- name: listed
-- Documents by URI, starting after one. A prefix is a range.
SELECT d.id, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d."user", d.agent, d.session, d.at, d.expires_at, d.author
FROM documents d
WHERE d.collection = %(collection)s AND d.address >= left(%(uri)s::text, 500)
  AND (d.uri > %(uri)s::text OR d.uri = %(uri)s::text AND d.id > %(id)s::uuid)
  AND d.address >= left(%(under)s::text, 500) AND d.address <= left(%(beyond)s::text, 500)
  AND d.uri >= %(under)s::text AND d.uri < %(beyond)s::text
  AND d.access = ANY(%(accesses)s::int4[])
  AND @is_kept(d.id) AND @is_dated(d)
ORDER BY d.address, d.uri, d.id LIMIT %(limit)s

-- name: expired_documents
-- Of all users and labels, by id.
SELECT d.id, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d."user", d.agent, d.session, d.at, d.expires_at, d.author
FROM documents d WHERE d.collection = %(collection)s AND d.expires_at <= %(by)s AND d.id > %(after)s::uuid
ORDER BY d.id LIMIT %(limit)s

-- name: fingerprints
SELECT uri, fingerprint FROM files WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: receipt
SELECT documents, passages, entities, facts, missing FROM receipts
WHERE collection = %(collection)s AND id = %(id)s::uuid AND until > %(now)s AND author = coalesce(%(author)s, author)

-- name: add_receipt
INSERT INTO receipts (collection, id, until, author, documents, passages, entities, facts, missing)
VALUES (%(collection)s, encode(%(id)s, 'hex')::uuid, %(until)s, %(author)s, %(documents)s, %(passages)s, %(entities)s, %(facts)s,
  %(missing)s)

-- name: delete_old_receipts
DELETE FROM receipts WHERE collection = %(collection)s AND until <= %(now)s

-- name: last_audit
SELECT number, hash FROM audit WHERE collection = %(collection)s ORDER BY number DESC LIMIT 1

-- name: add_audit
INSERT INTO audit (collection, number, at, author, request, verb, count, documents, labels_before, labels_after, hash)
VALUES (%(collection)s, %(number)s, %(at)s, %(author)s, %(request)s, %(verb)s, %(count)s, %(documents)s, %(labels_before)s,
  %(labels_after)s, %(hash)s)

-- name: audit
-- A negative number of an entry counts from the end.
SELECT number, at, author, request, verb, count, documents, labels_before, labels_after, hash FROM audit
WHERE collection = %(collection)s AND number > %(after)s + CASE WHEN %(after)s < 0
  THEN coalesce((SELECT max(number) FROM audit WHERE collection = %(collection)s), 0) ELSE 0 END
ORDER BY number LIMIT %(limit)s

-- name: set_fingerprint
INSERT INTO files (collection, id, uri, fingerprint) SELECT %s, * FROM unnest(%b::uuid[], %b::text[], %b::text[])
ON CONFLICT (collection, id) DO UPDATE SET fingerprint = excluded.fingerprint

-- name: delete_fingerprints
DELETE FROM files WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: export_documents
SELECT d.id, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d."user", d.agent, d.session, d.at, d.expires_at, d.author
FROM documents d WHERE d.collection = %(collection)s AND d.id > %(after)s::uuid ORDER BY d.id LIMIT %(limit)s

-- name: delete_documents
DELETE FROM documents WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[]) RETURNING id, uri

-- name: enrichments
-- What `waylore enrich` added to the passages of documents.
SELECT id, access FROM documents WHERE collection = %(collection)s AND address = ANY(%(addresses)s::text[])

-- name: delete_document_tags
DELETE FROM document_tags WHERE collection = %(collection)s AND document = ANY(%(ids)s::uuid[])

-- ----------------------------------------------------------------------------------------------- passages

-- name: insert_passage
INSERT INTO passages (collection, id, number, document, access, position, title, text, start, "end", headings, speaker, role, at, session)
SELECT %s, * FROM unnest(%b::uuid[], %b::int8[], %b::uuid[], %b::int4[], %b::int8[], %b::text[], %b::text[], %b::int8[], %b::int8[], %b::text[],
  %b::text[], %b::text[], %b::int8[], %b::int8[])

-- name: passage_rows
SELECT id, number FROM passages WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: passages
SELECT p.id, p.id, p.document, p.text, p.title, p.position, p.start, p."end", p.headings,
  CASE WHEN %(vectors)s THEN (SELECT v.vector FROM passage_vectors v WHERE v.collection = %(collection)s AND v.id = p.id) END,
  p.speaker, p.role, p.at
FROM passages p
WHERE p.collection = %(collection)s AND p.id = ANY(%(ids)s::uuid[]) AND p.access = ANY(%(accesses)s::int4[])
  AND @is_kept(p.document) AND @is_said(p)

-- name: passages_between
-- The ids from one to another, of passages that the caller may see.
SELECT p.id FROM passages p
WHERE p.collection = %(collection)s AND p.id BETWEEN %(first)s::uuid AND %(last)s::uuid AND p.access = ANY(%(accesses)s::int4[])
  AND @is_kept(p.document) AND @is_said(p)
ORDER BY p.id LIMIT %(limit)s

-- name: vectors_of_passages
SELECT v.id, v.vector FROM passage_vectors v
WHERE v.collection = %(collection)s AND v.id = ANY(%(ids)s::uuid[]) AND v.access = ANY(%(accesses)s::int4[])
  AND @is_kept(v.document) AND @is_selected(v.id)

-- name: terms_of_passages
SELECT p.id, t.length, t.terms FROM passages p
CROSS JOIN LATERAL (SELECT u.* FROM passage_terms u WHERE u.collection = %(collection)s AND u.number = p.number LIMIT 1) t
WHERE p.collection = %(collection)s AND p.id = ANY(%(ids)s::uuid[]) AND p.access = ANY(%(accesses)s::int4[])
  AND @is_kept(p.document) AND @is_said(p)

-- name: turns
-- Turns by id, each with the turns before and after it of the same session and, with same_role, role. The pieces of a long turn are
-- neighbours of each other.
WITH wanted AS MATERIALIZED (
  SELECT p.session, p.role, p.position, p.id FROM passages p
  WHERE p.collection = %(collection)s AND p.id = ANY(%(ids)s::uuid[]) AND p.session IS NOT NULL AND @is_shown(p)),
near AS (
  SELECT n.id FROM wanted w CROSS JOIN LATERAL (
    SELECT o.id FROM passages o WHERE o.collection = %(collection)s AND o.session = w.session AND (NOT %(same_role)s OR o.role = w.role)
      AND (o.position, o.id) <= (w.position, w.id) AND @is_shown(o)
    ORDER BY o.position DESC, o.id DESC LIMIT %(before)s::int8 + 1) n
  UNION
  SELECT n.id FROM wanted w CROSS JOIN LATERAL (
    SELECT o.id FROM passages o WHERE o.collection = %(collection)s AND o.session = w.session AND (NOT %(same_role)s OR o.role = w.role)
      AND (o.position, o.id) > (w.position, w.id) AND @is_shown(o)
    ORDER BY o.position, o.id LIMIT %(after)s::int8) n)
SELECT p.session, p.role, p.position, p.id, p.speaker, p.at, p.text, t.sequence, t.tells_time,
  (SELECT v.vector FROM passage_vectors v WHERE v.collection = %(collection)s AND v.id = p.id)
FROM near n
CROSS JOIN LATERAL (SELECT q.* FROM passages q WHERE q.collection = %(collection)s AND q.id = n.id LIMIT 1) p
CROSS JOIN LATERAL (SELECT u.* FROM passage_terms u WHERE u.collection = %(collection)s AND u.number = p.number LIMIT 1) t

-- name: export_passages
SELECT p.id, p.id, p.document, p.text, p.title, p.position, p.start, p."end", p.headings, v.vector, p.speaker, p.role, p.at
FROM passages p
LEFT JOIN LATERAL (SELECT w.* FROM passage_vectors w WHERE w.collection = %(collection)s AND w.id = p.id LIMIT 1) v ON true
WHERE p.collection = %(collection)s AND p.document = ANY(%(ids)s::uuid[]) ORDER BY p.document, p.position, p.id

-- name: delete_passages
DELETE FROM passages WHERE collection = %(collection)s AND document = ANY(%(ids)s::uuid[]) 
RETURNING id, number, access, role > '', text = '' AND title = ''

-- name: insert_passage_vector
INSERT INTO passage_vectors (collection, id, vector, dimension, document, access)
SELECT %s, * FROM unnest(%b::uuid[], %b::halfvec[], %b::int4[], %b::uuid[], %b::int4[])
ON CONFLICT (collection, id) DO UPDATE SET vector = excluded.vector, dimension = excluded.dimension

-- name: delete_passage_vectors
DELETE FROM passage_vectors WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: nearest_passages
-- By the collection's own index, if it has one, in approximate order. The caller reads more than it needs and ranks them
-- itself.
SELECT v.id, v.vector FROM passage_vectors v
WHERE v.collection = %(collection)s AND v.dimension = {dimension} AND v.access = ANY(%(accesses)s::int4[])
  AND @is_kept(v.document) AND @is_selected(v.id)
ORDER BY v.vector::halfvec({dimension}) <=> %(vector)s::halfvec({dimension}) LIMIT %(cap)s

-- name: nearest_passages_exactly
-- All passages that the caller may see, by distance. Tags are checked from the nearest on.
SELECT v.id, v.vector FROM (
  SELECT n.id FROM (
    SELECT w.id, w.document FROM passage_vectors w
    WHERE w.collection = %(collection)s AND w.access = ANY(%(accesses)s::int4[])
    ORDER BY w.vector <=> %(vector)s::halfvec, w.id OFFSET 0) n
  WHERE @is_kept(n.document) AND @is_selected(n.id)
  LIMIT %(cap)s) k
CROSS JOIN LATERAL (SELECT x.* FROM passage_vectors x WHERE x.collection = %(collection)s AND x.id = k.id LIMIT 1) v

-- name: nearest_tagged_passages
-- The same, starting from the documents with a tag of the first key, which may be few of very many.
SELECT v.id, v.vector FROM (
  SELECT w.id FROM passage_vectors w
  WHERE w.collection = %(collection)s AND w.access = ANY(%(accesses)s::int4[])
    AND w.document IN (SELECT t.document FROM document_tags t
      WHERE t.collection = %(collection)s AND t.tag = ANY(%(first_tags)s::uuid[]))
    AND (%(keys)s = 1 OR %(keys)s = @count_tags(w.document)) AND @is_selected(w.id)
  ORDER BY w.vector <=> %(vector)s::halfvec, w.id LIMIT %(cap)s) k
CROSS JOIN LATERAL (SELECT x.* FROM passage_vectors x WHERE x.collection = %(collection)s AND x.id = k.id LIMIT 1) v

-- name: search_settings
-- An index search continues past rows that the filter removes, up to a limit. Sorting is switched off, because the planner
-- estimates their number badly and would sort all rows instead.
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %(wanted)s, true),
  set_config('hnsw.max_scan_tuples', %(most)s, true), set_config('enable_sort', 'off', true),
  set_config('plan_cache_mode', 'force_custom_plan', true)

-- name: unsorted_settings
SELECT set_config('enable_sort', 'off', true)

-- name: planned_settings
-- Plan for this collection: only then does the planner know of its own index, or that it is small.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true)

-- name: exact_settings
SELECT set_config('enable_sort', 'on', true), set_config('plan_cache_mode', 'force_generic_plan', true)

-- name: indexes
-- Indexes of vectors that are valid.
SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = 'waylore'::regnamespace AND c.relname LIKE %(names)s AND i.indisvalid

-- name: unfinished_indexes
-- Indexes of vectors whose building was interrupted.
SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = 'waylore'::regnamespace AND c.relname LIKE %(names)s AND NOT i.indisvalid
  AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_create_index b WHERE b.index_relid = c.oid)

-- name: index_passage_vectors
CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON waylore.{table}
USING hnsw ((vector::halfvec({dimension})) halfvec_cosine_ops) WITH (m = {links}, ef_construction = {tried})
WHERE collection = {collection} AND dimension = {dimension}

-- name: index_entity_vectors
CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON waylore.{table}
USING hnsw ((bits::bit({dimension})) bit_hamming_ops) WITH (m = {links}, ef_construction = {tried})
WHERE collection = {collection} AND dimension = {dimension}

-- name: drop_index
DROP INDEX CONCURRENTLY IF EXISTS waylore.{name}

-- name: try_building
-- One process at a time builds the indexes of a collection. The lock lasts as long as its connection.
SELECT pg_try_advisory_lock(2003789429, %(number)s)

-- name: building_settings
-- Row-level security shows this collection, and limits of the operator must not end the work on a large one.
SELECT set_config('waylore.collection', %(collection)s, false),
  (SELECT count(set_config(name, '0', false)) FROM pg_settings WHERE name IN
    ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'))

-- name: vector_tables
-- Whether a collection has tables of its own, and whether its vectors must stay where they are: the link of a move between two
-- servers names its tables, and what feeds an index on a Qdrant cluster may be reading them.
SELECT c.own_vectors, EXISTS (SELECT 1 FROM indexes i WHERE i.collection = %(collection)s)
  OR EXISTS (SELECT 1 FROM pg_publication WHERE pubname LIKE %(links)s)
  OR EXISTS (SELECT 1 FROM pg_subscription WHERE subname LIKE %(links)s
    AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()))
FROM collections c WHERE c.collection = %(collection)s

-- name: create_own_passage_vectors
-- The table is not visible to any search until it inherits and the row of its collection says that it is used.
CREATE TABLE waylore.{own} (LIKE waylore.passage_vectors INCLUDING STORAGE, PRIMARY KEY (collection, id),
  CHECK (collection = {collection})) WITH (toast_tuple_target = 8160);
CREATE INDEX ON waylore.{own} (collection, document);
CREATE INDEX ON waylore.{own} (collection, access)

-- name: create_own_entity_vectors
CREATE TABLE waylore.{own} (LIKE waylore.entity_vectors INCLUDING STORAGE, PRIMARY KEY (collection, id),
  CHECK (collection = {collection})) WITH (toast_tuple_target = 8160)

-- name: protect_own_vectors
-- Give a collection's own table the row-level security, the rights and the owner of the shared one.
DO $$
DECLARE
  p record;
  shared regclass := 'waylore.{shared}';
BEGIN
  ALTER TABLE waylore.{own} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  FOR p IN SELECT y.*, (SELECT string_agg(CASE r WHEN 'public' THEN r::text ELSE quote_ident(r) END, ', ') FROM unnest(y.roles) r) AS takers
    FROM pg_policies y WHERE y.schemaname = 'waylore' AND y.tablename = '{shared}'
  LOOP
    EXECUTE format('CREATE POLICY %I ON waylore.{own} FOR %s TO %s USING (%s)', p.policyname, p.cmd, p.takers, p.qual)
      || coalesce(' WITH CHECK (' || p.with_check || ')', '');
  END LOOP;
  FOR p IN SELECT r.rolname, string_agg(g.privilege_type, ', ') AS rights
    FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) g JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.oid = shared AND g.grantee <> c.relowner GROUP BY r.rolname
  LOOP
    EXECUTE format('GRANT %s ON waylore.{own} TO %I', p.rights, p.rolname);
  END LOOP;
  EXECUTE format('ALTER TABLE waylore.{own} OWNER TO %I', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = shared));
END
$$

-- name: drop_own_vectors
DROP TABLE IF EXISTS waylore.{own}

-- name: fill_own_vectors
INSERT INTO waylore.{own} SELECT * FROM ONLY waylore.{shared} WHERE collection = {collection} ON CONFLICT (collection, id) DO NOTHING

-- name: analyze_vectors
ANALYZE waylore.{own}

-- name: inherit_vectors
ALTER TABLE waylore.{own} INHERIT waylore.{shared}

-- name: drop_changed_vectors
-- Rows that were changed or deleted since the table was filled.
DELETE FROM waylore.{own} o WHERE NOT EXISTS (
  SELECT 1 FROM ONLY waylore.{shared} s WHERE s.collection = {collection} AND s.id = o.id AND ROW(s.*) = ROW(o.*))

-- name: empty_shared_vectors
DELETE FROM ONLY waylore.{shared} WHERE collection = {collection}

-- name: use_own_vectors
-- Readers look for the new tables when they see the new version.
UPDATE collections SET own_vectors = true, version = version + 1 WHERE collection = %(collection)s

-- -------------------------------------------------------------------------------------------------- words

-- name: insert_passage_terms
-- Words are passed as one string, separated by spaces.
INSERT INTO passage_terms (collection, number, id, length, terms, words, sequence, tells_time)
SELECT %s, u.number, u.id, u.length, u.terms, array_to_tsvector(string_to_array(u.words, ' ')), u.sequence, u.tells_time
FROM unnest(%b::int8[], %b::uuid[], %b::int4[], %b::bytea[], %b::text[], %b::bytea[], %b::bool[])
  u(number, id, length, terms, words, sequence, tells_time)

-- name: match
-- Candidates with their terms for BM25, newest first, so that the limit cuts off the oldest. They come from the rarest terms,
-- up to a number of postings that grows if few passages have the tags. Equally rare terms are taken in the given order. For a
-- caller with labels only passages that it may see are counted.
WITH seen AS (
  SELECT CASE WHEN %(keys)s = 0 AND %(since)s::int8 IS NULL AND %(until)s::int8 IS NULL THEN %(seen)s::int8
  WHEN %(keys)s = 0 THEN (SELECT count(*) FROM (
    SELECT 1 FROM passages p
    WHERE p.collection = %(collection)s AND p.access = ANY(%(accesses)s::int4[])
      AND p.at >= coalesce(%(since)s, -9223372036854775808) AND p.at < coalesce(%(until)s, 9223372036854775807)
    LIMIT %(limit)s) said)
  ELSE (SELECT count(*) FROM (
    SELECT 1 FROM passages p
    WHERE p.collection = %(collection)s AND p.access = ANY(%(accesses)s::int4[])
      AND p.document IN (SELECT t.document FROM document_tags t
        WHERE t.collection = %(collection)s AND t.tag = ANY(%(first_tags)s::uuid[]))
      AND (%(keys)s = 1 OR %(keys)s = @count_tags(p.document))
    LIMIT %(limit)s) visible) END AS passages),
reach AS (
  SELECT CASE WHEN seen.passages >= %(limit)s THEN %(limit)s::float8
    ELSE %(limit)s::float8 * %(passages)s::float8 / greatest(seen.passages, 1) END AS postings FROM seen),
known AS (
  SELECT t.number, row_number() OVER rarest AS place, sum(t.passages) OVER rarest AS postings
  FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY q(term, place)
  CROSS JOIN LATERAL (SELECT u.number, CASE WHEN %(is_limited)s THEN (SELECT sum(c.passages) FROM term_counts c
      WHERE c.collection = %(collection)s AND c.term = u.number AND c.access = ANY(%(accesses)s::int4[])) ELSE u.passages END AS passages
    FROM terms u WHERE u.collection = %(collection)s AND u.term = q.term LIMIT 1) t
  WHERE t.passages > 0 WINDOW rarest AS (ORDER BY t.passages, q.place ROWS UNBOUNDED PRECEDING)),
question AS (
  SELECT '(' || string_agg(quote_literal(%(mark)s::text || 't' || known.number || e.ending), ' | ') || ')' || %(visible)s::text AS words
  FROM known, reach, unnest(%(endings)s::text[]) e(ending) WHERE known.place = 1 OR known.postings <= reach.postings)
SELECT m.id, m.length, m.terms FROM question
CROSS JOIN LATERAL matching(question.words::tsquery, CASE WHEN %(has_turns)s THEN 9223372036854775807
  WHEN %(expired_by)s::int8 IS NULL THEN %(limit)s ELSE %(limit)s + (SELECT count(*) FROM documents d
    JOIN passages p ON p.collection = %(collection)s AND p.document = d.id
    WHERE d.collection = %(collection)s AND d.access = ANY(%(accesses)s::int4[]) AND d.expires_at <= %(expired_by)s) END) m
WHERE @is_selected(m.id) ORDER BY m.number DESC LIMIT %(limit)s

-- name: match_ranked
-- Candidates by pg_textsearch's BM25, best first in approximate order. The score is not selected, because it would be computed
-- from the text of each row. Words have the low 26 bits of a term's number, the part that its cell has (store/bm25.py).
SELECT p.id, p.length, p.terms FROM passage_terms p
WHERE p.collection = %(collection)s AND (%(visible)s::text = '' OR p.words @@ %(visible)s::tsquery)
ORDER BY p.ranked <@> to_bm25query((
  SELECT coalesce(string_agg(ranked_word(t.collection, t.number & 67108863), ' '), '') FROM terms t
  WHERE t.collection = %(collection)s AND t.term = ANY(%(ids)s::uuid[])), 'waylore.passage_terms_ranked') LIMIT %(limit)s

-- name: delete_passage_terms
DELETE FROM passage_terms WHERE collection = %(collection)s AND number = ANY(%(numbers)s::int8[])
RETURNING number, length, terms

-- name: add_term
INSERT INTO terms (collection, term, number, passages) SELECT %s, * FROM unnest(%b::uuid[], %b::int4[], %b::int8[])
ON CONFLICT (collection, term) DO UPDATE SET passages = terms.passages + excluded.passages

-- name: terms
SELECT term, number, passages FROM terms WHERE collection = %(collection)s AND term = ANY(%(ids)s::uuid[])

-- name: visible_terms
-- The terms of passages that the caller may see, counted in these alone.
SELECT t.term, t.number, t.passages FROM unnest(%(ids)s::uuid[]) q(term) CROSS JOIN LATERAL (
  SELECT u.term, u.number, (SELECT sum(c.passages) FROM term_counts c
    WHERE c.collection = %(collection)s AND c.term = u.number AND c.access = ANY(%(accesses)s::int4[])) AS passages
  FROM terms u WHERE u.collection = %(collection)s AND u.term = q.term LIMIT 1) t
WHERE t.passages > 0

-- name: add_term_count
INSERT INTO term_counts (collection, term, access, passages) SELECT %s, * FROM unnest(%b::int4[], %b::int4[], %b::int4[])
ON CONFLICT (collection, term, access) DO UPDATE SET passages = term_counts.passages + excluded.passages

-- name: delete_unused_term_count
DELETE FROM term_counts
WHERE collection = %(collection)s AND term = ANY(%(terms)s::int4[]) AND access = %(access)s AND passages <= 0

-- name: leave_term
INSERT INTO terms (collection, number, passages, term)
SELECT %s, u.*, '00000000-0000-0000-0000-000000000000' FROM unnest(%b::int4[], %b::int8[]) u
ON CONFLICT (collection, number) DO UPDATE SET passages = terms.passages + excluded.passages

-- name: delete_unused_terms
DELETE FROM terms WHERE collection = %(collection)s AND number = ANY(%(numbers)s::int4[]) AND passages <= 0

-- ----------------------------------------------------------------------------------------------- entities

-- name: entity_rows
SELECT id, passages FROM entities WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: insert_entity
INSERT INTO entities (collection, id, sense) SELECT %s, * FROM unnest(%b::uuid[], %b::text[])

-- name: insert_entity_vector
-- Bits are passed as texts of digits.
INSERT INTO entity_vectors (collection, id, bits, code, dimension)
SELECT %s, u.id, u.bits::varbit, u.code, u.dimension
FROM unnest(%b::uuid[], %b::text[], %b::bytea[], %b::int4[]) u(id, bits, code, dimension)
ON CONFLICT (collection, id) DO UPDATE SET bits = excluded.bits, code = excluded.code, dimension = excluded.dimension

-- name: entity_vectors
SELECT id, code FROM entity_vectors WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: delete_entity_vectors
DELETE FROM entity_vectors WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- name: nearest_entities
-- A scalar subquery is run for one entity at a time. The planner would turn EXISTS into a join with all rows.
SELECT v.id, v.code FROM entity_vectors v
WHERE v.collection = %(collection)s AND v.dimension = {dimension} AND (%(everything)s OR (
  SELECT true FROM profiles p WHERE p.collection = %(collection)s AND p.entity = v.id AND p.access = ANY(%(accesses)s::int4[])
    AND @is_kept(p.document) LIMIT 1))
ORDER BY v.bits::bit({dimension}) <~> %(bits)s::bit({dimension}) LIMIT %(cap)s

-- name: nearest_entities_exactly
-- All entities by the number of different bits. Permissions are checked from the nearest on. Only a caller without a filter
-- needs no more than are returned; then they are not all sorted.
SELECT v.id, v.code FROM (
  SELECT n.id FROM (
    SELECT w.id, w.bits <~> %(bits)s::varbit AS distance FROM entity_vectors w WHERE w.collection = %(collection)s
    ORDER BY distance LIMIT CASE WHEN %(everything)s THEN %(most)s END) n
  WHERE %(everything)s OR (
    SELECT true FROM profiles p WHERE p.collection = %(collection)s AND p.entity = n.id AND p.access = ANY(%(accesses)s::int4[])
      AND @is_kept(p.document) LIMIT 1)
  ORDER BY n.distance FETCH FIRST (%(cap)s) ROWS WITH TIES) k
CROSS JOIN LATERAL (SELECT x.* FROM entity_vectors x WHERE x.collection = %(collection)s AND x.id = k.id LIMIT 1) v
LIMIT %(most)s

-- name: insert_profile
INSERT INTO profiles (collection, entity, access, document, name, type, description, aliases)
SELECT %s, * FROM unnest(%b::uuid[], %b::int4[], %b::uuid[], %b::text[], %b::text[], %b::text[], %b::text[])

-- name: profiles
-- A limited number of descriptions for each permission, so that a name in a million documents stays cheap.
-- A caller with labels gets the number of passages that it may see.
SELECT e.id, e.id, e.sense, e.passages, p.name, p.type, p.description, p.aliases
FROM (SELECT f.id, f.sense, @count_passages(f) AS passages
  FROM entities f WHERE f.collection = %(collection)s AND f.id = ANY(%(ids)s::uuid[]) OFFSET 0) e
CROSS JOIN unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL @first_profiles(e.id, %(cap)s) p
ORDER BY e.id, p.document

-- name: listed_entities
-- By id, starting after one: those that a visible document describes, with a type if one is given.
SELECT e.id FROM entities e WHERE e.collection = %(collection)s AND e.id > %(after)s::uuid AND EXISTS (
  SELECT 1 FROM unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL (
    SELECT 1 FROM profiles p WHERE p.collection = %(collection)s AND p.entity = e.id AND p.access = a.access
      AND (%(type)s::text = '' OR lower(p.type COLLATE "C") = %(type)s::text) AND @is_kept(p.document) LIMIT 1) x)
ORDER BY e.id LIMIT %(limit)s

-- name: export_profiles
SELECT p.document, e.id, e.sense, 0, p.name, p.type, p.description, p.aliases, v.code
FROM profiles p
CROSS JOIN LATERAL (SELECT f.* FROM entities f WHERE f.collection = %(collection)s AND f.id = p.entity LIMIT 1) e
LEFT JOIN LATERAL (SELECT w.* FROM entity_vectors w WHERE w.collection = %(collection)s AND w.id = e.id LIMIT 1) v ON true
WHERE p.collection = %(collection)s AND p.document = ANY(%(ids)s::uuid[]) ORDER BY p.document, e.id

-- name: delete_profiles
DELETE FROM profiles WHERE collection = %(collection)s AND document = ANY(%(ids)s::uuid[])
RETURNING entity, access, name, aliases

-- name: delete_unsupported_entities
DELETE FROM entities e WHERE e.collection = %(collection)s AND e.id = ANY(%(ids)s::uuid[]) AND (
  SELECT 1 FROM profiles p WHERE p.collection = %(collection)s AND p.entity = e.id LIMIT 1) IS NULL
RETURNING e.id

-- name: add_name
INSERT INTO names (collection, name, entity, access, documents)
SELECT %s, * FROM unnest(%b::uuid[], %b::uuid[], %b::int4[], %b::int8[])
ON CONFLICT (collection, name, entity, access) DO UPDATE SET documents = names.documents + excluded.documents

-- name: delete_unused_name
DELETE FROM names WHERE collection = %(collection)s AND name = ANY(%(ids)s::uuid[]) AND documents <= 0

-- name: profiles_by_names
-- A limited number of entities with the same name, because thousands may share one. The name is in the first column.
SELECT w.name, e.id, e.id, e.sense, e.passages, p.name, p.type, p.description, p.aliases
FROM unnest(%(ids)s::uuid[]) w(name) CROSS JOIN LATERAL (
  SELECT DISTINCT m.entity FROM names m
  WHERE m.collection = %(collection)s AND m.name = w.name AND m.access = ANY(%(accesses)s::int4[])
  ORDER BY m.entity LIMIT %(namesakes)s) n
CROSS JOIN LATERAL (SELECT f.id, f.sense, @count_passages(f) AS passages
  FROM entities f WHERE f.collection = %(collection)s AND f.id = n.entity LIMIT 1) e
CROSS JOIN unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL @first_profiles(e.id, %(cap)s) p
ORDER BY w.name, e.id, p.document

-- name: add_key
INSERT INTO entity_keys (collection, key, access, entity, documents)
SELECT %s, * FROM unnest(%b::uuid[], %b::int4[], %b::uuid[], %b::int8[])
ON CONFLICT (collection, key, access, entity) DO UPDATE SET documents = entity_keys.documents + excluded.documents

-- name: delete_unused_key
DELETE FROM entity_keys WHERE collection = %(collection)s AND key = ANY(%(ids)s::uuid[]) AND documents <= 0

-- name: entities_by_keys
-- A limited number of entities for each key and permission. A key that more entities share is not significant.
@find_by_keys()

-- name: profiles_by_keys
-- The requesting entities, and those with a key that few enough share, each with its vector and its keys.
WITH sharing AS (
  @find_by_keys()),
rare AS (
  SELECT u.entity, array_agg(u.key) FILTER (WHERE u.key IS NOT NULL) AS keys FROM (
    SELECT h.entity, h.key FROM (SELECT entity, key, count(*) OVER (PARTITION BY key) AS entities FROM sharing) h
    WHERE h.entities < %(cap)s
    UNION ALL SELECT unnest(%(asking)s::uuid[]), NULL) u
  GROUP BY u.entity)
SELECT e.id, e.id, e.sense, e.passages, p.name, p.type, p.description, p.aliases,
  (SELECT v.code FROM entity_vectors v WHERE v.collection = %(collection)s AND v.id = e.id), rare.keys
FROM rare
CROSS JOIN LATERAL (SELECT f.id, f.sense, @count_passages(f) AS passages
  FROM entities f WHERE f.collection = %(collection)s AND f.id = rare.entity LIMIT 1) e
CROSS JOIN unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL @first_profiles(e.id, %(voices)s) p
ORDER BY e.id, p.document

-- ----------------------------------------------------------------------------------------------- mentions

-- name: insert_mention
INSERT INTO mentions (collection, entity, access, rank, passage)
SELECT %s, u.entity, u.access, rank_mention(u.is_own > 0, u.count), u.passage
FROM unnest(%b::uuid[], %b::int4[], %b::int4[], %b::int4[], %b::uuid[]) u(entity, access, is_own, count, passage)

-- name: delete_mention
SELECT delete_mention(%s, u.entity, u.access, u.is_own > 0, u.count, u.passage)
FROM unnest(%b::uuid[], %b::int4[], %b::int4[], %b::int4[], %b::uuid[]) u(entity, access, is_own, count, passage)

-- name: add_entity_passages
-- All rows exist, so each is a conflict and is found by its key. For an UPDATE the planner might choose another join.
INSERT INTO entities (collection, id, passages, sense) SELECT %s, u.*, '' FROM unnest(%b::uuid[], %b::int8[]) u
ON CONFLICT (collection, id) DO UPDATE SET passages = entities.passages + excluded.passages

-- name: add_entity_count
INSERT INTO entity_counts (collection, entity, access, passages) SELECT %s, * FROM unnest(%b::uuid[], %b::int4[], %b::int4[])
ON CONFLICT (collection, entity, access) DO UPDATE SET passages = entity_counts.passages + excluded.passages

-- name: delete_unused_entity_count
DELETE FROM entity_counts
WHERE collection = %(collection)s AND entity = ANY(%(ids)s::uuid[]) AND access = %(access)s AND passages <= 0

-- name: mentions_of_entities
SELECT i.id, m.passage, m.count, m.is_own
FROM unnest(%(ids)s::uuid[]) i(id) CROSS JOIN unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL (
  @best_mentions(i.id, %(cap)s)) m

-- name: pairs_of_entities
-- The rows of mentions_of_entities, each passage once with its text, time, pack and vectors of statements.
WITH told AS (
  SELECT i.id, m.*, row_number() OVER (PARTITION BY m.passage) AS place
  FROM unnest(%(ids)s::uuid[]) i(id) CROSS JOIN unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL (
    @best_mentions(i.id, %(cap)s)) m)
SELECT told.id, told.passage, told.count, told.is_own, told.passage, p.text, d.recorded_at, p.at, k.pack, v.codes
FROM told
LEFT JOIN LATERAL (SELECT q.text, q.document, q.at FROM passages q
  WHERE q.collection = %(collection)s AND q.id = told.passage AND told.place = 1 LIMIT 1) p ON true
LEFT JOIN LATERAL (SELECT e.recorded_at FROM documents e WHERE e.collection = %(collection)s AND e.id = p.document LIMIT 1) d ON true
LEFT JOIN LATERAL (SELECT l.pack FROM packs l
  WHERE l.collection = %(collection)s AND l.passage = told.passage AND told.place = 1 LIMIT 1) k ON true
LEFT JOIN LATERAL (SELECT w.codes FROM statement_vectors w
  WHERE w.collection = %(collection)s AND w.passage = told.passage AND told.place = 1 LIMIT 1) v ON true

-- name: nearby
-- The rows of mentions_of_entities, also for entities with a key that few enough share. A passage has its vector once.
WITH sharing AS (
  @find_by_keys()),
wanted AS (
  SELECT unnest(%(entities)s::uuid[]) AS id
  UNION SELECT h.entity FROM (SELECT entity, count(*) OVER (PARTITION BY key) AS entities FROM sharing) h
  WHERE h.entities < %(cap)s),
told AS (
  SELECT wanted.id, m.*, row_number() OVER (PARTITION BY m.passage) AS place
  FROM wanted CROSS JOIN unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL (
    @best_mentions(wanted.id, %(per_entity)s)) m)
SELECT told.id, told.passage, told.count, told.is_own, CASE WHEN told.place = 1 THEN (
  SELECT v.vector FROM passage_vectors v WHERE v.collection = %(collection)s AND v.id = told.passage) END
FROM told

-- -------------------------------------------------------------------------------------------------- packs

-- name: insert_pack
-- The ids of facts are passed as the text of an array.
INSERT INTO packs (collection, passage, facts, pack)
SELECT %s, u.passage, u.facts::uuid[], u.pack FROM unnest(%b::uuid[], %b::text[], %b::bytea[]) u(passage, facts, pack)

-- name: insert_statement_vectors
INSERT INTO statement_vectors (collection, passage, codes) SELECT %s, * FROM unnest(%b::uuid[], %b::bytea[])

-- name: packs_of_passages
-- Mentions need neither text nor time.
SELECT p.id, '', 0::int8, NULL::int8, k.pack, NULL::bytea FROM passages p
CROSS JOIN LATERAL (SELECT l.pack FROM packs l WHERE l.collection = %(collection)s AND l.passage = p.id LIMIT 1) k
WHERE p.collection = %(collection)s AND p.id = ANY(%(ids)s::uuid[]) AND p.access = ANY(%(accesses)s::int4[])
  AND @is_kept(p.document) AND @is_said(p)

-- name: export_packs
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, v.codes FROM passages p
CROSS JOIN LATERAL (SELECT e.recorded_at FROM documents e WHERE e.collection = %(collection)s AND e.id = p.document LIMIT 1) d
CROSS JOIN LATERAL (SELECT l.pack FROM packs l WHERE l.collection = %(collection)s AND l.passage = p.id LIMIT 1) k
LEFT JOIN LATERAL (SELECT w.codes FROM statement_vectors w WHERE w.collection = %(collection)s AND w.passage = p.id LIMIT 1) v ON true
WHERE p.collection = %(collection)s AND p.document = ANY(%(ids)s::uuid[]) ORDER BY p.document, p.position, p.id

-- name: set_pack
-- All rows exist, so each is a conflict and is found by its key.
INSERT INTO packs (collection, passage, pack, facts) SELECT %s, u.*, '{}' FROM unnest(%b::uuid[], %b::bytea[]) u
ON CONFLICT (collection, passage) DO UPDATE SET pack = excluded.pack

-- name: set_statement_vectors
INSERT INTO statement_vectors (collection, passage, codes) SELECT %s, * FROM unnest(%b::uuid[], %b::bytea[])
ON CONFLICT (collection, passage) DO UPDATE SET codes = excluded.codes

-- name: delete_packs
DELETE FROM packs WHERE collection = %(collection)s AND passage = ANY(%(ids)s::uuid[]) RETURNING passage, pack

-- name: delete_statement_vectors
DELETE FROM statement_vectors WHERE collection = %(collection)s AND passage = ANY(%(ids)s::uuid[])

-- -------------------------------------------------------------------------------------------------- facts

-- name: fact_rows
SELECT f.id, true FROM unnest(%(ids)s::uuid[]) f(id)
WHERE (SELECT true FROM assertions z WHERE z.collection = %(collection)s AND z.fact = f.id LIMIT 1)

-- name: insert_assertion
INSERT INTO assertions (collection, fact, source, rank, passage, place, access, status, valid_from, valid_to, series, began)
SELECT %s, u.fact, u.source, -u.strength, u.passage, u.place, u.access, u.status, u.valid_from, u.valid_to, u.series, u.began
FROM unnest(%b::uuid[], %b::int2[], %b::float8[], %b::uuid[], %b::int4[], %b::int4[], %b::int2[], %b::int8[], %b::int8[],
    %b::int8[], %b::int8[])
  u(fact, source, strength, passage, place, access, status, valid_from, valid_to, series, began)

-- name: set_series
UPDATE assertions s SET series = u.series, began = u.began FROM (SELECT %s::int8 AS collection) c,
  unnest(%b::uuid[], %b::int2[], %b::float8[], %b::uuid[], %b::int8[], %b::int8[]) u(fact, source, strength, passage, series, began)
WHERE s.collection = c.collection AND s.fact = u.fact AND s.source = u.source AND s.rank = -u.strength AND s.passage = u.passage

-- name: delete_assertion
SELECT delete_assertion(%s, u.fact, u.source, -u.strength, u.passage)
FROM unnest(%b::uuid[], %b::int2[], %b::float8[], %b::uuid[]) u(fact, source, strength, passage)

-- name: strengths
-- Of facts, for each permission: that of the strongest assertion.
SELECT fact, access, -min(rank) FROM assertions WHERE collection = %(collection)s AND fact = ANY(%(ids)s::uuid[])
GROUP BY fact, access

-- name: insert_edge
-- A fact whose subject is its object has one edge.
INSERT INTO edges (collection, entity, access, rank, fact, predicate)
SELECT %s, u.entity, u.access, -u.strength, u.fact, u.predicate
FROM unnest(%b::uuid[], %b::int4[], %b::float8[], %b::uuid[], %b::int8[]) u(entity, access, strength, fact, predicate)
ON CONFLICT DO NOTHING

-- name: delete_edge
SELECT delete_edge(%s, u.entity, u.access, -u.strength, u.fact)
FROM unnest(%b::uuid[], %b::int4[], %b::float8[], %b::uuid[]) u(entity, access, strength, fact)

-- name: facts_of_entities
-- The packs of facts, by their most trusted visible assertion, if it has one of the statuses. Each pack comes once, with the
-- entities, the places of their facts in it, and the uses of these, as bytes.
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, v.codes, s.places, s.uses, s.entities
FROM (
  SELECT b.passage, string_agg(uuid_send(i.id), '') AS entities, string_agg(int4send(b.place), '') AS places,
    string_agg(int8send(coalesce(u.access_count, 0)) || int8send(coalesce(u.last_accessed, 0)), '') AS uses
  FROM unnest(%(ids)s::uuid[]) i(id) CROSS JOIN unnest(%(accesses)s::int4[]) a(access)
  CROSS JOIN LATERAL (
    SELECT x.fact, c.passage, c.place FROM edges x CROSS JOIN LATERAL (
      SELECT z.passage, z.place, z.status @most_trusted(x.fact)) c
    WHERE x.collection = %(collection)s AND x.entity = i.id AND x.access = a.access AND c.status = ANY(%(statuses)s::int2[])
    ORDER BY x.rank, x.fact LIMIT %(cap)s) b
  @join_uses(b.fact)
  GROUP BY b.passage) s
@join_packs(s.passage)

-- name: facts_of_entities_by_predicate
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, v.codes, s.places, s.uses, s.entities
FROM (
  SELECT b.passage, string_agg(uuid_send(i.id), '') AS entities, string_agg(int4send(b.place), '') AS places,
    string_agg(int8send(coalesce(u.access_count, 0)) || int8send(coalesce(u.last_accessed, 0)), '') AS uses
  FROM unnest(%(ids)s::uuid[]) i(id) CROSS JOIN unnest(%(predicates)s::int8[]) q(predicate)
  CROSS JOIN unnest(%(accesses)s::int4[]) a(access)
  CROSS JOIN LATERAL (
    SELECT x.fact, c.passage, c.place FROM edges x CROSS JOIN LATERAL (
      SELECT z.passage, z.place, z.status @most_trusted(x.fact)) c
    WHERE x.collection = %(collection)s AND x.entity = i.id AND x.predicate = q.predicate AND x.access = a.access AND c.status = ANY(%(statuses)s::int2[])
    ORDER BY x.rank, x.fact LIMIT %(cap)s) b
  @join_uses(b.fact)
  GROUP BY b.passage) s
@join_packs(s.passage)

-- name: assertions_of_series
-- The packs of the newest assertions that began by a time, unless the most trusted visible one retracts the fact.
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, v.codes, s.places, s.uses
FROM (
  SELECT b.passage, string_agg(int4send(b.place), '') AS places,
    string_agg(int8send(coalesce(u.access_count, 0)) || int8send(coalesce(u.last_accessed, 0)), '') AS uses
  FROM unnest(%(series)s::int8[]) h(series) CROSS JOIN unnest(%(accesses)s::int4[]) a(access)
  CROSS JOIN LATERAL (
    SELECT n.fact, n.passage, n.place FROM assertions n
    WHERE n.collection = %(collection)s AND n.series = h.series AND n.access = a.access AND n.began <= %(latest)s
      AND n.status = ANY(%(statuses)s::int2[]) AND @is_wanted(n.passage)
      AND (NOT %(may_be_retracted)s OR (SELECT z.status @most_trusted(n.fact)) = ANY(%(statuses)s::int2[]))
    ORDER BY n.began DESC, n.passage, n.fact LIMIT %(cap)s) b
  @join_uses(b.fact)
  GROUP BY b.passage) s
@join_packs(s.passage)

-- name: facts
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, v.codes, s.places, s.uses
FROM (
  SELECT b.passage, string_agg(int4send(b.place), '') AS places,
    string_agg(int8send(coalesce(u.access_count, 0)) || int8send(coalesce(u.last_accessed, 0)), '') AS uses
  FROM unnest(%(ids)s::uuid[]) i(id) CROSS JOIN LATERAL (
    SELECT z.passage, z.place, z.status @most_trusted(i.id)) b
  @join_uses(i.id)
  WHERE b.status = ANY(%(statuses)s::int2[]) GROUP BY b.passage) s
@join_packs(s.passage)

-- name: facts_of_passages
-- The packs of passages, with the places and uses of facts that no more trusted visible assertion retracts. A pair has no
-- assertion and counts as confirmed.
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, v.codes, s.places, s.uses
FROM passages p
CROSS JOIN LATERAL (SELECT e.recorded_at FROM documents e WHERE e.collection = %(collection)s AND e.id = p.document LIMIT 1) d
CROSS JOIN LATERAL (SELECT l.facts, l.pack FROM packs l WHERE l.collection = %(collection)s AND l.passage = p.id LIMIT 1) k
LEFT JOIN LATERAL (SELECT w.codes FROM statement_vectors w WHERE w.collection = %(collection)s AND w.passage = p.id LIMIT 1) v ON true
CROSS JOIN LATERAL (
  SELECT string_agg(int4send((f.number - 1)::int4), '') AS places,
    string_agg(int8send(coalesce(u.access_count, 0)) || int8send(coalesce(u.last_accessed, 0)), '') AS uses
  FROM unnest(k.facts) WITH ORDINALITY f(id, number)
  @join_uses(f.id)
  WHERE NOT %(may_be_retracted)s OR coalesce((
    SELECT z.status @most_trusted(f.id)), 1) = ANY(%(statuses)s::int2[])) s
WHERE p.collection = %(collection)s AND p.id = ANY(%(ids)s::uuid[]) AND p.access = ANY(%(accesses)s::int4[])
  AND @is_kept(p.document) AND @is_said(p)

-- name: has_unconfirmed
SELECT EXISTS (SELECT 1 FROM assertions WHERE collection = %(collection)s AND status <> 1)

-- -------------------------------------------------------------------------------------------------- usage

-- name: touch
-- In a fixed order, so that two transactions that count the same items cannot deadlock.
INSERT INTO usage (collection, id, access_count, last_accessed)
SELECT %s, * FROM unnest(%b::uuid[], %b::int8[], %b::int8[]) u(id) ORDER BY u.id
ON CONFLICT (collection, id) DO UPDATE SET access_count = usage.access_count + excluded.access_count,
  last_accessed = greatest(usage.last_accessed, excluded.last_accessed)

-- name: most_used
-- The passages that the caller may see and that were used most.
SELECT p.id, u.access_count FROM usage u
CROSS JOIN LATERAL (SELECT q.* FROM passages q WHERE q.collection = %(collection)s AND q.id = u.id LIMIT 1) p
WHERE u.collection = %(collection)s AND @is_shown(p)
ORDER BY u.access_count DESC, p.id LIMIT %(limit)s

-- name: growth
-- Documents that the caller may see, or all, and their passages, by the day (in microseconds) on which they were recorded.
-- A remainder is negative before 1970.
SELECT g.written, count(*), sum(g.passages)::int8 FROM (
  SELECT (d.recorded_at - mod(mod(d.recorded_at, 86400000000) + 86400000000, 86400000000)) / 86400000000 AS written,
    (SELECT count(*) FROM passages p WHERE p.collection = %(collection)s AND p.document = d.id) AS passages
  FROM documents d
  WHERE d.collection = %(collection)s
    AND (%(everyone)s OR (d.access = ANY(%(accesses)s::int4[]) AND @is_kept(d.id) AND @is_dated(d)))) g
GROUP BY g.written ORDER BY g.written

-- name: delete_usage
DELETE FROM usage WHERE collection = %(collection)s AND id = ANY(%(ids)s::uuid[])

-- ------------------------------------------------------------------------- changing the embedding model

-- name: last_staged
SELECT id FROM staged WHERE collection = %(collection)s AND kind = %(kind)s AND model = %(model)s ORDER BY id DESC LIMIT 1

-- name: unembedded_passage
SELECT p.id, p.id, p.document, p.text, p.title, p.position, p.start, p."end", p.headings, NULL::bytea, p.speaker, p.role, p.at
FROM passages p WHERE p.collection = %(collection)s AND p.id >= %(after)s::uuid AND (p.text > '' OR p.title > '') AND (
  SELECT 1 FROM staged s WHERE s.collection = %(collection)s AND s.model = %(model)s AND s.kind = 'passage' AND s.id = p.id LIMIT 1) IS NULL
ORDER BY p.id LIMIT %(limit)s

-- name: unembedded_entity
SELECT e.id, e.id, e.sense, e.passages, p.name, p.type, p.description, p.aliases
FROM entities e CROSS JOIN LATERAL (
  SELECT q.* FROM profiles q WHERE q.collection = %(collection)s AND q.entity = e.id ORDER BY q.access, q.document LIMIT 1) p
WHERE e.collection = %(collection)s AND e.id >= %(after)s::uuid AND (
  SELECT 1 FROM staged s WHERE s.collection = %(collection)s AND s.model = %(model)s AND s.kind = 'entity' AND s.id = e.id LIMIT 1) IS NULL
ORDER BY e.id LIMIT %(limit)s

-- name: unembedded_fact
-- The packs of passages of which not every fact has a staged vector, with the places of those that have one.
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, NULL::bytea, s.places
FROM packs k
CROSS JOIN LATERAL (SELECT array_agg(t.place) AS places, count(*) AS facts FROM staged t
  WHERE t.collection = %(collection)s AND t.kind = 'fact' AND t.id = k.passage AND t.model = %(model)s) s
CROSS JOIN LATERAL (SELECT q.* FROM passages q WHERE q.collection = %(collection)s AND q.id = k.passage LIMIT 1) p
CROSS JOIN LATERAL (SELECT e.recorded_at FROM documents e WHERE e.collection = %(collection)s AND e.id = p.document LIMIT 1) d
WHERE k.collection = %(collection)s AND k.passage >= %(after)s::uuid AND cardinality(k.facts) > s.facts
ORDER BY k.passage LIMIT %(limit)s

-- name: stage
-- Items that were forgotten meanwhile are left out. A fact is given by its passage and its id.
INSERT INTO staged (collection, model, kind, id, place, code)
SELECT c.collection, c.model, u.kind, u.id, o.place, u.code
FROM (SELECT %s::int8 AS collection, %s::text AS model) c,
  unnest(%b::text[], %b::uuid[], %b::uuid[], %b::bytea[]) u(kind, id, fact, code)
CROSS JOIN LATERAL (SELECT CASE u.kind
  WHEN 'passage' THEN (SELECT 0 FROM passages p WHERE p.collection = c.collection AND p.id = u.id LIMIT 1)
  WHEN 'entity' THEN (SELECT 0 FROM entities e WHERE e.collection = c.collection AND e.id = u.id LIMIT 1)
  ELSE (SELECT array_position(k.facts, u.fact) - 1 FROM packs k WHERE k.collection = c.collection AND k.passage = u.id LIMIT 1)
  END AS place) o
WHERE o.place IS NOT NULL
ON CONFLICT (collection, kind, id, place, model) DO UPDATE SET code = excluded.code

-- name: unstage
DELETE FROM staged WHERE collection = %(collection)s AND kind = %(kind)s AND id = ANY(%(ids)s::uuid[])

-- name: staged_dimension
SELECT length(code) FROM staged WHERE collection = %(collection)s AND model = %(model)s LIMIT 1

-- name: staged_vectors
-- The staged vectors of passages or entities after an id, with document and permission of a passage.
SELECT s.id, p.document, p.access, s.code FROM staged s
LEFT JOIN LATERAL (SELECT q.document, q.access FROM passages q WHERE q.collection = %(collection)s AND q.id = s.id LIMIT 1) p ON true
WHERE s.collection = %(collection)s AND s.model = %(model)s AND s.kind = %(kind)s AND s.id > %(after)s::uuid
ORDER BY s.id LIMIT %(limit)s

-- name: staged_facts
-- The packs after a passage, and the staged vectors of their facts in order. All facts have one when a model is activated.
SELECT k.passage, k.pack, s.codes FROM packs k
CROSS JOIN LATERAL (SELECT string_agg(t.code, '' ORDER BY t.place) AS codes FROM staged t
  WHERE t.collection = %(collection)s AND t.kind = 'fact' AND t.id = k.passage AND t.model = %(model)s) s
WHERE k.collection = %(collection)s AND k.passage > %(after)s::uuid AND cardinality(k.facts) > 0
ORDER BY k.passage LIMIT %(limit)s

-- name: drop_staged
DELETE FROM staged WHERE collection = %(collection)s

-- ------------------------------------------------------------- an index on a Qdrant cluster, and its outbox

-- fragment: visible_pending
-- The items of a kind that the caller may see and that were not sent to the index yet, at most %(pending)s.
ARRAY(SELECT w.id FROM unnest(%(accesses)s::int4[]) a(access) CROSS JOIN LATERAL (
  SELECT o.id FROM outbox o WHERE o.collection = %(collection)s AND o.kind = $1 AND o.access = a.access LIMIT %(pending)s) w
  LIMIT %(pending)s)

-- name: vectors_of_candidates
-- Of passages that the index has found, and of those that it does not have yet.
SELECT v.id, v.vector FROM passage_vectors v
WHERE v.collection = %(collection)s AND v.id = ANY(%(ids)s::uuid[] || @visible_pending(0)) AND v.access = ANY(%(accesses)s::int4[])
  AND @is_kept(v.document) AND @is_selected(v.id)

-- name: terms_of_candidates
SELECT p.id, t.length, t.terms FROM passages p
CROSS JOIN LATERAL (SELECT u.* FROM passage_terms u WHERE u.collection = %(collection)s AND u.number = p.number LIMIT 1) t
WHERE p.collection = %(collection)s AND p.id = ANY(%(ids)s::uuid[] || @visible_pending(0)) AND p.access = ANY(%(accesses)s::int4[])
  AND @is_kept(p.document) AND @is_said(p)

-- name: codes_of_candidates
SELECT v.id, v.code FROM entity_vectors v
WHERE v.collection = %(collection)s AND v.id = ANY(%(ids)s::uuid[] || @visible_pending(1)) AND (%(everything)s OR (
  SELECT true FROM profiles p WHERE p.collection = %(collection)s AND p.entity = v.id AND p.access = ANY(%(accesses)s::int4[])
    AND @is_kept(p.document) LIMIT 1))

-- name: has_full_outbox
-- Whether the index lacks as many items as a search reads itself, or more.
SELECT cardinality(@visible_pending(%(kind)s)) >= %(pending)s

-- name: queue_changes
-- In a fixed order, so that two transactions cannot deadlock.
INSERT INTO outbox (collection, id, version, access, kind)
SELECT c.collection, u.id, c.version, u.access, u.kind
FROM collections c, unnest(%(kinds)s::int2[], %(ids)s::uuid[], %(accesses)s::int4[]) u(kind, id, access)
WHERE c.collection = %(collection)s ORDER BY u.kind, u.id, u.access
ON CONFLICT (collection, kind, id, access) DO UPDATE SET version = excluded.version

-- name: lock_feed
-- One process at a time sends changes to the index, so that an older state cannot replace a newer one there.
SELECT pg_advisory_xact_lock(2003789430, (%(collection)s::int8 & 2147483647)::int4), current_setting('transaction_read_only')::bool

-- name: lock_feed_soon
SELECT set_config('lock_timeout', '5s', true), pg_advisory_xact_lock(2003789430, (%(collection)s::int8 & 2147483647)::int4),
  current_setting('transaction_read_only')::bool

-- name: next_changes
SELECT kind, id, access, version FROM outbox WHERE collection = %(collection)s ORDER BY version LIMIT %(limit)s

-- name: changes_of_items
SELECT o.kind, o.id, o.access, o.version FROM unnest(%(kinds)s::int2[], %(ids)s::uuid[]) u(kind, id)
JOIN outbox o ON o.collection = %(collection)s AND o.kind = u.kind AND o.id = u.id

-- name: confirm_changes
-- Changes that were made again meanwhile stay, and so do those that another transaction is making.
WITH done AS (
  SELECT o.kind, o.id, o.access FROM unnest(%(kinds)s::int2[], %(ids)s::uuid[], %(accesses)s::int4[], %(versions)s::int8[])
    u(kind, id, access, version)
  JOIN outbox o ON o.collection = %(collection)s AND o.kind = u.kind AND o.id = u.id AND o.access = u.access
    AND o.version = u.version
  FOR UPDATE OF o SKIP LOCKED)
DELETE FROM outbox o USING done
WHERE o.collection = %(collection)s AND o.kind = done.kind AND o.id = done.id AND o.access = done.access

-- name: count_pending
-- How many changes the index does not have, counted up to a number, and the age of the oldest in seconds.
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(o.at)), 0)::float8
FROM (SELECT at FROM outbox WHERE collection = %(collection)s ORDER BY version LIMIT %(limit)s) o

-- name: passages_to_index
SELECT id FROM passages WHERE collection = %(collection)s AND id > %(after)s::uuid ORDER BY id LIMIT %(limit)s

-- name: entities_to_index
SELECT id FROM entities WHERE collection = %(collection)s AND id > %(after)s::uuid ORDER BY id LIMIT %(limit)s

-- name: points_of_passages
-- What the index needs of a passage: no text.
SELECT p.id, p.access, p.at, p.speaker, d.expires_at, v.vector, t.length, t.terms,
  ARRAY(SELECT g.tag FROM document_tags g WHERE g.collection = %(collection)s AND g.document = p.document)
FROM unnest(%(ids)s::uuid[]) i(id)
CROSS JOIN LATERAL (SELECT q.* FROM passages q WHERE q.collection = %(collection)s AND q.id = i.id LIMIT 1) p
CROSS JOIN LATERAL (SELECT e.expires_at FROM documents e WHERE e.collection = %(collection)s AND e.id = p.document LIMIT 1) d
CROSS JOIN LATERAL (SELECT u.length, u.terms FROM passage_terms u WHERE u.collection = %(collection)s AND u.number = p.number LIMIT 1) t
LEFT JOIN LATERAL (SELECT w.vector FROM passage_vectors w WHERE w.collection = %(collection)s AND w.id = p.id LIMIT 1) v ON true

-- name: points_of_entities
-- The permissions of an entity are found one after another, because a name may be in a million documents.
SELECT v.id, v.code, a.accesses FROM unnest(%(ids)s::uuid[]) i(id)
CROSS JOIN LATERAL (SELECT w.id, w.code FROM entity_vectors w WHERE w.collection = %(collection)s AND w.id = i.id LIMIT 1) v
CROSS JOIN LATERAL (
  WITH RECURSIVE seen (access, place) AS (
    SELECT (SELECT min(p.access) FROM profiles p WHERE p.collection = %(collection)s AND p.entity = i.id), 1
    UNION ALL
    SELECT (SELECT min(p.access) FROM profiles p WHERE p.collection = %(collection)s AND p.entity = i.id AND p.access > s.access),
      s.place + 1
    FROM seen s WHERE s.access IS NOT NULL AND s.place < %(most)s)
  SELECT array_agg(seen.access) FILTER (WHERE seen.access IS NOT NULL) AS accesses FROM seen) a

-- name: add_index
-- Readers see it when they see the next version of the collection.
WITH changed AS (UPDATE collections SET version = version + 1 WHERE collection = %(collection)s)
INSERT INTO indexes (collection, tenant, url, shards, replicas, passages_after, entities_after)
VALUES (%(collection)s, gen_random_uuid(), %(url)s, %(shards)s, %(replicas)s, %(lowest)s::uuid, %(lowest)s::uuid)

-- name: build_progress
SELECT passages_after, entities_after FROM indexes WHERE collection = %(collection)s

-- name: set_build_progress
WITH changed AS (UPDATE collections SET version = version + 1
  WHERE collection = %(collection)s AND %(passages_after)s::uuid IS NULL AND %(entities_after)s::uuid IS NULL)
UPDATE indexes SET passages_after = %(passages_after)s::uuid, entities_after = %(entities_after)s::uuid
WHERE collection = %(collection)s

-- name: restart_index
-- With a new tenant, when all vectors have changed; the points of the former one are removed by a row of the outbox.
WITH former AS (
  INSERT INTO outbox (collection, id, version, access, kind)
  SELECT i.collection, i.tenant, 0, 0, 2 FROM indexes i WHERE i.collection = %(collection)s)
UPDATE indexes SET tenant = gen_random_uuid(), passages_after = %(lowest)s::uuid, entities_after = %(lowest)s::uuid
WHERE collection = %(collection)s

-- name: drop_index_rows
WITH changed AS (UPDATE collections SET version = version + 1 WHERE collection = %(collection)s),
  emptied AS (DELETE FROM outbox WHERE collection = %(collection)s)
DELETE FROM indexes WHERE collection = %(collection)s

-- ------------------------------------------------------------------------------ traces of forgotten items

-- name: tables
-- The tables of Waylore, and whether the role owns each. Since PostgreSQL 18 VACUUM includes those that inherit from a table.
SELECT c.relname, pg_has_role(c.relowner, 'USAGE') FROM pg_class c
WHERE c.relnamespace = 'waylore'::regnamespace AND c.relkind = 'r' AND (current_setting('server_version_num')::int4 < 180000
  OR NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid)) ORDER BY c.relname

-- name: vacuum
VACUUM (FULL, ANALYZE) waylore.{table}

-- name: amcheck
-- The schema of the extension amcheck in this database.
SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'

-- name: relations
-- The tables of Waylore, their TOAST tables and the valid indexes of both: id, name, kind, whether amcheck has a function for
-- this kind, and whether the role may call it.
WITH tables AS (
  SELECT c.oid, c.reltoastrelid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = ANY(%(schemas)s) AND c.relkind = 'r'
), heaps AS (SELECT oid FROM tables UNION SELECT reltoastrelid FROM tables WHERE reltoastrelid <> 0)
SELECT c.oid, format('%%I.%%I', n.nspname, c.relname), a.amname, f.oid IS NOT NULL, coalesce(has_function_privilege(f.oid, 'EXECUTE'), false)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_am a ON a.oid = c.relam
LEFT JOIN (VALUES ('heap', 'verify_heapam', 6), ('btree', 'bt_index_check', 2), ('gin', 'gin_index_check', 1)) k (am, name, n)
  ON k.am = a.amname
LEFT JOIN pg_proc f ON f.proname = k.name AND f.pronargs = k.n AND f.pronamespace = %(amcheck)s::regnamespace
WHERE c.oid IN (SELECT oid FROM heaps)
  OR c.oid IN (SELECT i.indexrelid FROM pg_index i WHERE i.indrelid IN (SELECT oid FROM heaps) AND i.indisvalid AND i.indisready)
ORDER BY 2

-- name: check_heap
SELECT format('block %%s: %%s', blkno, msg) FROM {amcheck}.verify_heapam(%(relation)s, on_error_stop => true)

-- name: check_btree
-- The index has every row of its table, in order.
SELECT {amcheck}.bt_index_check(%(relation)s, true)

-- name: check_gin
SELECT {amcheck}.gin_index_check(%(relation)s)

-- name: orphans
-- Rows without an owner, in every table of the collection.
SELECT count(*), 'passages have no document' FROM passages p
WHERE p.collection = %(collection)s AND (
  SELECT 1 FROM documents d WHERE d.collection = %(collection)s AND d.id = p.document LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'files have no document' FROM files f
WHERE f.collection = %(collection)s AND (SELECT 1 FROM documents d
  WHERE d.collection = %(collection)s AND split_part(d.uri, '#', 1) = split_part(f.uri, '#', 1) LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'tags have no document' FROM document_tags t
WHERE t.collection = %(collection)s AND (
  SELECT 1 FROM documents d WHERE d.collection = %(collection)s AND d.id = t.document LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'sets of labels have a wrong number of documents' FROM accesses a
WHERE a.collection = %(collection)s AND a.documents <> (
  SELECT count(*) FROM documents d WHERE d.collection = %(collection)s AND d.access = a.access)
UNION ALL
SELECT count(*), 'sets of labels have a wrong number of passages, terms or facts' FROM accesses a
LEFT JOIN (SELECT p.access, count(*) FILTER (WHERE p.text > '' OR p.title > '') AS passages, sum(t.length) AS length, count(*) FILTER (WHERE p.role > '') AS turns FROM passages p
  CROSS JOIN LATERAL (SELECT u.length FROM passage_terms u WHERE u.collection = %(collection)s AND u.number = p.number LIMIT 1) t
  WHERE p.collection = %(collection)s GROUP BY p.access) p ON p.access = a.access
LEFT JOIN (SELECT p.access, sum(cardinality(k.facts)) AS assertions FROM passages p
  CROSS JOIN LATERAL (SELECT l.facts FROM packs l WHERE l.collection = %(collection)s AND l.passage = p.id LIMIT 1) k
  WHERE p.collection = %(collection)s GROUP BY p.access) s ON s.access = a.access
WHERE a.collection = %(collection)s AND (a.passages, a.length, a.assertions, a.turns) <> (
  coalesce(p.passages, 0), coalesce(p.length, 0), coalesce(s.assertions, 0), coalesce(p.turns, 0))
UNION ALL
SELECT count(*), 'packs have no passage' FROM packs k
WHERE k.collection = %(collection)s AND (
  SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = k.passage LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'vectors have no pack' FROM statement_vectors v
WHERE v.collection = %(collection)s AND (
  SELECT 1 FROM packs k WHERE k.collection = %(collection)s AND k.passage = v.passage LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'passages have no pack' FROM passages p
WHERE p.collection = %(collection)s AND (
  SELECT 1 FROM packs k WHERE k.collection = %(collection)s AND k.passage = p.id LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'vectors have no passage' FROM passage_vectors v
WHERE v.collection = %(collection)s AND (
  SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = v.id LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'vectors have no entity' FROM entity_vectors v
WHERE v.collection = %(collection)s AND (
  SELECT 1 FROM entities e WHERE e.collection = %(collection)s AND e.id = v.id LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'lists of terms have no passage' FROM passage_terms t
WHERE t.collection = %(collection)s AND (
  SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = t.id AND p.number = t.number LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'entities have no document that describes them' FROM entities e
WHERE e.collection = %(collection)s AND (
  SELECT 1 FROM profiles p WHERE p.collection = %(collection)s AND p.entity = e.id LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'entities have a wrong number of mentions' FROM entities e
WHERE e.collection = %(collection)s AND (e.passages <> (
  SELECT count(*) FROM mentions m WHERE m.collection = %(collection)s AND m.entity = e.id) OR e.passages <> (
  SELECT coalesce(sum(c.passages), 0) FROM entity_counts c WHERE c.collection = %(collection)s AND c.entity = e.id))
UNION ALL
SELECT count(*), 'counts of mentions are not those of their labels' FROM entity_counts c
WHERE c.collection = %(collection)s AND (c.passages = 0 OR c.passages <> (SELECT count(*) FROM mentions m
  WHERE m.collection = %(collection)s AND m.entity = c.entity AND m.access = c.access))
UNION ALL
SELECT count(*), 'descriptions have no document' FROM profiles p
WHERE p.collection = %(collection)s AND (
  SELECT 1 FROM documents d WHERE d.collection = %(collection)s AND d.id = p.document LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'descriptions have no entity' FROM profiles p
WHERE p.collection = %(collection)s AND (
  SELECT 1 FROM entities e WHERE e.collection = %(collection)s AND e.id = p.entity LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'mentions have no passage' FROM mentions m
WHERE m.collection = %(collection)s AND (
  SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = m.passage LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'mentions have no entity' FROM mentions m
WHERE m.collection = %(collection)s AND (
  SELECT 1 FROM entities e WHERE e.collection = %(collection)s AND e.id = m.entity LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'assertions have no passage' FROM assertions s
WHERE s.collection = %(collection)s AND (
  SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = s.passage LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'edges have no entity' FROM edges x
WHERE x.collection = %(collection)s AND (
  SELECT 1 FROM entities e WHERE e.collection = %(collection)s AND e.id = x.entity LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'edges have no assertion' FROM edges x
WHERE x.collection = %(collection)s AND (
  SELECT 1 FROM assertions s WHERE s.collection = %(collection)s AND s.fact = x.fact AND s.access = x.access LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'use counts have no passage or fact' FROM usage u
WHERE u.collection = %(collection)s
  AND (SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = u.id LIMIT 1) IS NULL
  AND (SELECT 1 FROM assertions s WHERE s.collection = %(collection)s AND s.fact = u.id LIMIT 1) IS NULL
UNION ALL
SELECT count(*), 'staged vectors have no item' FROM staged s
WHERE s.collection = %(collection)s AND CASE s.kind
  WHEN 'passage' THEN (SELECT 1 FROM passages p WHERE p.collection = %(collection)s AND p.id = s.id LIMIT 1)
  WHEN 'entity' THEN (SELECT 1 FROM entities e WHERE e.collection = %(collection)s AND e.id = s.id LIMIT 1)
  ELSE (SELECT 1 FROM packs k WHERE k.collection = %(collection)s AND k.passage = s.id AND cardinality(k.facts) > s.place LIMIT 1)
  END IS NULL

-- name: all_packs
-- The packs after a passage, in order.
SELECT k.passage, p.access, coalesce(p.at, d.recorded_at, 0), k.facts, k.pack FROM packs k
CROSS JOIN LATERAL (SELECT q.access, q.document, q.at FROM passages q WHERE q.collection = %(collection)s AND q.id = k.passage LIMIT 1) p
LEFT JOIN LATERAL (SELECT e.recorded_at FROM documents e WHERE e.collection = %(collection)s AND e.id = p.document LIMIT 1) d ON true
WHERE k.collection = %(collection)s AND k.passage > %(after)s::uuid ORDER BY k.passage LIMIT %(limit)s

-- name: has_mention
SELECT count(*) FROM (SELECT %s::int8 AS collection) c,
  unnest(%b::uuid[], %b::int4[], %b::int4[], %b::int4[], %b::uuid[]) u(entity, access, is_own, count, passage)
WHERE (SELECT true FROM mentions m
  WHERE m.collection = c.collection AND m.entity = u.entity AND m.access = u.access AND m.passage = u.passage
    AND m.rank = rank_mention(u.is_own > 0, u.count) LIMIT 1)

-- name: has_assertion
SELECT count(*) FROM (SELECT %s::int8 AS collection) c,
  unnest(%b::uuid[], %b::int2[], %b::float8[], %b::uuid[], %b::int4[], %b::int8[], %b::int8[])
    u(fact, source, strength, passage, place, series, began)
WHERE (SELECT s.place = u.place AND s.series = u.series AND s.began = u.began FROM assertions s WHERE s.collection = c.collection AND s.fact = u.fact AND s.source = u.source
  AND s.rank = -u.strength AND s.passage = u.passage LIMIT 1)

-- name: has_edge
SELECT count(*) FROM (SELECT %s::int8 AS collection) c,
  unnest(%b::uuid[], %b::int4[], %b::float8[], %b::uuid[]) u(entity, access, strength, fact)
WHERE (SELECT true FROM edges x WHERE x.collection = c.collection AND x.entity = u.entity AND x.access = u.access
  AND x.rank = -u.strength AND x.fact = u.fact LIMIT 1)

-- name: count_rows
SELECT 'mention', count(*) FROM mentions WHERE collection = %(collection)s
UNION ALL SELECT 'assertion', count(*) FROM assertions WHERE collection = %(collection)s

-- name: all_passage_terms
SELECT p.access, t.terms FROM passages p CROSS JOIN LATERAL (
  SELECT u.terms FROM passage_terms u WHERE u.collection = %(collection)s AND u.number = p.number LIMIT 1) t
WHERE p.collection = %(collection)s

-- name: all_terms
SELECT number, passages FROM terms WHERE collection = %(collection)s

-- name: all_term_counts
SELECT term, access, passages FROM term_counts WHERE collection = %(collection)s

-- name: all_profiles
SELECT entity, access, name, aliases FROM profiles WHERE collection = %(collection)s

-- name: all_names
SELECT name, entity, access, documents FROM names WHERE collection = %(collection)s

-- name: all_keys
SELECT key, entity, access, documents FROM entity_keys WHERE collection = %(collection)s
