"""Helpers of the importers' tests: write a file, import it without a store, and list the result."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from waylore.indexing.blocks import Limits, Skipped
from waylore.indexing.importers.dispatch import IMPORT_LIMITS, read
from waylore.types.knowledge import Document, IndexedDocument

FRAME = Document("", metadata={"by": "test"}, labels=frozenset({"team"}))


def lines(*values: Any) -> str:
    """Return values as lines of JSON; a string stands for itself."""
    return "".join((v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) + "\n" for v in values)


def import_content(
    path: Path, content: str | bytes | None = None, format_: str = "auto", *, limits: Limits = IMPORT_LIMITS
) -> tuple[list[IndexedDocument], dict[str, str]]:
    """Return the documents of a file, and the reasons for skipped rows by place."""
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    _, found = read(path, format_, FRAME, limits=limits)
    every = list(found)
    skipped = {f.uri.removeprefix(path.as_posix()): f.reason for f in every if isinstance(f, Skipped)}
    return [f for f in every if isinstance(f, IndexedDocument)], skipped


def list_facts(documents: Iterable[IndexedDocument]) -> list[str]:
    """Return every fact with the text that states it."""
    texts = {p.id: p.text for c in documents for p in c.passages}
    return [f"{f} | {texts[f.passage_id]}" for c in documents for f in c.facts]


def list_texts(documents: Iterable[IndexedDocument]) -> list[tuple[str, list[str]]]:
    """Return the title of every document and the texts of its passages."""
    return [(c.document.title, [p.text for p in c.passages]) for c in documents]


def get_subjects(document: IndexedDocument) -> set[str]:
    """Return the names that all passages of a document mention as their own."""
    names = {e.id: e.name for e in document.entities}
    passages = len(document.passages)
    mentions = [m.entity_id for m in document.mentions if m.is_own]
    return {name for id_, name in names.items() if mentions.count(id_) == passages}
