"""Readers, one module for each format."""
