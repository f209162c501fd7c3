"""Convert rows and facts of earlier versions.

Rules wrote `X mentions Y` or `X links_to Y` for two names in one statement. Such a fact is a pair today.
"""

from collections.abc import Iterable, Sequence

from waylore.store import rows as columns
from waylore.store.packing import EncodedParts, make_parts, pack_parts
from waylore.store.rows import Row
from waylore.types.knowledge import Fact, Passage, make_pair

UNTYPED = ("mentions", "links_to")


def convert_untyped(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts with pairs in place of untyped ones, each once in a passage. Retracted ones are dropped."""
    converted = (_to_pair(fact) if _is_untyped(fact) else fact for fact in facts if not _is_retracted(fact))
    return list({(fact.id, fact.passage_id): fact for fact in converted}.values())


def _is_untyped(fact: Fact) -> bool:
    return fact.predicate in UNTYPED and bool(fact.object_id)


def _is_retracted(fact: Fact) -> bool:
    return _is_untyped(fact) and fact.status == "retracted"


def _to_pair(fact: Fact) -> Fact:
    return make_pair(fact, (fact.subject_id, fact.object_id), fact.passage_id, fact.recorded_at, fact.vector)


def pack_rows(passage: Passage, mentions: Sequence[Row], facts: Sequence[Row], dimension: int | None) -> EncodedParts:
    """Encode the rows that a passage had before packs: of mentions, and of facts with their assertions."""
    made = convert_untyped(columns.to_facts([(b"", *row) for row in facts]))
    return pack_parts(make_parts(passage, [columns.to_mention(row) for row in mentions], made), dimension)
