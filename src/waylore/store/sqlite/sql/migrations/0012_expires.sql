-- A document may expire. The index finds when the first document of a permission expires, and has documents that do alone.
ALTER TABLE documents ADD COLUMN expires_at INTEGER;
CREATE INDEX documents_by_expiry ON documents (access, expires_at) WHERE expires_at IS NOT NULL;
