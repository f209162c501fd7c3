"""Retrievers for LangChain and LlamaIndex, and the methods of mem0 and Zep for programs that switch."""
