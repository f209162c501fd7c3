"""Measure how well recipes answer the questions of benchmark sets and of folders of files."""
