-- The user that a key reads and writes for. It is empty for a key without a user, as all keys of the release before are.
ALTER TABLE waylore_service.keys ADD COLUMN "user" text NOT NULL DEFAULT '';
