"""Retrievers for other people's frameworks. A room that waits."""
