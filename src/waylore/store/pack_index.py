"""List the index rows of packs: mentions, assertions and edges, the same on every engine.

These rows lead from an entity or a fact to packs. Pairs have no rows: they are found through the mentions of an entity.
The rows are computed from the packs alone, so inserting, deleting, verifying and carrying over agree on them. Entities,
facts and passages have the keys of the engine: numbers of rows or ids. This module knows no SQL.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from waylore.store import rows as columns
from waylore.store.packing import split_ids
from waylore.store.packs import ALWAYS, IS_OWN, Packs

Row: TypeAlias = tuple[Any, ...]
Ends: TypeAlias = Mapping[Any, tuple[int, tuple[Any, ...]]]
Strengths: TypeAlias = dict[tuple[Any, int], float]  # by fact and permission
MISSING = {
    "mention": "mentions of packs are not found by their entity",
    "assertion": "facts of packs are not found by their id",
    "edge": "facts of packs are not found by their entity",
    "entity": "entities of packs are missing",
    "fact": "facts are missing in their packs",
}


@dataclass(frozen=True, slots=True)
class PackIndex:
    """The rows of some packs.

    A mention is the entity, the permission, whether it is the passage's own, the count, and the key of the passage. An
    assertion is the fact, its source, its strength, the key of the passage, the place in the pack, the permission, the
    status, the period, the key of its subject and predicate, and when it began. `ends` has, by fact, the key of its
    predicate and the entities that it connects. `stated` counts facts and pairs by permission.
    """

    mentions: list[Row]
    assertions: list[Row]
    ends: Ends
    stated: Counter[int]

    @property
    def facts(self) -> list[Any]:
        """The keys of all facts, each once."""
        return sorted(self.ends)


def index_packs(
    packs: Packs,
    accesses: Sequence[int],
    passages: Sequence[Row],
    facts: Sequence[Any],
    entities: Sequence[Any],
    said: Sequence[int],
) -> PackIndex:
    """Return the rows of packs, given with the permissions and keys of their passages, and the keys of facts.

    `entities` has a key for each place of an entity. `said` is when each passage was said, else recorded; deleting
    needs no times.
    """
    return PackIndex(
        _list_mentions(packs, accesses, passages, entities),
        _list_assertions(packs, accesses, passages, facts, said or [0] * len(packs)),
        _map_ends(packs, facts, entities),
        Counter(accesses[of] for of in packs.fact_of.tolist()),
    )


def _list_mentions(
    packs: Packs, accesses: Sequence[int], passages: Sequence[Row], entities: Sequence[Any]
) -> list[Row]:
    ranks = packs.mentions["rank"].tolist()
    places = zip(packs.entity_of.tolist(), ranks, packs.mention_of.tolist(), strict=True)
    return [
        (entities[entity], accesses[of], int(rank >= IS_OWN), rank & (IS_OWN - 1), *passages[of])
        for entity, rank, of in places
    ]


def _list_assertions(
    packs: Packs, accesses: Sequence[int], passages: Sequence[Row], facts: Sequence[Any], said: Sequence[int]
) -> list[Row]:
    trust = packs.trust
    places = zip(
        facts[: packs.typed],
        packs.sources.tolist(),
        (trust["weight"] * trust["confidence"]).tolist(),
        packs.fact_of.tolist(),
        packs.place_of.tolist(),
        packs.facts["status"].tolist(),
        trust["valid_from"].tolist(),
        trust["valid_to"].tolist(),
        _list_series(packs),
        strict=False,
    )
    return [
        (
            *(fact, source, strength, *passages[of], place, accesses[of], status),
            None if since == ALWAYS.min else since,
            None if until == ALWAYS.max else until,
            series,
            said[of] if since == ALWAYS.min else since,
        )
        for fact, source, strength, of, place, status, since, until, series in places
    ]


def _list_series(packs: Packs) -> list[int]:
    """Return the key of the subject and the predicate of each fact, without pairs."""
    subjects = split_ids(packs.entities[packs.subject_of[: packs.typed]].tobytes())
    words = packs.facts["predicate_word"].tolist()
    named = (packs.decode_words(of)[word] for of, word in zip(packs.fact_of.tolist(), words, strict=True))
    return [columns.compute_series_key(*pair) for pair in zip(subjects, named, strict=False)]


def _map_ends(packs: Packs, facts: Sequence[Any], entities: Sequence[Any]) -> Ends:
    words = [packs.decode_words(place) for place in range(len(packs))]
    places = zip(
        facts[: packs.typed],
        packs.subject_of.tolist(),
        packs.object_of.tolist(),
        packs.facts["predicate_word"].tolist(),
        packs.fact_of.tolist(),
        strict=False,
    )
    return {
        fact: (
            columns.compute_predicate_key(words[of][word]),
            (entities[subject], entities[object_]) if object_ else (entities[subject],),
        )
        for fact, subject, object_, word, of in places
    }


def strengthen(strengths: Strengths, found: Iterator[tuple[Any, int, float]]) -> Strengths:
    """Return the strength of each fact and permission after more assertions: the greatest of all."""
    after = dict(strengths)
    for fact, access, strength in found:
        after[fact, access] = max(after.get((fact, access), strength), strength)
    return after


def list_edges(ends: Ends, strengths: Strengths, other: Strengths) -> list[Row]:
    """Return the edges that facts have with the first strengths and not with the second.

    An edge is the entity, the permission, the strength, the fact, and the key of the predicate.
    """
    return [
        (entity, access, strength, fact, ends[fact][0])
        for (fact, access), strength in strengths.items()
        if other.get((fact, access)) != strength
        for entity in ends[fact][1]
    ]


def describe_differences(wanted: Counter[str], found: Counter[str], stored: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each kind of rows that is missing for a pack, or stored without a pack."""
    missing = wanted - found
    for kind, problem in MISSING.items():
        if missing[kind]:
            yield f"{missing[kind]} {problem}"
    for kind, count in stored.items():
        if count > found[kind]:
            yield f"{count - found[kind]} {kind}s are in no pack"
