-- What a request has changed, by the id of the request, so that its answer can be given again. It has ids and no content.
CREATE TABLE receipts (
  collection int8 NOT NULL,
  id uuid NOT NULL,
  until int8 NOT NULL,
  author text NOT NULL,
  documents bytea NOT NULL,
  passages bytea NOT NULL,
  entities bytea NOT NULL,
  facts bytea NOT NULL,
  missing bytea NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE INDEX receipts_by_end ON receipts (collection, until);
ALTER TABLE receipts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON receipts USING (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8))
  WITH CHECK (collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8));
DO $$
BEGIN
  IF to_regrole('waylore_app') IS NOT NULL THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON receipts TO waylore_app;
  END IF;
END
$$;
