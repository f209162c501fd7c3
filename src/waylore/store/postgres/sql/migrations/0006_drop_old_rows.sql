DROP TABLE facts;
DROP TABLE supports;
DROP TABLE old_staged;
DROP INDEX mentions_of_passage;
DROP INDEX edges_of_fact;
