"""The site of the docs: build it, and check what was built."""
