"""Importers for files of other programs, one module for each format."""
