"""Backups: a folder with the content of a store at one moment, and a manifest of it."""
