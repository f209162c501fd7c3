"""How a question is answered: one stage, one file, one function. Reads, never writes."""
