"""Importers for what other programs know, one module for each format."""
