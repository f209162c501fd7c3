"""Measure how much of an answer is in the text that `context` returns, by budget, layout and method."""
