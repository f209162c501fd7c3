"""Measure and fit the recipe `conversation` on LoCoMo and LongMemEval."""
