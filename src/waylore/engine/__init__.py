"""The facade `Waylore`: one short method for each verb."""
