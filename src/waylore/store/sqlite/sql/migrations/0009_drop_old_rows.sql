DROP TABLE old_mentions;
DROP TABLE old_facts;
DROP TABLE old_supports;
DROP TABLE old_usage;
DROP TABLE old_staged;
