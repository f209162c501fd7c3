"""Carry stores over from earlier layouts. Each step has a module for each engine, which runs once."""
