"""Retrievers for other frameworks: one for LangChain and one for LlamaIndex, each behind its own extra."""
