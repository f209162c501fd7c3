"""Many databases as one store. Loaded only if a URL asks for it."""
