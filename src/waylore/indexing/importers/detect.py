"""Detect the format of a folder by its tables, and of a file by its first typical row."""

from itertools import islice
from typing import Any

from waylore.indexing.blocks import ReadError, Source
from waylore.indexing.exports import HEADER_FIELDS
from waylore.indexing.importers.graphrag import find_tables
from waylore.indexing.importers.lightrag import TABLES
from waylore.indexing.importers.mcp_memory import KINDS
from waylore.indexing.importers.mem0 import is_mem0
from waylore.indexing.importers.research import is_finding
from waylore.indexing.importers.rows import ImportRow, read_json_rows
from waylore.indexing.importers.triples import PREDICATE, SUBJECT
from waylore.indexing.importers.zep import is_zep

SAMPLED_ROWS = 100  # rows that are read to detect the format


def detect_format(source: Source) -> str:
    """Return the format of a folder or file; an empty string if none is detected."""
    if source.path.is_dir():
        return "graphrag" if find_tables(source.path) else ""
    rows = islice(read_json_rows(source), SAMPLED_ROWS)
    detected = (_detect_row_format(row.value) for row in rows if isinstance(row, ImportRow))
    return next(filter(None, detected), "")


def _detect_row_format(value: Any) -> str:
    """Return the format for which a row is typical, or an empty string."""
    if isinstance(value, list):
        return "triples" if len(value) == 3 else ""
    if not isinstance(value, dict):
        return ""
    if any(field in value for field in HEADER_FIELDS):
        raise ReadError("it is a Waylore export: import it with format='waylore'")
    if value.get("type") in KINDS and ("name" in value or "from" in value):
        return "mcp-memory"
    if not value.keys().isdisjoint(SUBJECT) and not value.keys().isdisjoint(PREDICATE):
        return "triples"
    if any(isinstance(value.get(table), list) for table in TABLES):
        return "lightrag"
    tests = {"mem0": is_mem0, "zep": is_zep, "research": is_finding}
    return next((name for name, test in tests.items() if test(value)), "")
