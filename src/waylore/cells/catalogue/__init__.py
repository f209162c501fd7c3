"""The catalogue: the list of cells, and the cell of each collection."""
