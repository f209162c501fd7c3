"""Waylore inside other frameworks: a retriever for LangChain and one for LlamaIndex, each behind its own extra."""
