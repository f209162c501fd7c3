"""Measure search in folders of files, with questions whose answers are passages of the files."""
