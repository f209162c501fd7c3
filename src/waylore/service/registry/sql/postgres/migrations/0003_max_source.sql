-- The most trusted source that writes of a key may have. A key with labels writes as a conversation, unless it was created
-- with another source; any other key writes as what it names. The default is the least trusted source, for processes of the
-- release before, which do not know this column.
ALTER TABLE waylore_service.keys ADD COLUMN max_source text NOT NULL DEFAULT 'conversation';
UPDATE waylore_service.keys SET max_source = 'user_edit' WHERE labels IS NULL;
