-- A document may belong to a user, an agent and a session, and may have the time of its event; a turn of a conversation has
-- a speaker, a role and a time. A permission is a set of labels and a user.
ALTER TABLE accesses ADD COLUMN "user" text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN turns int8 NOT NULL DEFAULT 0;
CREATE INDEX accesses_of_user ON accesses (collection, "user");
ALTER TABLE documents ADD COLUMN "user" text NOT NULL DEFAULT '', ADD COLUMN agent text NOT NULL DEFAULT '',
  ADD COLUMN session text NOT NULL DEFAULT '', ADD COLUMN at int8;
ALTER TABLE passages ADD COLUMN speaker text NOT NULL DEFAULT '', ADD COLUMN role text NOT NULL DEFAULT '', ADD COLUMN at int8,
  ADD COLUMN session int8;
CREATE INDEX passages_by_time ON passages (collection, at) WHERE at IS NOT NULL;
CREATE INDEX passages_of_session ON passages (collection, session, position, id) WHERE session IS NOT NULL;
CREATE INDEX passage_vectors_of_access ON passage_vectors (collection, access);
ALTER TABLE passage_terms ADD COLUMN sequence bytea, ADD COLUMN tells_time bool;

-- The assertions of one subject and predicate are read newest first. The store fills both columns from the packs.
ALTER TABLE assertions ADD COLUMN series int8 NOT NULL DEFAULT 0, ADD COLUMN began int8 NOT NULL DEFAULT 0;
CREATE INDEX assertions_by_time ON assertions (collection, series, access, began DESC, passage, fact);
