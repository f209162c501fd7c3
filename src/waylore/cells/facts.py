"""Read facts across collections, each from its most trusted assertion in all collections.

A fact that one collection has confirmed may be retracted in another. So each fact that a collection returns is
also read from the other collections before it counts. If that removes facts, more are read, because limits
apply to the merged answer. A single collection is read only once.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from waylore.cells.catalogue.protocol import CollectionPlacement
from waylore.cells.members import Members
from waylore.cells.merge import (
    Facts,
    cap,
    index_by_id,
    is_short,
    merge_facts_of_entities,
    merge_facts_of_passages,
    pick_most_trusted,
    take_uses,
)
from waylore.store.packing import cap_assertions
from waylore.store.protocol import Store
from waylore.types.columns import FactColumns, to_fact_columns
from waylore.types.knowledge import LIVE, STATUSES, Fact
from waylore.types.search import FactFilter, Filter

FactsByCollection = Sequence[tuple[str, FactColumns]]  # answers by the name of the collection


def read_facts(members: Members, ids: Sequence[str], fact_filter: FactFilter) -> Mapping[str, Fact]:
    """Return facts by id."""
    trusted = _read_most_trusted(members, {}, ids, fact_filter)
    return {id_: fact for id_, fact in trusted.items() if fact.status in fact_filter.statuses}


def read_facts_of_entities(
    members: Members,
    entities: Sequence[str],
    per_entity: int,
    predicates: Sequence[str],
    fact_filter: FactFilter,
) -> FactColumns:
    """Return facts by subject or object, strongest first."""

    def read(store: Store, limit: int) -> FactColumns:
        return store.facts_of_entities(
            entities,
            per_entity=limit,
            predicates=predicates,
            statuses=fact_filter.statuses,
            as_of=fact_filter.as_of,
            where=fact_filter.where,
        )

    def merge(answers: FactsByCollection) -> Facts:
        known = {name: index_by_id(facts) for name, facts in answers}
        ids = list(dict.fromkeys(id_ for facts in known.values() for id_ in facts))
        trusted = _read_most_trusted(members, known, ids, fact_filter)
        return merge_facts_of_entities([facts for _, facts in answers], trusted, statuses=fact_filter.statuses)

    return _read_until_enough(members, read, merge, per_entity, entities)


def read_assertions(
    members: Members,
    entities: Sequence[str],
    predicates: Sequence[str],
    newest: int,
    until: datetime | None,
    where: Filter,
) -> FactColumns:
    """Return the newest assertions of each subject and predicate, without facts that a collection retracts."""
    options: dict[str, Any] = {"predicates": predicates, "until": until, "where": where}
    limit = newest
    while True:
        read = partial(_read_newest, entities, {**options, "newest": limit})
        answers = members.read_all(read)
        if members.is_one:
            return answers[0]
        merged = _merge_assertions(members, answers, newest, where)
        counts, of_one = _count_series(merged), [_count_series(answer) for answer in answers]
        if not any(count >= limit and counts[key] < newest for some in of_one for key, count in some.items()):
            return merged
        limit *= 2


def _read_newest(
    entities: Sequence[str], options: Mapping[str, Any], _: CollectionPlacement, store: Store
) -> FactColumns:
    return store.assertions_of_entities(entities, **options)


def _merge_assertions(members: Members, answers: Sequence[FactColumns], newest: int, where: Filter) -> FactColumns:
    stated = {(fact.id, fact.passage_id): fact for answer in answers for facts in answer.values() for fact in facts}
    ids = list(dict.fromkeys(id_ for id_, _ in stated))
    trusted = _read_most_trusted(members, {}, ids, FactFilter(where=where))
    live = {id_ for id_, fact in trusted.items() if fact.status in LIVE}
    kept = [take_uses(fact, trusted[id_]) for (id_, _), fact in stated.items() if id_ in live]
    return cap_assertions(kept, newest)


def _count_series(answer: FactColumns) -> Counter[tuple[str, str]]:
    return Counter(fact.series for facts in answer.values() for fact in facts)


def read_facts_of_passages(
    members: Members, passages: Sequence[str], per_passage: int, fact_filter: FactFilter
) -> FactColumns:
    """Return the facts and pairs of passages, strongest first, each as its passage states it."""
    statuses = fact_filter.statuses if members.is_one else STATUSES

    def read(store: Store, limit: int) -> FactColumns:
        return store.facts_of_passages(
            passages, per_passage=limit, statuses=statuses, as_of=fact_filter.as_of, where=fact_filter.where
        )

    def merge(answers: FactsByCollection) -> Facts:
        of_passage = [facts for _, facts in answers]
        ids = list(dict.fromkeys(id_ for facts in of_passage for id_ in index_by_id(facts)))
        trusted = _read_most_trusted(members, {}, ids, fact_filter)
        return merge_facts_of_passages(of_passage, trusted, statuses=fact_filter.statuses)

    return _read_until_enough(members, read, merge, per_passage, passages)


def _read_most_trusted(
    members: Members,
    known: Mapping[str, Mapping[str, Fact]],
    ids: Sequence[str],
    fact_filter: FactFilter,
) -> dict[str, Fact]:
    """Return facts of any status as their most trusted assertions state them.

    `known` has the facts that were already read from each collection; they are not read again.
    """
    if not ids:
        return pick_most_trusted(known.values())
    others = members.read_all(
        lambda placement, store: store.facts(
            [id_ for id_ in ids if id_ not in known.get(placement.collection, {})],
            statuses=STATUSES,
            as_of=fact_filter.as_of,
            where=fact_filter.where,
        )
    )
    return pick_most_trusted([*known.values(), *others])


def _read_with_name(
    read: Callable[[Store, int], FactColumns], limit: int, placement: CollectionPlacement, store: Store
) -> tuple[str, FactColumns]:
    return placement.collection, read(store, limit)


def _read_until_enough(
    members: Members,
    read: Callable[[Store, int], FactColumns],
    merge: Callable[[FactsByCollection], Facts],
    wanted: int,
    ids: Sequence[str],
) -> FactColumns:
    """Return `wanted` facts of each id if they exist. Double the limit while merging leaves too few."""
    limit = wanted
    while True:
        answers = members.read_all(partial(_read_with_name, read, limit))
        if members.is_one:
            return answers[0][1]
        merged = merge(answers)
        if not is_short(merged, [facts for _, facts in answers], wanted=wanted, requested=limit):
            return to_fact_columns(cap(merged, wanted, ids))
        limit *= 2
