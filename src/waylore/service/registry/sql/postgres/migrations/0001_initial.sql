-- A service's registry, in the schema waylore_service. Times are in seconds since 1970.

-- One row: the secret with which all processes of the service sign cursors. Two random UUIDs have 244 random bits.
CREATE TABLE waylore_service.registry (
  one int2 PRIMARY KEY DEFAULT 1 CHECK (one = 1),
  secret bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
);
INSERT INTO waylore_service.registry DEFAULT VALUES;

CREATE TABLE waylore_service.keys (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  hash text NOT NULL,         -- SHA-256 of the secret, in hexadecimal digits
  collections text NOT NULL,  -- one per line, or *
  scope text NOT NULL,
  labels text,                -- one per line; NULL sees everything
  created float8 NOT NULL,
  expires float8,
  revoked float8,
  used float8,
  former text NOT NULL,       -- the hash before the last rotation
  former_until float8
);
CREATE INDEX keys_created ON waylore_service.keys (created, id);

CREATE TABLE waylore_service.collections (
  name text COLLATE "C" PRIMARY KEY,
  description text NOT NULL,
  created float8 NOT NULL
);

CREATE TABLE waylore_service.answers (
  caller text NOT NULL,
  word text NOT NULL,
  digest text NOT NULL,
  status int4 NOT NULL,       -- 0 while the request is running
  body bytea NOT NULL,
  media_type text NOT NULL,
  until float8 NOT NULL,
  PRIMARY KEY (caller, word)
);
CREATE INDEX answers_until ON waylore_service.answers (until);
