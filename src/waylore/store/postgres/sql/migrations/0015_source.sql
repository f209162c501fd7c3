-- A document has one of four sources; another one made every search that found it fail. Versions before the check of
-- `Waylore.add` could store another: such a document becomes one of the source 'system'. Its digest stays, so
-- `waylore doctor --deep` names it, and adding it again replaces it.
ALTER TABLE documents NO FORCE ROW LEVEL SECURITY;  -- which shows its owner one collection at a time
UPDATE documents SET source = 'system' WHERE source NOT IN ('user_edit', 'file', 'system', 'conversation');
ALTER TABLE documents FORCE ROW LEVEL SECURITY;
ALTER TABLE documents ADD CHECK (source IN ('user_edit', 'file', 'system', 'conversation'));
