-- Every statement of the SQLite store by name. Lists of rows and ids are passed by carray. :accesses are the
-- permissions of the caller. :tags is a JSON list of lists: a document passes if it has one tag of each list.
-- A fragment is a part of several statements.
-- SQLite evaluates a correlated IN (… LIMIT …) once for each outer row, which limits the rows of each item.
-- CROSS JOIN fixes the order of a join in SQLite: from the requested items to the rows that belong to them.

-- --------------------------------------------------------------------------------------------- the file

-- name: settings
-- pages.py runs the checkpoints. The log is truncated whenever it restarts. Pages that were mapped into memory
-- would be read without a look at their checksums.
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = 0;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -65536;
PRAGMA temp_store = MEMORY;

-- name: file_settings
-- Only for a new file: the page size cannot change later, and WAL is a property of the file.
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;

-- name: data_version
-- Changes when another connection has written. Reading it starts the snapshot of a verb.
PRAGMA data_version

-- name: has_migrations
-- The number of columns of the table: 0 if there is no table, 3 if it is from before checksums.
SELECT count(*) FROM pragma_table_info('migrations')

-- name: schema_names
-- None in an empty file. A file with tables of which none is ours is one of another program.
SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')

-- name: create_migrations
CREATE TABLE IF NOT EXISTS migrations (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL,
  checksum TEXT NOT NULL DEFAULT ''
) STRICT

-- name: add_checksum
-- Adds the column to a table from before checksums.
ALTER TABLE migrations ADD COLUMN checksum TEXT NOT NULL DEFAULT ''

-- name: applied_migrations
-- The number is in the first column, the checksum, if there is one, in the fourth.
SELECT * FROM migrations

-- name: record_migration
INSERT INTO migrations (number, name, applied_at, checksum) VALUES (?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET checksum = excluded.checksum

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- ------------------------------------------------------------------------------------------- collection

-- name: ensure_collection
INSERT OR IGNORE INTO collections (name, secret) VALUES (:name, randomblob(32))

-- name: secret
SELECT secret FROM collections WHERE row = :collection

-- name: collection
SELECT row, version, model, dimension, documents, passages, entities, facts, mentions, weights, length, next_passage,
  next_entity
FROM collections WHERE name = :name

-- name: collections
SELECT name, documents, passages FROM collections ORDER BY name

-- name: collection_row
SELECT row FROM collections WHERE name = :name

-- name: count
-- Add the changes of a write to the counters.
UPDATE collections SET version = version + 1, documents = documents + :documents, passages = passages + :passages,
  entities = entities + :entities, facts = facts + :facts, mentions = mentions + :mentions, length = length + :length
WHERE row = :collection

-- name: set_model
UPDATE collections SET model = :model, dimension = :dimension, weights = '', version = version + 1 WHERE row = :collection

-- name: set_weights
UPDATE collections SET weights = :weights, version = version + 1 WHERE row = :collection

-- name: set_next
UPDATE collections SET next_passage = :next_passage, next_entity = :next_entity WHERE row = :collection

-- name: new_block
INSERT INTO blocks (kind, collection, codes, live) VALUES (:kind, :collection, zeroblob(:size), zeroblob(:rows / 8))
RETURNING row

-- name: blocks
SELECT row, codes, live FROM blocks WHERE collection = :collection AND kind = :kind

-- name: blocks_by_row
SELECT row, codes, live FROM blocks WHERE row IN carray(:rows) ORDER BY row

-- name: resize_blocks
UPDATE blocks SET codes = zeroblob(:size), live = zeroblob(:rows / 8) WHERE collection = :collection

-- --------------------------------------------------------------------------------------------- visibility

-- fragment: has_tags
-- Whether a document, given by row, has the tags of the filter.
(:tags = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(:tags) c WHERE NOT EXISTS (
  SELECT 1 FROM document_tags t WHERE t.document = $1 AND t.tag IN (SELECT value FROM json_each(c.value)))))

-- fragment: is_unexpired
-- Whether a document, given by row, has not expired. :expired_by is null if no document that the caller may see has.
(:expired_by IS NULL OR NOT EXISTS (SELECT 1 FROM documents x WHERE x.row = $1 AND x.expires_at <= :expired_by))

-- fragment: is_kept
-- Whether a document, given by row, has the tags of the filter and has not expired.
(@has_tags($1) AND @is_unexpired($1))

-- fragment: is_wanted
-- Whether a passage, given by row, passes the filter by its speaker and time, and its document by its tags and expiry.
((:tags = '[]' AND NOT :has_turns AND :expired_by IS NULL) OR EXISTS (SELECT 1 FROM passages o WHERE o.row = $1 AND @is_kept(o.document) AND @is_said(o)))

-- fragment: is_said
-- Whether a passage was said by the speaker and at the time of the filter.
(NOT :has_turns OR (@is_dated($1) AND (:speaker IS NULL OR $1.speaker = :speaker)))

-- fragment: is_shown
-- Whether the caller may see a passage, and the filter lets it through.
($1.access IN carray(:accesses) AND @is_kept($1.document) AND @is_said($1))

-- fragment: is_dated
-- Whether a passage, or the event of a document, has the time of the filter.
((:since IS NULL OR $1.at >= :since) AND (:until IS NULL OR $1.at < :until) AND (:said_by IS NULL OR $1.at IS NULL OR $1.at <= :said_by))

-- fragment: most_trusted
-- Of the assertions of a fact that the caller may see: the most trusted one.
FROM assertions z WHERE z.collection = :collection AND z.fact = $1 AND z.access IN carray(:accesses)
  AND (:as_of IS NULL OR (coalesce(z.valid_from <= :as_of, 1) AND coalesce(z.valid_to > :as_of, 1)))
  AND @is_wanted(z.passage) ORDER BY z.source, z.strength DESC, z.tie, z.passage LIMIT 1

-- name: visible_accesses
-- Of the caller's labels, without a user and of its own user, with the time at which the first document of each expires.
SELECT a.row, a.passages, a.length, a.assertions, a.turns,
  coalesce((SELECT min(d.expires_at) FROM documents d WHERE d.access = a.row AND d.expires_at IS NOT NULL), 9223372036854775807)
FROM accesses a
WHERE a.collection = :collection AND a.user IN ('', :user) AND (:labels IS NULL OR a.labels = '[]' OR EXISTS (
  SELECT 1 FROM json_each(a.labels) l JOIN json_each(:labels) g ON g.value = l.value))

-- name: has_users
SELECT EXISTS (SELECT 1 FROM accesses WHERE collection = :collection AND user > '')

-- name: users
SELECT user, sum(documents), sum(passages) FROM accesses WHERE collection = :collection AND user > :after
GROUP BY user ORDER BY user LIMIT :limit

-- name: use_access
INSERT INTO accesses (collection, labels, user, documents) VALUES (:collection, :labels, :user, 1)
ON CONFLICT DO UPDATE SET documents = documents + 1 RETURNING row

-- name: leave_access
UPDATE accesses SET documents = documents - 1 WHERE row = ?

-- name: count_access
UPDATE accesses SET passages = passages + ?2, length = length + ?3, assertions = assertions + ?4, turns = turns + ?5 WHERE row = ?1

-- name: drop_unused_accesses
DELETE FROM accesses WHERE collection = :collection AND documents = 0

-- ---------------------------------------------------------------------------------------------- documents

-- name: digests
SELECT id, row, digest, labels, user FROM documents WHERE collection = :collection AND id IN carray(:ids)

-- name: labels_of_file
-- Of the documents that were read from a file. The URI of a row in a file ends in # and its place.
SELECT DISTINCT labels, user FROM documents
WHERE collection = :collection AND (uri = :file OR uri >= :file || '#' AND uri < :file || '$')

-- name: insert_document
INSERT INTO documents (collection, id, tie, access, title, uri, source, metadata, labels, recorded_at, digest, user, agent, session, at, expires_at, author)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row

-- name: insert_document_tag
INSERT OR IGNORE INTO document_tags (document, tag) VALUES (?, ?)

-- name: documents
SELECT d.row, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d.user, d.agent, d.session, d.at, d.expires_at, d.author
FROM documents d
WHERE d.collection = :collection AND d.id IN carray(:ids) AND d.access IN carray(:accesses)
  AND @is_kept(d.row) AND @is_dated(d)

-- name: sources
-- The documents of passages, with the id of the passage in the first column.
SELECT p.id, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d.user, d.agent, d.session, d.at, d.expires_at, d.author
FROM passages p CROSS JOIN documents d ON d.row = p.document
WHERE p.collection = :collection AND p.id IN carray(:ids) AND d.access IN carray(:accesses)
  AND @is_kept(d.row) AND @is_said(p)

-- name: listed
-- Documents by URI, starting after one. A prefix is a range.
SELECT d.row, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d.user, d.agent, d.session, d.at, d.expires_at, d.author
FROM documents d
WHERE d.collection = :collection AND (d.uri, d.id) > (:uri, :id) AND d.uri >= :under AND d.uri < :beyond
  AND d.access IN carray(:accesses)
  AND @is_kept(d.row) AND @is_dated(d)
ORDER BY d.uri, d.id LIMIT :limit

-- name: expired_documents
-- Of all users and labels, by id.
SELECT d.row, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d.user, d.agent, d.session, d.at, d.expires_at, d.author
FROM accesses a CROSS JOIN documents d ON d.access = a.row
WHERE a.collection = :collection AND d.expires_at IS NOT NULL AND d.expires_at <= :by AND d.id > :after ORDER BY d.id LIMIT :limit

-- name: expired_passages
-- The rows of passages that the caller may see and that have expired.
SELECT p.row FROM carray(:accesses) a
CROSS JOIN documents d ON d.access = a.value AND d.expires_at IS NOT NULL AND d.expires_at <= :expired_by
CROSS JOIN passages p ON p.document = d.row

-- name: fingerprints
SELECT uri, fingerprint FROM files WHERE collection = :collection AND uri IN carray(:uris)

-- name: receipt
SELECT documents, passages, entities, facts, missing FROM receipts
WHERE collection = :collection AND id = :id AND until > :now AND (:author IS NULL OR author = :author)

-- name: add_receipt
INSERT INTO receipts (collection, id, until, author, documents, passages, entities, facts, missing)
VALUES (:collection, :id, :until, :author, :documents, :passages, :entities, :facts, :missing)

-- name: delete_old_receipts
DELETE FROM receipts WHERE collection = :collection AND until <= :now

-- name: last_audit
SELECT number, hash FROM audit WHERE collection = :collection ORDER BY number DESC LIMIT 1

-- name: add_audit
INSERT INTO audit (collection, number, at, author, request, verb, count, documents, labels_before, labels_after, hash)
VALUES (:collection, :number, :at, :author, :request, :verb, :count, :documents, :labels_before, :labels_after, :hash)

-- name: audit
-- A negative number of an entry counts from the end.
SELECT number, at, author, request, verb, count, documents, labels_before, labels_after, hash FROM audit
WHERE collection = :collection AND number > :after + CASE WHEN :after < 0
  THEN coalesce((SELECT max(number) FROM audit WHERE collection = :collection), 0) ELSE 0 END
ORDER BY number LIMIT :limit

-- name: set_fingerprint
INSERT INTO files (collection, uri, fingerprint) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint

-- name: delete_fingerprints
-- The fingerprints of the files of documents. The URI of a row in a file ends in # and its place.
DELETE FROM files WHERE (collection, uri) IN (
  SELECT collection, iif(instr(uri, '#'), substr(uri, 1, instr(uri, '#') - 1), uri)
  FROM documents WHERE row IN carray(:rows))

-- name: export_documents
-- Of all users and labels, by id. A negative limit is none.
SELECT d.row, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d.user, d.agent, d.session, d.at, d.expires_at, d.author
FROM documents d WHERE d.collection = :collection AND d.id > :after ORDER BY d.id LIMIT :limit

-- name: enrichments
-- What `waylore enrich` added to the passages of documents.
SELECT e.row FROM carray(:rows) r CROSS JOIN documents d ON d.row = r.value
CROSS JOIN documents e ON e.collection = d.collection AND e.uri = 'enrich:' || lower(hex(d.id))

-- name: document_accesses
SELECT access FROM documents WHERE row IN carray(:rows)

-- name: delete_documents
DELETE FROM documents WHERE row IN carray(:rows) RETURNING id

-- name: tags_of_documents
SELECT document, tag FROM document_tags WHERE document IN carray(:rows)

-- name: delete_document_tags
DELETE FROM document_tags WHERE document IN carray(:rows)

-- ----------------------------------------------------------------------------------------------- passages

-- name: insert_passage
INSERT INTO passages (row, collection, id, document, document_id, access, position, title, text, start, "end", headings, speaker, role, at, session)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: passage_rows
SELECT id, row FROM passages WHERE collection = :collection AND id IN carray(:ids)

-- name: joined_passage_ids
-- All ids as one value, in the order of :rows.
SELECT count(*), CAST(group_concat(id, '') AS BLOB)
FROM (SELECT p.id FROM carray(:rows) i CROSS JOIN passages p ON p.row = i.value)

-- name: passages
SELECT p.row, p.id, p.document_id, p.text, p.title, p.position, p.start, p."end", p.headings,
  CASE WHEN :vectors THEN (SELECT v.vector FROM passage_vectors v WHERE v.row = p.row) END, p.speaker, p.role, p.at
FROM passages p WHERE p.collection = :collection AND p.id IN carray(:ids) AND p.access IN carray(:accesses)
  AND @is_kept(p.document) AND @is_said(p)

-- name: passages_between
-- The ids from one to another, of passages that the caller may see.
SELECT p.id FROM passages p WHERE p.collection = :collection AND p.id BETWEEN :first AND :last AND @is_shown(p)
ORDER BY p.id LIMIT :limit

-- name: visible_passages
-- The rows of passages that the caller may see, and their ids, each as one value.
SELECT group_concat(row), CAST(group_concat(id, '') AS BLOB)
FROM (SELECT p.row, p.id FROM carray(:ids) i CROSS JOIN passages p ON p.collection = :collection AND p.id = i.value
  WHERE p.access IN carray(:accesses) AND @is_kept(p.document) AND @is_said(p))

-- name: vectors_of_passage_rows
-- The rows of passages that have a vector, and all vectors as one value.
SELECT group_concat(row), CAST(group_concat(vector, '') AS BLOB)
FROM (SELECT v.row, v.vector FROM carray(:rows) r CROSS JOIN passage_vectors v ON v.row = r.value)

-- name: turn_rows
-- For each turn, the rows of the turns before and after it of the same session, and with :same_role of the same role, and its own, as text: looking up
-- each neighbour by itself takes twice as long. The pieces of a long turn are neighbours of each other.
SELECT (SELECT group_concat(n.row) FROM (SELECT o.row FROM passages o
    WHERE o.collection = :collection AND o.session = p.session AND (NOT :same_role OR o.role = p.role) AND (o.position, o.id) <= (p.position, p.id)
      AND @is_shown(o) ORDER BY o.position DESC, o.id DESC LIMIT :before + 1) n),
  (SELECT group_concat(n.row) FROM (SELECT o.row FROM passages o
    WHERE o.collection = :collection AND o.session = p.session AND (NOT :same_role OR o.role = p.role) AND (o.position, o.id) > (p.position, p.id)
      AND @is_shown(o) ORDER BY o.position, o.id LIMIT :after) n)
FROM carray(:ids) i CROSS JOIN passages p ON p.collection = :collection AND p.id = i.value
WHERE p.session IS NOT NULL AND @is_shown(p)

-- name: turns
SELECT p.session, p.role, p.position, p.id, p.speaker, p.at, p.text, t.sequence, t.tells_time, v.vector
FROM carray(:rows) r CROSS JOIN passages p ON p.row = r.value CROSS JOIN passage_terms t ON t.row = p.row
LEFT JOIN passage_vectors v ON v.row = p.row

-- name: export_passages
SELECT p.row, p.id, p.document_id, p.text, p.title, p.position, p.start, p."end", p.headings, v.vector, p.speaker, p.role, p.at
FROM passages p LEFT JOIN passage_vectors v ON v.row = p.row WHERE p.document = :document ORDER BY p.position, p.id

-- name: passage_rows_of_documents
SELECT p.row, p.document, p.access, t.length, t.terms, p.id, p.role > '', p.text = '' AND p.title = '', k.pack
FROM passages p JOIN passage_terms t ON t.row = p.row JOIN packs k ON k.row = p.row
WHERE p.document IN carray(:rows)

-- name: delete_passages
DELETE FROM passages WHERE row IN carray(:rows) RETURNING id

-- name: insert_passage_vector
INSERT INTO passage_vectors (row, vector) VALUES (?, ?)

-- name: joined_passage_vectors
-- All vectors as one value, in the order of :rows: a third of the time that a row for each takes.
SELECT count(*), CAST(group_concat(vector, '') AS BLOB)
FROM (SELECT v.vector FROM carray(:rows) i CROSS JOIN passage_vectors v ON v.row = i.value)

-- name: delete_passage_vectors
DELETE FROM passage_vectors WHERE row IN carray(:rows)

-- name: collection_passage_vectors
SELECT v.row, v.vector FROM passages p JOIN passage_vectors v ON v.row = p.row WHERE p.collection = :collection

-- -------------------------------------------------------------------------------------------------- words

-- name: insert_words
INSERT INTO words (rowid, terms) VALUES (?, ?)

-- name: delete_words
-- The table is contentless, so FTS5 needs the indexed text again to delete it (secure-delete).
INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)

-- name: match
-- Newest first, so that the limit cuts off the oldest. All rows as one text: a fourth of the time that a row for each takes.
SELECT group_concat(m.rowid) FROM (SELECT w.rowid FROM words w WHERE w.words MATCH :match
  AND (NOT :has_turns OR EXISTS (SELECT 1 FROM passages p WHERE p.row = w.rowid AND @is_said(p)))
  AND (:expired_by IS NULL OR (SELECT @is_unexpired(p.document) FROM passages p WHERE p.row = w.rowid))
  ORDER BY w.rowid DESC LIMIT :limit) m

-- name: count_between
-- The passages of a period, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM passages p WHERE p.collection = :collection
  AND p.at >= coalesce(:since, -9223372036854775807) AND p.at < coalesce(:until, 9223372036854775807)
  AND p.access IN carray(:accesses) AND @is_kept(p.document) LIMIT :limit)

-- name: insert_passage_terms
INSERT INTO passage_terms (row, length, terms, sequence, tells_time) VALUES (?, ?, ?, ?, ?)

-- name: joined_passage_terms
-- All passages as one row, in the order of :rows: numbers as text, and terms one behind the other.
SELECT group_concat(length), group_concat(size), CAST(group_concat(terms, '') AS BLOB)
FROM (SELECT t.length, length(t.terms) / 4 AS size, t.terms FROM carray(:rows) i CROSS JOIN passage_terms t ON t.row = i.value)

-- name: delete_passage_terms
DELETE FROM passage_terms WHERE row IN carray(:rows)

-- name: add_term
INSERT INTO terms (collection, term, passages) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET passages = passages + excluded.passages

-- name: terms
SELECT term, row, passages, passages FROM terms WHERE collection = :collection AND term IN carray(:terms)

-- name: visible_terms
-- The terms of passages that the caller may see, counted in these alone, and in all passages.
SELECT t.term, t.row, sum(c.passages), t.passages FROM terms t CROSS JOIN term_counts c ON c.term = t.row AND c.access IN carray(:accesses)
WHERE t.collection = :collection AND t.term IN carray(:terms) GROUP BY t.row

-- name: add_term_count
INSERT INTO term_counts (term, access, passages) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET passages = passages + excluded.passages

-- name: delete_unused_term_count
DELETE FROM term_counts WHERE term = ? AND access = ? AND passages <= 0

-- name: leave_term
UPDATE terms SET passages = passages - ? WHERE row = ?

-- name: delete_unused_terms
DELETE FROM terms WHERE row IN carray(:rows) AND passages <= 0

-- ----------------------------------------------------------------------------------------------- entities

-- name: entity_rows
SELECT id, row FROM entities WHERE collection = :collection AND id IN carray(:ids)

-- name: joined_entity_ids
SELECT count(*), CAST(group_concat(id, '') AS BLOB)
FROM (SELECT e.id FROM carray(:rows) i CROSS JOIN entities e ON e.row = i.value)

-- name: insert_entity
INSERT INTO entities (row, collection, id, sense) VALUES (?, ?, ?, ?)

-- name: insert_entity_vector
INSERT INTO entity_vectors (row, vector) VALUES (?, ?)

-- name: entity_vectors
SELECT row, vector FROM entity_vectors WHERE row IN carray(:rows)

-- name: joined_entity_vectors
SELECT count(*), CAST(group_concat(vector, '') AS BLOB)
FROM (SELECT v.vector FROM carray(:rows) i CROSS JOIN entity_vectors v ON v.row = i.value)

-- name: delete_entity_vectors
DELETE FROM entity_vectors WHERE row IN carray(:rows)

-- name: collection_entity_vectors
SELECT v.row, v.vector FROM entities e JOIN entity_vectors v ON v.row = e.row WHERE e.collection = :collection

-- name: insert_profile
INSERT INTO profiles (entity, access, tie, document, name, type, description, aliases) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: profiles
-- At most :cap descriptions of an entity for each permission, so that a name in a million documents stays cheap.
SELECT e.row, e.id, e.sense, e.passages, p.name, p.type, p.description, p.aliases
FROM carray(:rows) r CROSS JOIN entities e ON e.row = r.value CROSS JOIN carray(:accesses) a
CROSS JOIN profiles p ON p.entity = e.row AND p.access = a.value AND (p.tie, p.document) IN (
    SELECT q.tie, q.document FROM profiles q WHERE q.entity = e.row AND q.access = a.value
      AND @is_kept(q.document)
    ORDER BY q.tie, q.document LIMIT :cap)
WHERE e.collection = :collection ORDER BY e.row, p.tie, p.document

-- name: visible_entities
SELECT r.value FROM carray(:rows) r
WHERE EXISTS (SELECT 1 FROM carray(:accesses) a CROSS JOIN profiles p ON p.entity = r.value AND p.access = a.value
  WHERE @is_kept(p.document))

-- name: listed_entities
-- By id, starting after one: those that a visible document describes, with a type if one is given.
SELECT e.row FROM entities e WHERE e.collection = :collection AND e.id > :after AND EXISTS (
  SELECT 1 FROM carray(:accesses) a CROSS JOIN profiles p ON p.entity = e.row AND p.access = a.value
  WHERE (:type = '' OR lower(p.type) = :type) AND @is_kept(p.document))
ORDER BY e.id LIMIT :limit

-- name: profiles_of_documents
SELECT p.entity, p.access, p.name, p.aliases FROM profiles p WHERE p.document IN carray(:rows)

-- name: export_profiles
SELECT e.row, e.id, e.sense, 0, p.name, p.type, p.description, p.aliases, v.vector
FROM profiles p JOIN entities e ON e.row = p.entity LEFT JOIN entity_vectors v ON v.row = e.row
WHERE p.document = :document ORDER BY e.id

-- name: delete_profiles
DELETE FROM profiles WHERE document IN carray(:rows)

-- name: delete_unsupported_entities
DELETE FROM entities WHERE row IN carray(:rows) AND NOT EXISTS (SELECT 1 FROM profiles p WHERE p.entity = entities.row)
RETURNING row, id

-- name: add_name
INSERT INTO names (collection, name, entity, access, documents) VALUES (?, ?, ?, ?, 1)
ON CONFLICT DO UPDATE SET documents = documents + 1

-- name: remove_name
UPDATE names SET documents = documents - 1 WHERE collection = ? AND name = ? AND entity = ? AND access = ?

-- name: delete_unused_name
DELETE FROM names WHERE collection = ? AND name = ? AND entity = ? AND access = ? AND documents <= 0

-- name: names
-- At most :cap entities with the same name, because thousands may share one; the first by id, whatever was written first.
SELECT DISTINCT n.name, n.entity FROM carray(:names) w CROSS JOIN names n ON n.collection = :collection AND n.name = w.value
  AND n.access IN carray(:accesses) AND n.entity IN (
    SELECT DISTINCT m.entity FROM names m CROSS JOIN entities e ON e.row = m.entity WHERE m.collection = :collection
      AND m.name = w.value AND m.access IN carray(:accesses) ORDER BY e.id LIMIT :cap)

-- name: add_key
INSERT INTO entity_keys (collection, key, access, entity, documents) VALUES (?, ?, ?, ?, 1)
ON CONFLICT DO UPDATE SET documents = documents + 1

-- name: remove_key
UPDATE entity_keys SET documents = documents - 1 WHERE collection = ? AND key = ? AND access = ? AND entity = ?

-- name: delete_unused_key
DELETE FROM entity_keys WHERE collection = ? AND key = ? AND access = ? AND entity = ? AND documents <= 0

-- name: fill_keys
-- For files that are older than keys. name_keys is waylore.names.keys as JSON.
INSERT INTO entity_keys (collection, key, access, entity, documents)
SELECT e.collection, k.value, p.access, p.entity, count(*)
FROM entities e CROSS JOIN profiles p ON p.entity = e.row CROSS JOIN json_each(name_keys(p.name)) k
GROUP BY e.collection, k.value, p.access, p.entity

-- name: entities_by_keys
-- At most :cap entities for each key and permission. A key that more entities share is not significant.
SELECT DISTINCT w.value, e.id FROM carray(:keys) w CROSS JOIN carray(:accesses) a
CROSS JOIN entity_keys k ON k.collection = :collection AND k.key = w.value AND k.access = a.value AND k.entity IN (
    SELECT l.entity FROM entity_keys l WHERE l.collection = :collection AND l.key = w.value AND l.access = a.value
      AND (:tags = '[]' AND :expired_by IS NULL OR EXISTS (
        SELECT 1 FROM profiles p WHERE p.entity = l.entity AND p.access = a.value AND @is_kept(p.document)))
    ORDER BY l.entity LIMIT :cap)
CROSS JOIN entities e ON e.row = k.entity

-- ----------------------------------------------------------------------------------------------- mentions

-- name: insert_mention
INSERT INTO mentions (entity, access, is_own, count, tie, passage) VALUES (?, ?, ?, ?, ?, ?)

-- name: delete_mention
DELETE FROM mentions WHERE entity = ? AND access = ? AND is_own = ? AND count = ? AND tie = ? AND passage = ?

-- name: add_entity_passages
UPDATE entities SET passages = passages + ? WHERE row = ?

-- name: add_entity_count
INSERT INTO entity_counts (entity, access, passages) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET passages = passages + excluded.passages

-- name: delete_unused_entity_count
DELETE FROM entity_counts WHERE entity = ? AND access = ? AND passages <= 0

-- name: visible_entity_counts
-- The passages that mention an entity and that the caller may see.
SELECT c.entity, sum(c.passages) FROM entity_counts c WHERE c.entity IN carray(:rows) AND c.access IN carray(:accesses)
GROUP BY c.entity

-- name: mentions_of_entities
-- The best mentions of each entity and permission as one text: the row of the passage, the count, and whether it is about the entity.
SELECT e.id, (SELECT group_concat(m.entry) FROM (
    SELECT n.passage || ',' || n.count || ',' || n.is_own AS entry FROM mentions n
    WHERE n.entity = e.row AND n.access = a.value AND @is_wanted(n.passage)
    ORDER BY n.is_own DESC, n.count DESC, n.tie LIMIT :cap) m)
FROM carray(:ids) i CROSS JOIN entities e ON e.collection = :collection AND e.id = i.value CROSS JOIN carray(:accesses) a

-- -------------------------------------------------------------------------------------------------- packs

-- name: insert_pack
INSERT INTO packs (row, facts, pack) VALUES (?, ?, ?)

-- name: insert_statement_vectors
-- In parts of 1,000 bytes.
WITH RECURSIVE parts (part) AS (SELECT 0 UNION ALL SELECT part + 1 FROM parts WHERE (part + 1) * 1000 < length(?2))
INSERT INTO statement_vectors (row, part, codes) SELECT ?1, part, substr(?2, 1 + part * 1000, 1000) FROM parts

-- fragment: pack_columns
-- What is read of a pack, given its passage, document and row. The vectors of its statements are one value.
$1.id, $1.text, $2.recorded_at, $1.at, $3.pack, (
  SELECT CAST(group_concat(v.codes, '') AS BLOB) FROM (SELECT codes FROM statement_vectors WHERE row = $1.row ORDER BY part) v)

-- name: packs
SELECT @pack_columns(p, d, k)
FROM carray(:rows) r CROSS JOIN packs k ON k.row = r.value CROSS JOIN passages p ON p.row = k.row
CROSS JOIN documents d ON d.row = p.document ORDER BY p.row

-- name: packs_with_pairs
-- Packs whose header has a number of pairs other than 0.
SELECT @pack_columns(p, d, k)
FROM carray(:rows) r CROSS JOIN packs k ON k.row = r.value AND substr(k.pack, 19, 4) <> x'00000000'
CROSS JOIN passages p ON p.row = k.row CROSS JOIN documents d ON d.row = p.document ORDER BY p.row

-- name: packs_of_passages
SELECT @pack_columns(p, d, k)
FROM carray(:ids) i CROSS JOIN passages p ON p.collection = :collection AND p.id = i.value
CROSS JOIN packs k ON k.row = p.row CROSS JOIN documents d ON d.row = p.document
WHERE p.access IN carray(:accesses)
  AND @is_kept(p.document) AND @is_said(p)

-- name: export_packs
SELECT @pack_columns(p, d, k)
FROM passages p CROSS JOIN packs k ON k.row = p.row CROSS JOIN documents d ON d.row = p.document
WHERE p.document = :document ORDER BY p.position, p.id

-- name: set_pack
UPDATE packs SET pack = ? WHERE row = ?

-- name: delete_packs
DELETE FROM packs WHERE row IN carray(:rows)

-- name: delete_statement_vectors
DELETE FROM statement_vectors WHERE row IN carray(:rows)

-- -------------------------------------------------------------------------------------------------- facts

-- name: insert_assertion
INSERT INTO assertions (collection, fact, source, strength, tie, passage, place, access, status, valid_from, valid_to, series, began)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: set_series
UPDATE assertions SET series = ?7, began = ?8
WHERE collection = ?1 AND fact = ?2 AND source = ?3 AND strength = ?4 AND tie = ?5 AND passage = ?6

-- name: delete_assertion
DELETE FROM assertions WHERE collection = ? AND fact = ? AND source = ? AND strength = ? AND tie = ? AND passage = ?

-- name: known_facts
SELECT DISTINCT fact FROM assertions WHERE collection = :collection AND fact IN carray(:facts)

-- name: strengths
-- Of facts, for each permission: that of the strongest assertion.
SELECT fact, access, max(strength) FROM assertions WHERE collection = :collection AND fact IN carray(:facts)
GROUP BY fact, access

-- name: insert_edge
-- A fact whose subject is its object has one edge.
INSERT OR IGNORE INTO edges (entity, access, strength, fact, predicate) VALUES (?, ?, ?, ?, ?)

-- name: delete_edge
DELETE FROM edges WHERE entity = ? AND access = ? AND strength = ? AND fact = ?

-- fragment: strongest
-- The places of the strongest facts as one text: the row of a passage and the place there, of the most trusted visible
-- assertion, if it has one of :statuses. LIMIT -1 keeps SQLite from looking for that assertion twice.
(SELECT group_concat(t.place) FROM (SELECT s.place FROM (
    SELECT (SELECT iif(z.status IN carray(:statuses), z.passage || ',' || z.place, NULL) @most_trusted(x.fact)) AS place
    FROM edges x WHERE $1 ORDER BY x.strength DESC, x.fact LIMIT -1) s
  WHERE s.place IS NOT NULL LIMIT :cap) t)

-- name: facts_of_entities
SELECT e.id, @strongest(x.entity = e.row AND x.access = a.value)
FROM carray(:ids) i CROSS JOIN entities e ON e.collection = :collection AND e.id = i.value CROSS JOIN carray(:accesses) a

-- name: facts_of_entities_by_predicate
SELECT e.id, @strongest(x.entity = e.row AND x.predicate = q.value AND x.access = a.value)
FROM carray(:ids) i CROSS JOIN entities e ON e.collection = :collection AND e.id = i.value CROSS JOIN carray(:predicates) q CROSS JOIN carray(:accesses) a

-- name: assertions_of_series
-- The places of the newest assertions that began by a time, unless the most trusted visible one retracts the fact. By its key
-- SQLite would read all assertions of each fact.
SELECT s.passage, s.place FROM carray(:series) k CROSS JOIN carray(:accesses) a
CROSS JOIN assertions s INDEXED BY assertions_by_time ON s.collection = :collection AND s.series = k.value AND s.access = a.value AND (s.began, s.tie, s.fact) IN (
    SELECT n.began, n.tie, n.fact FROM assertions n WHERE n.collection = :collection AND n.series = k.value AND n.access = a.value
      AND n.began <= :latest AND n.status IN carray(:statuses) AND @is_wanted(n.passage)
      AND (NOT :may_be_retracted OR (SELECT z.status @most_trusted(n.fact)) IN carray(:statuses))
    ORDER BY n.began DESC, n.tie, n.fact LIMIT :cap)

-- name: facts
SELECT s.passage, s.place FROM carray(:facts) f CROSS JOIN assertions s ON s.collection = :collection AND s.fact = f.value
  AND (s.source, s.strength, s.tie, s.passage) = (
    SELECT z.source, z.strength, z.tie, z.passage @most_trusted(f.value))
WHERE s.status IN carray(:statuses)

-- name: has_unconfirmed
SELECT EXISTS (SELECT 1 FROM assertions WHERE collection = :collection AND status <> 1)

-- name: retracted_facts
-- Facts whose most trusted visible assertion has none of :statuses.
SELECT f.value FROM carray(:facts) f
WHERE (SELECT z.status @most_trusted(f.value)) NOT IN carray(:statuses)

-- -------------------------------------------------------------------------------------------------- usage

-- name: touch
INSERT INTO usage (collection, kind, row, access_count, last_accessed) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET access_count = access_count + excluded.access_count, last_accessed = max(last_accessed, excluded.last_accessed)

-- name: delete_usage
DELETE FROM usage WHERE collection = :collection AND kind = :kind AND row IN carray(:rows)

-- name: most_used
-- The passages that the caller may see and that were used most.
SELECT p.id, u.access_count FROM usage u CROSS JOIN passages p ON p.row = u.row
WHERE u.collection = :collection AND u.kind = 'passage' AND @is_shown(p)
ORDER BY u.access_count DESC, p.id LIMIT :limit

-- name: growth
-- Documents that the caller may see, or all, and their passages, by the day (in microseconds) on which they were recorded.
-- A remainder is negative before 1970.
SELECT (d.recorded_at - (d.recorded_at % 86400000000 + 86400000000) % 86400000000) / 86400000000 AS written, count(*),
  sum((SELECT count(*) FROM passages p WHERE p.document = d.row))
FROM documents d
WHERE d.collection = :collection
  AND (:everyone OR (d.access IN carray(:accesses) AND @is_kept(d.row) AND @is_dated(d)))
GROUP BY written ORDER BY written

-- name: uses_of_facts
SELECT row, access_count, last_accessed FROM usage
WHERE collection = :collection AND kind = 'fact' AND row IN carray(:facts)

-- ------------------------------------------------------------------------- changing the embedding model

-- name: last_staged
SELECT coalesce(max(row), 0) FROM staged WHERE collection = :collection AND model = :model AND kind = :kind

-- name: unembedded_passage
SELECT p.row, p.id, p.document_id, p.text, p.title, p.position, p.start, p."end", p.headings, NULL, p.speaker, p.role, p.at
FROM passages p WHERE p.row >= :after AND p.collection = :collection AND (p.text > '' OR p.title > '') AND NOT EXISTS (
  SELECT 1 FROM staged s WHERE s.collection = p.collection AND s.model = :model AND s.kind = 'passage' AND s.row = p.row)
ORDER BY p.row LIMIT :limit

-- name: unembedded_entity
SELECT e.row, e.id, e.sense, e.passages, p.name, p.type, p.description, p.aliases
FROM entities e JOIN profiles p ON p.entity = e.row
WHERE e.row >= :after AND e.collection = :collection AND NOT EXISTS (
  SELECT 1 FROM staged s WHERE s.collection = e.collection AND s.model = :model AND s.kind = 'entity' AND s.row = e.row)
GROUP BY e.row ORDER BY e.row LIMIT :limit

-- name: unembedded_fact
-- The packs of passages of which not every fact has a staged vector.
SELECT p.id, p.text, d.recorded_at, p.at, k.pack, NULL, k.row
FROM packs k CROSS JOIN passages p ON p.row = k.row CROSS JOIN documents d ON d.row = p.document
WHERE k.row >= :after AND p.collection = :collection AND k.facts > (
  SELECT count(*) FROM staged s WHERE s.collection = p.collection AND s.model = :model AND s.kind = 'fact' AND s.row = k.row)
ORDER BY k.row LIMIT :limit

-- name: staged_facts
SELECT row, place, vector FROM staged
WHERE collection = :collection AND model = :model AND kind = 'fact' AND row IN carray(:rows)

-- name: staged_passages
-- The passages with staged vectors of facts.
SELECT DISTINCT row FROM staged WHERE collection = :collection AND model = :model AND kind = 'fact' ORDER BY row

-- name: stage
INSERT OR REPLACE INTO staged (collection, model, kind, row, place, vector) VALUES (?, ?, ?, ?, ?, ?)

-- name: unstage
DELETE FROM staged WHERE collection = :collection AND kind = :kind AND row IN carray(:rows)

-- name: staged_dimension
SELECT length(vector) FROM staged WHERE collection = :collection AND model = :model LIMIT 1

-- name: adopt_passage
INSERT OR REPLACE INTO passage_vectors (row, vector)
SELECT row, vector FROM staged WHERE collection = :collection AND model = :model AND kind = 'passage'

-- name: adopt_entity
INSERT OR REPLACE INTO entity_vectors (row, vector)
SELECT row, vector FROM staged WHERE collection = :collection AND model = :model AND kind = 'entity'

-- name: drop_staged
DELETE FROM staged WHERE collection = :collection

-- ------------------------------------------------------------------------------ traces of forgotten items

-- name: integrity_check
-- Checks that each index agrees with its table.
PRAGMA integrity_check(3)

-- name: vacuum
VACUUM

-- name: create_instances
CREATE VIRTUAL TABLE temp.instances USING fts5vocab (main, words, instance)

-- name: orphans
-- Rows without an owner, in every table of the file.
SELECT count(*), 'passages have no document' FROM passages p
WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.row = p.document AND d.id = p.document_id)
UNION ALL
SELECT count(*), 'files have no document' FROM files f
WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.collection = f.collection
  AND (d.uri = f.uri OR d.uri >= f.uri || '#' AND d.uri < f.uri || '$'))
UNION ALL
SELECT count(*), 'tags have no document' FROM document_tags WHERE document NOT IN (SELECT row FROM documents)
UNION ALL
SELECT count(*), 'sets of labels have a wrong number of documents' FROM accesses a
WHERE a.documents <> (SELECT count(*) FROM documents d WHERE d.access = a.row)
UNION ALL
SELECT count(*), 'sets of labels have a wrong number of passages, terms or facts' FROM accesses a
LEFT JOIN (SELECT p.access, sum(p.text > '' OR p.title > '') AS passages, sum(t.length) AS length, sum(p.role > '') AS turns
  FROM passages p JOIN passage_terms t ON t.row = p.row GROUP BY p.access) p ON p.access = a.row
LEFT JOIN (SELECT p.access, sum(k.facts) AS assertions FROM packs k JOIN passages p ON p.row = k.row GROUP BY p.access) s
  ON s.access = a.row
WHERE (a.passages, a.length, a.assertions, a.turns)
  <> (coalesce(p.passages, 0), coalesce(p.length, 0), coalesce(s.assertions, 0), coalesce(p.turns, 0))
UNION ALL
SELECT count(*), 'packs have no passage' FROM packs WHERE row NOT IN (SELECT row FROM passages)
UNION ALL
SELECT count(*), 'vectors have no pack' FROM statement_vectors WHERE row NOT IN (SELECT row FROM packs)
UNION ALL
SELECT count(*), 'passages have no pack' FROM passages WHERE row NOT IN (SELECT row FROM packs)
UNION ALL
SELECT count(*), 'vectors have no passage' FROM passage_vectors WHERE row NOT IN (SELECT row FROM passages)
UNION ALL
SELECT count(*), 'vectors have no entity' FROM entity_vectors WHERE row NOT IN (SELECT row FROM entities)
UNION ALL
SELECT count(*), 'lists of terms have no passage' FROM passage_terms WHERE row NOT IN (SELECT row FROM passages)
UNION ALL
SELECT count(DISTINCT doc), 'entries of the full-text index have no passage' FROM temp.instances
WHERE doc NOT IN (SELECT row FROM passages)
UNION ALL
SELECT count(*), 'entities have no document that describes them' FROM entities WHERE row NOT IN (SELECT entity FROM profiles)
UNION ALL
SELECT count(*), 'entities have a wrong number of mentions' FROM entities e
WHERE e.passages <> (SELECT count(*) FROM mentions m WHERE m.entity = e.row)
  OR e.passages <> (SELECT coalesce(sum(c.passages), 0) FROM entity_counts c WHERE c.entity = e.row)
UNION ALL
SELECT count(*), 'counts of mentions are not those of their labels' FROM entity_counts c
WHERE c.passages <> (SELECT count(*) FROM mentions m WHERE m.entity = c.entity AND m.access = c.access) OR c.passages = 0
UNION ALL
SELECT count(*), 'descriptions have no document' FROM profiles WHERE document NOT IN (SELECT row FROM documents)
UNION ALL
SELECT count(*), 'descriptions have no entity' FROM profiles WHERE entity NOT IN (SELECT row FROM entities)
UNION ALL
SELECT count(*), 'mentions have no passage' FROM mentions WHERE passage NOT IN (SELECT row FROM passages)
UNION ALL
SELECT count(*), 'mentions have no entity' FROM mentions WHERE entity NOT IN (SELECT row FROM entities)
UNION ALL
SELECT count(*), 'assertions have no passage' FROM assertions WHERE passage NOT IN (SELECT row FROM passages)
UNION ALL
SELECT count(*), 'edges have no entity' FROM edges WHERE entity NOT IN (SELECT row FROM entities)
UNION ALL
SELECT count(*), 'edges have no assertion' FROM edges x
WHERE NOT EXISTS (SELECT 1 FROM entities e CROSS JOIN assertions s ON s.collection = e.collection AND s.fact = x.fact
  WHERE e.row = x.entity AND s.access = x.access)
UNION ALL
SELECT count(*), 'use counts have no passage or fact' FROM usage u
WHERE CASE u.kind WHEN 'fact' THEN NOT EXISTS (SELECT 1 FROM assertions s WHERE s.collection = u.collection AND s.fact = u.row)
  ELSE u.row NOT IN (SELECT row FROM passages) END
UNION ALL
SELECT count(*), 'staged vectors have no item' FROM staged s
WHERE CASE kind WHEN 'entity' THEN row NOT IN (SELECT row FROM entities) WHEN 'passage' THEN row NOT IN (SELECT row FROM passages)
  ELSE NOT EXISTS (SELECT 1 FROM packs k WHERE k.row = s.row AND k.facts > s.place) END

-- name: all_packs
SELECT p.collection, p.access, p.id, p.row, coalesce(p.at, d.recorded_at, 0), k.facts, k.pack
FROM passages p CROSS JOIN packs k ON k.row = p.row LEFT JOIN documents d ON d.row = p.document
ORDER BY p.collection, p.id

-- name: has_mention
SELECT 1 FROM mentions WHERE entity = ? AND access = ? AND is_own = ? AND count = ? AND tie = ? AND passage = ?

-- name: has_assertion
SELECT 1 FROM assertions WHERE collection = ? AND fact = ? AND source = ? AND strength = ? AND tie = ? AND passage = ? AND place = ?
  AND series = ? AND began = ?

-- name: has_edge
SELECT 1 FROM edges WHERE entity = ? AND access = ? AND strength = ? AND fact = ?

-- name: count_rows
SELECT 'mention', count(*) FROM mentions UNION ALL SELECT 'assertion', count(*) FROM assertions

-- name: all_passage_terms
SELECT p.access, t.terms FROM passage_terms t JOIN passages p ON p.row = t.row

-- name: all_terms
SELECT row, passages FROM terms

-- name: all_term_counts
SELECT term, access, passages FROM term_counts

-- name: all_profiles
SELECT p.entity, p.access, p.name, p.aliases FROM profiles p

-- name: all_names
SELECT name, entity, access, documents FROM names

-- name: all_keys
SELECT key, entity, access, documents FROM entity_keys

-- name: all_blocks
SELECT row, kind, codes, live FROM blocks
