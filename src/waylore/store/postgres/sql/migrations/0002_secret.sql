-- Each collection has a secret: the key of the marks around recalled texts, which no author of a text can guess. It is made
-- once and never exported.
ALTER TABLE collections ADD COLUMN secret bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
