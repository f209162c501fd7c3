"""Index texts, files, imports and facts: build indexed documents, embed them and write them to the store."""
