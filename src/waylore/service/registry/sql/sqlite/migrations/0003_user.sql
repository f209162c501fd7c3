-- The user that a key reads and writes for. It is empty for a key without a user, as all keys of the release before are.
ALTER TABLE registry_keys ADD COLUMN "user" TEXT NOT NULL DEFAULT '';
