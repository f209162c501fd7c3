"""Thirty pages with labelled names and relations, of kinds that other labelled folders lack, and their score."""
