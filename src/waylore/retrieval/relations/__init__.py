"""Answer questions about the graph completely: related facts, connections of two things, and lists of entities.

Nothing is ranked by relevance here. Every read has a bound, and an answer says whether a bound cut it.
"""
