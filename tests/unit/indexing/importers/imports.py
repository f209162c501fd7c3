"""What the tests of importers share: a file is written, imported without a store, and looked at."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from waylore.indexing.blocks import Limits, Refusal
from waylore.indexing.importers.dispatch import LIMITS, read
from waylore.types.knowledge import Contribution, Document

FRAME = Document("", metadata={"by": "test"}, labels=frozenset({"team"}))


def lines(*values: Any) -> str:
    """Values as lines of JSON; a string stands for itself."""
    return "".join((v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) + "\n" for v in values)


def imported(
    path: Path, content: str | bytes | None = None, format_: str = "auto", *, limits: Limits = LIMITS
) -> tuple[list[Contribution], dict[str, str]]:
    """What a file says, and the reasons of refusals by place."""
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    _, found = read(path, format_, FRAME, limits=limits)
    every = list(found)
    refusals = {f.uri.removeprefix(path.as_posix()): f.reason for f in every if isinstance(f, Refusal)}
    return [f for f in every if isinstance(f, Contribution)], refusals


def facts(contributions: Iterable[Contribution]) -> list[str]:
    """Every fact with the text that states it."""
    texts = {p.id: p.text for c in contributions for p in c.passages}
    return [f"{f} | {texts[f.passage_id]}" for c in contributions for f in c.facts]


def texts(contributions: Iterable[Contribution]) -> list[tuple[str, list[str]]]:
    """Every document's title and the texts of its passages."""
    return [(c.document.title, [p.text for p in c.passages]) for c in contributions]


def own(contribution: Contribution) -> set[str]:
    """What a document is about: the names that all of its passages have as their own."""
    names = {e.id: e.name for e in contribution.entities}
    passages = len(contribution.passages)
    mentions = [m.entity_id for m in contribution.mentions if m.is_own]
    return {name for id_, name in names.items() if mentions.count(id_) == passages}
