"""Answer questions. Each stage of a search is one function; retrieval reads the store and never writes."""
