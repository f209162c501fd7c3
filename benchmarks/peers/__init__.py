"""Run other retrieval systems beside Waylore: the same passages, vectors and triples, one command for each.

`prepare` writes a set, `run` lets one peer index it and answer its questions, `faults` kills and deletes, `table` scores.
"""
