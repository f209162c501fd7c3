-- A collection, its counters, and the embedding model that all of its vectors come from.
CREATE TABLE collections (
  row INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL DEFAULT 0,
  model TEXT,
  dimension INTEGER,
  documents INTEGER NOT NULL DEFAULT 0,
  passages INTEGER NOT NULL DEFAULT 0,
  entities INTEGER NOT NULL DEFAULT 0,
  facts INTEGER NOT NULL DEFAULT 0,
  mentions INTEGER NOT NULL DEFAULT 0,
  length INTEGER NOT NULL DEFAULT 0,        -- terms of all passages
  next_passage INTEGER NOT NULL DEFAULT 0,  -- the next free row of the collection's last block
  next_entity INTEGER NOT NULL DEFAULT 0,
  secret BLOB,  -- the key of the marks around recalled texts; never exported
  weights TEXT NOT NULL DEFAULT ''  -- of the graph search, fitted by `waylore tune`, as JSON; empty for the shipped ones
) STRICT;

-- Each set of labels with each user that a document has, so that a permission is one integer in every index. What a caller
-- with labels or a user gets depends on counts of its own permissions alone: on these, on term_counts and on entity_counts.
CREATE TABLE accesses (
  row INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: an old permission must not become a new one
  collection INTEGER NOT NULL,
  labels TEXT NOT NULL,
  documents INTEGER NOT NULL DEFAULT 0,
  passages INTEGER NOT NULL DEFAULT 0,
  length INTEGER NOT NULL DEFAULT 0,      -- terms of these passages
  assertions INTEGER NOT NULL DEFAULT 0,  -- of facts, by these passages
  user TEXT NOT NULL DEFAULT '',
  turns INTEGER NOT NULL DEFAULT 0,       -- passages that are turns of a conversation
  UNIQUE (collection, user, labels)
) STRICT;

CREATE TABLE documents (
  row INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  id BLOB NOT NULL,
  tie INTEGER NOT NULL,  -- the first half of the id, for sorting
  access INTEGER NOT NULL,
  title TEXT NOT NULL,
  uri TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('user_edit', 'file', 'system', 'conversation')),
  metadata TEXT NOT NULL,
  labels TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  digest BLOB NOT NULL,
  user TEXT NOT NULL DEFAULT '',
  agent TEXT NOT NULL DEFAULT '',
  session TEXT NOT NULL DEFAULT '',
  at INTEGER,  -- when its event was
  expires_at INTEGER,  -- from when on reads leave it out
  author TEXT NOT NULL DEFAULT '',  -- the identity of the key or program that wrote it
  UNIQUE (collection, id)
) STRICT;
CREATE INDEX documents_by_uri ON documents (collection, uri, id);
CREATE INDEX documents_by_expiry ON documents (access, expires_at) WHERE expires_at IS NOT NULL;

-- One row for each key and value of a document's metadata.
CREATE TABLE document_tags (
  document INTEGER NOT NULL,
  tag TEXT NOT NULL,
  PRIMARY KEY (document, tag)
) STRICT, WITHOUT ROWID;

CREATE TABLE passages (
  row INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  id BLOB NOT NULL,
  document INTEGER NOT NULL,
  document_id BLOB NOT NULL,
  access INTEGER NOT NULL,
  position INTEGER NOT NULL,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  start INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  headings TEXT NOT NULL,
  speaker TEXT NOT NULL DEFAULT '',
  role TEXT NOT NULL DEFAULT '',
  at INTEGER,  -- when it was said
  session INTEGER,  -- a hash of the user, the agent and the session
  UNIQUE (collection, id)
) STRICT;
CREATE INDEX passages_of_document ON passages (document, position);
CREATE INDEX passages_by_time ON passages (collection, at) WHERE at IS NOT NULL;
CREATE INDEX passages_of_session ON passages (collection, session, position, id) WHERE session IS NOT NULL;

-- Vectors have eight bits per dimension.
CREATE TABLE passage_vectors (row INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;
CREATE TABLE entity_vectors (row INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;

-- Rows of passages and entities are allocated in blocks of one collection. The codes of a block are the bits of
-- its vectors, word by word, and `live` marks the rows that have a vector.
CREATE TABLE blocks (
  row INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  collection INTEGER NOT NULL,
  codes BLOB,
  live BLOB
) STRICT;
CREATE INDEX blocks_of_collection ON blocks (collection, kind);

-- The inverted index finds candidates, and passage_terms has the terms that BM25 scores. The index holds the rows of
-- terms instead of the terms, because a deleted term may remain as the boundary between two pages of the index.
CREATE VIRTUAL TABLE words USING fts5 (terms, content='', columnsize=0, detail=none, tokenize='ascii');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
CREATE TABLE passage_terms (
  row INTEGER PRIMARY KEY,
  length INTEGER NOT NULL,
  terms BLOB NOT NULL,
  sequence BLOB,  -- of a turn: the rows of its terms in the order of the text
  tells_time INTEGER  -- of a turn: whether it has an expression of time
) STRICT;
CREATE TABLE terms (
  row INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  term TEXT NOT NULL,
  passages INTEGER NOT NULL,
  UNIQUE (collection, term)
) STRICT;
-- The passages that have a term, for each permission.
CREATE TABLE term_counts (
  term INTEGER NOT NULL,
  access INTEGER NOT NULL,
  passages INTEGER NOT NULL,
  PRIMARY KEY (term, access)
) STRICT, WITHOUT ROWID;

CREATE TABLE entities (
  row INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  id BLOB NOT NULL,
  sense TEXT NOT NULL,
  passages INTEGER NOT NULL DEFAULT 0,
  UNIQUE (collection, id)
) STRICT;

-- The description of an entity by each document. An entity exists as long as it has a description.
CREATE TABLE profiles (
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  tie INTEGER NOT NULL,
  document INTEGER NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  description TEXT NOT NULL,
  aliases TEXT NOT NULL,
  PRIMARY KEY (entity, access, tie, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX profiles_of_document ON profiles (document);

CREATE TABLE names (
  collection INTEGER NOT NULL,
  name TEXT NOT NULL,
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  PRIMARY KEY (collection, name, entity, access)
) STRICT, WITHOUT ROWID;

-- The keys of the names of an entity (names.py). Entities that share a key may be the same.
CREATE TABLE entity_keys (
  collection INTEGER NOT NULL,
  key TEXT NOT NULL,
  access INTEGER NOT NULL,
  entity INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  PRIMARY KEY (collection, key, access, entity)
) STRICT, WITHOUT ROWID;

-- What a passage says: its mentions and facts, with the statements that assert them (waylore.store.packs), and the
-- vectors of the statements in parts of 1,000 bytes, which fill pages well. The pack is the truth; mentions, assertions and edges are indexes of all packs.
CREATE TABLE packs (
  row INTEGER PRIMARY KEY,  -- of the passage
  facts INTEGER NOT NULL,
  pack BLOB NOT NULL
) STRICT;
CREATE TABLE statement_vectors (
  row INTEGER NOT NULL,
  part INTEGER NOT NULL,
  codes BLOB NOT NULL,
  PRIMARY KEY (row, part)
) STRICT, WITHOUT ROWID;

-- The passages of an entity, best first: those about it, then those that mention it most.
CREATE TABLE mentions (
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  is_own INTEGER NOT NULL,
  count INTEGER NOT NULL,
  tie INTEGER NOT NULL,
  passage INTEGER NOT NULL,
  PRIMARY KEY (entity, access, is_own DESC, count DESC, tie, passage)
) STRICT, WITHOUT ROWID;

-- The passages that mention an entity, for each permission.
CREATE TABLE entity_counts (
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  passages INTEGER NOT NULL,
  PRIMARY KEY (entity, access)
) STRICT, WITHOUT ROWID;

-- The passages that assert a fact, the most trusted first. The key of a fact is the first half of its id; `place` is
-- that of the fact in the passage's pack. What decides whether a fact may be shown is here, so that packs are read
-- only of facts that are returned.
CREATE TABLE assertions (
  collection INTEGER NOT NULL,
  fact INTEGER NOT NULL,
  source INTEGER NOT NULL,    -- the place in SOURCES
  strength REAL NOT NULL,     -- weight x confidence
  tie INTEGER NOT NULL,
  passage INTEGER NOT NULL,
  place INTEGER NOT NULL,
  access INTEGER NOT NULL,
  status INTEGER NOT NULL,    -- the place in STATUSES
  valid_from INTEGER,
  valid_to INTEGER,
  series INTEGER NOT NULL DEFAULT 0,  -- a hash of the subject and the predicate
  began INTEGER NOT NULL DEFAULT 0,   -- valid_from, or when it was said, or when it was recorded
  PRIMARY KEY (collection, fact, source, strength DESC, tie, passage)
) STRICT, WITHOUT ROWID;
-- Few facts have an assertion that is staged or retracted. Reads of other facts need not look for one.
CREATE INDEX unconfirmed_assertions ON assertions (collection, fact) WHERE status <> 1;
-- The assertions of one subject and predicate, newest first, for each permission.
CREATE INDEX assertions_by_time ON assertions (collection, series, access, began DESC, tie, fact);

-- The facts of an entity, strongest first, for each permission and for each predicate.
CREATE TABLE edges (
  entity INTEGER NOT NULL,
  access INTEGER NOT NULL,
  strength REAL NOT NULL,
  fact INTEGER NOT NULL,
  predicate INTEGER NOT NULL,
  PRIMARY KEY (entity, access, strength DESC, fact)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_of_predicate ON edges (entity, predicate, access, strength DESC, fact);

-- How often an item was used, and when last. The rows are narrow, so that counting stays cheap.
CREATE TABLE usage (
  collection INTEGER NOT NULL,
  kind TEXT NOT NULL,
  row INTEGER NOT NULL,  -- of a passage, or the key of a fact
  access_count INTEGER NOT NULL,
  last_accessed INTEGER NOT NULL,
  PRIMARY KEY (collection, kind, row)
) STRICT, WITHOUT ROWID;

-- Vectors of the next embedding model, until all are staged (waylore reembed).
CREATE TABLE staged (
  collection INTEGER NOT NULL,
  model TEXT NOT NULL,
  kind TEXT NOT NULL,
  row INTEGER NOT NULL,    -- for a fact that of its passage
  place INTEGER NOT NULL,  -- of a fact in the pack of its passage, otherwise 0
  vector BLOB NOT NULL,
  PRIMARY KEY (collection, model, kind, row, place)
) STRICT, WITHOUT ROWID;

-- The fingerprint of each file that was read completely. An unchanged file is not read again.
CREATE TABLE files (
  collection INTEGER NOT NULL,
  uri TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  PRIMARY KEY (collection, uri)
) STRICT, WITHOUT ROWID;

-- What a request has changed, by the id of the request, so that its answer can be given again. It has ids and no content.
CREATE TABLE receipts (
  collection INTEGER NOT NULL,
  id BLOB NOT NULL,
  until INTEGER NOT NULL,
  author TEXT NOT NULL,
  documents BLOB NOT NULL,
  passages BLOB NOT NULL,
  entities BLOB NOT NULL,
  facts BLOB NOT NULL,
  missing BLOB NOT NULL,
  PRIMARY KEY (collection, id)
) STRICT;
CREATE INDEX receipts_by_end ON receipts (collection, until);

-- What was changed, by whom and when. It has ids and no content. Rows are never changed; old ones may be deleted. Each row has
-- a hash of its values and of the hash before.
CREATE TABLE audit (
  collection INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  author TEXT NOT NULL,
  request TEXT NOT NULL,
  verb TEXT NOT NULL,
  count INTEGER NOT NULL,
  documents BLOB NOT NULL,  -- the first 100 ids
  labels_before TEXT NOT NULL,
  labels_after TEXT NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (collection, number)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'rows of the audit log are never changed');
END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN old.at > (unixepoch('now') - 400 * 86400) * 1000000 BEGIN
  SELECT RAISE(ABORT, 'rows of the audit log are kept for 400 days');
END;
