-- The weights of the graph search that `waylore tune` fitted to the collection, as JSON; empty for the shipped ones.
ALTER TABLE collections ADD COLUMN weights TEXT NOT NULL DEFAULT '';
