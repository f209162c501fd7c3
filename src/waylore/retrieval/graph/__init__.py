"""Search by the graph: link entities, walk facts, rank the passages they lead to, and explain the paths."""
