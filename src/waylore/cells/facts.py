"""Facts across collections: each as the most trusted of all visible voices has it, wherever that voice lives.

What one collection has confirmed another may have retracted, so every fact that one tells is looked up in the
others before it counts. Where that takes some away, more are asked for: caps hold after it, not before. With
one collection nothing is looked up twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from waylore.cells import merge as merging
from waylore.cells.members import Members
from waylore.store.protocol import Store
from waylore.types.knowledge import STATUSES, Fact, Status
from waylore.types.search import Filter

Facts = Mapping[str, tuple[Fact, ...]]
Told = Sequence[tuple[str, Facts]]  # by collection


@dataclass(frozen=True, slots=True)
class Held:
    """Which facts count: by the status of their most trusted voice, when they were valid, and who asks."""

    statuses: Sequence[Status]
    as_of: datetime | None
    where: Filter


def facts(members: Members, ids: Sequence[str], held: Held) -> Mapping[str, Fact]:
    """Facts by identity."""
    trusted = _trusted(members, {}, ids, held)
    return {id_: fact for id_, fact in trusted.items() if fact.status in held.statuses}


def facts_of_entities(
    members: Members, entities: Sequence[str], per_entity: int, predicates: Sequence[str], held: Held
) -> Facts:
    """Facts with one of these at either end, strongest first."""

    def of_store(store: Store, most: int) -> Facts:
        return store.facts_of_entities(
            entities,
            per_entity=most,
            predicates=predicates,
            statuses=held.statuses,
            as_of=held.as_of,
            where=held.where,
        )

    def merged(told: Told) -> Facts:
        known = {name: merging.by_identity(found) for name, found in told}
        every = list(dict.fromkeys(id_ for found in known.values() for id_ in found))
        trusted = _trusted(members, known, every, held)
        return merging.facts_of_entities([found for _, found in told], trusted, statuses=held.statuses)

    return _enough(members, of_store, merged, per_entity, entities)


def facts_of_passages(members: Members, passages: Sequence[str], per_passage: int, held: Held) -> Facts:
    """Facts that these passages state, strongest first, each as the passage itself states it."""
    statuses = held.statuses if members.is_one else STATUSES

    def of_store(store: Store, most: int) -> Facts:
        return store.facts_of_passages(
            passages, per_passage=most, statuses=statuses, as_of=held.as_of, where=held.where
        )

    def merged(told: Told) -> Facts:
        answers = [found for _, found in told]
        if members.is_one:
            return answers[0]
        every = list(dict.fromkeys(id_ for found in answers for id_ in merging.by_identity(found)))
        trusted = _trusted(members, {}, every, held)
        return merging.facts_of_passages(answers, trusted, statuses=held.statuses)

    return _enough(members, of_store, merged, per_passage, passages)


def _trusted(
    members: Members, known: Mapping[str, Mapping[str, Fact]], ids: Sequence[str], held: Held
) -> dict[str, Fact]:
    """Facts of any status as their most trusted voice has them; a collection is not asked for what it told."""
    if not ids or (members.is_one and known):
        return merging.voices(known.values())
    rest = members.ask(
        lambda placed, store: store.facts(
            [id_ for id_ in ids if id_ not in known.get(placed.collection, {})],
            statuses=STATUSES,
            as_of=held.as_of,
            where=held.where,
        )
    )
    return merging.voices([*known.values(), *rest])


def _enough(
    members: Members,
    of_store: Callable[[Store, int], Facts],
    merged: Callable[[Told], Facts],
    wanted: int,
    asked: Sequence[str],
) -> Facts:
    """So many of each, if there are: where other voices took some away, more are asked for."""
    most = wanted
    while True:
        told = members.ask(lambda placed, store, most=most: (placed.collection, of_store(store, most)))  # type: ignore[misc]
        kept = merged(told)
        if not merging.is_short(kept, [found for _, found in told], wanted=wanted, asked=most):
            return merging.cut(kept, wanted, asked)
        most *= 2
