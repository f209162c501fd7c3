-- Each collection has a secret: the key of the marks around recalled texts, which no author of a text can guess. It is made
-- once and never exported.
ALTER TABLE collections ADD COLUMN secret BLOB;
UPDATE collections SET secret = randomblob(32);
