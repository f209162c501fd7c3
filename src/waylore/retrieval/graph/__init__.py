"""Search by the graph: link entities, walk facts, rank what was reached, say how."""
