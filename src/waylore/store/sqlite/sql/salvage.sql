-- Put rows from the pages of a damaged file into an empty one, and read the documents from there.

-- name: salvage_no_collection
DELETE FROM collections

-- name: salvage_collections
INSERT OR IGNORE INTO collections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: salvage_documents
INSERT OR IGNORE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: salvage_passages
INSERT OR IGNORE INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: salvage_entities
INSERT OR IGNORE INTO entities VALUES (?, ?, ?, ?, ?)

-- name: salvage_packs
INSERT OR IGNORE INTO packs VALUES (?, ?, ?)

-- name: salvage_profiles
INSERT OR IGNORE INTO profiles VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: salvaged_collections
SELECT d.collection, c.name, c.documents
FROM (SELECT collection FROM documents UNION SELECT collection FROM passages UNION SELECT row FROM collections) d
LEFT JOIN collections c ON c.row = d.collection ORDER BY d.collection

-- name: salvaged_documents
SELECT d.row, d.id, d.title, d.uri, d.source, d.metadata, d.labels, d.recorded_at, d.user, d.agent, d.session, d.at,
  d.expires_at, d.author, d.digest
FROM documents d WHERE d.collection = :collection ORDER BY d.id

-- name: salvaged_orphans
SELECT DISTINCT p.document_id FROM passages p
WHERE p.collection = :collection AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.row = p.document)
