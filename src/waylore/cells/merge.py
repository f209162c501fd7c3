"""Merge the answers of several collections into the answer of one store with all of them.

Rankings are merged by score and id. If two collections have an item with the same id, it is returned once: the first
copy of a document or passage, the most trusted assertion of a fact, and all descriptions of an entity together,
beginning with the collection that mentions it most. Keyword scores are computed in each collection from its own term
frequencies, so they equal those of one store only if a term is equally common everywhere. This module calls no store.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from waylore.store.packing import cap_pairs
from waylore.store.receipts import KINDS
from waylore.store.rows import group_pairs, sort_by_strength, sort_mentions
from waylore.types.columns import FactColumns, MentionColumns, to_fact_columns, to_mention_columns
from waylore.types.knowledge import SOURCES, Document, Entity, Fact, IndexedDocument, Mention, Status
from waylore.types.results import DayCounts, Receipt, Statistics, UserCounts
from waylore.types.search import Ranking, Scored, TermCounts

T = TypeVar("T")
Facts = Mapping[str, tuple[Fact, ...]]  # keys are ids of entities or passages


def merge_rankings(answers: Sequence[Ranking], *, top_k: int) -> Ranking:
    """Return the best `top_k` by score and id. An item of several rankings counts once, with its best score."""
    best = take_best([{scored.id: scored.score for scored in ranking} for ranking in answers])
    order = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Scored(id_, score) for id_, score in order[:top_k])


def take_first(answers: Sequence[Mapping[str, T]]) -> dict[str, T]:
    """Return all items by id, each from the first answer that has it."""
    return {id_: value for answer in reversed(answers) for id_, value in answer.items()}


def take_best(answers: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the best score of each id, as `merge_rankings` does."""
    best: dict[str, float] = {}
    for id_, score in (item for answer in answers for item in answer.items()):
        best[id_] = max(best.get(id_, score), score)
    return best


def add_term_counts(answers: Sequence[TermCounts]) -> TermCounts:
    """Return the sums of all counts."""
    counts: Counter[str] = Counter()
    for answer in answers:
        counts.update(answer.counts)
    return TermCounts(sum(answer.passages for answer in answers), dict(counts))


def merge_documents(answers: Sequence[Sequence[Document]], *, limit: int) -> tuple[Document, ...]:
    """Return the first `limit` documents by URI and id, each once."""
    by_id = take_first([{d.id: d for d in answer} for answer in answers])
    return tuple(sorted(by_id.values(), key=lambda d: (d.uri, d.id))[:limit])


def merge_by_id(answers: Sequence[Sequence[Document]], *, limit: int) -> tuple[Document, ...]:
    """Return the first `limit` documents by id, each once."""
    by_id = take_first([{d.id: d for d in answer} for answer in answers])
    return tuple(by_id[id_] for id_ in sorted(by_id)[:limit])


def merge_users(answers: Sequence[Sequence[UserCounts]], *, limit: int) -> tuple[UserCounts, ...]:
    """Return the first `limit` users by name, with the sums of their counts."""
    of_user = group_pairs((each.user, each) for answer in answers for each in answer)
    return tuple(
        UserCounts(user, sum(each.documents for each in of_user[user]), sum(each.passages for each in of_user[user]))
        for user in sorted(of_user)[:limit]
    )


def merge_growth(answers: Sequence[Sequence[DayCounts]]) -> tuple[DayCounts, ...]:
    """Return the sums of the counts by day. A document of several collections counts once for each."""
    of_day = group_pairs((each.day, each) for answer in answers for each in answer)
    return tuple(
        DayCounts(day, sum(each.documents for each in of_day[day]), sum(each.passages for each in of_day[day]))
        for day in sorted(of_day)
    )


def merge_exports(streams: Sequence[Iterator[IndexedDocument]]) -> Iterator[IndexedDocument]:
    """Yield every document of sorted streams once, by id."""
    last = ""
    for indexed in heapq.merge(*streams, key=lambda c: c.document.id):
        if indexed.document.id != last:
            yield indexed
        last = indexed.document.id


def merge_ids(answers: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, tuple[str, ...]]:
    """Return the ids of each key, sorted, each once."""
    merged: dict[str, set[str]] = defaultdict(set)
    for key, ids in (item for answer in answers for item in answer.items()):
        merged[key].update(ids)
    return {key: tuple(sorted(ids)) for key, ids in merged.items()}


def merge_statistics(answers: Sequence[Statistics]) -> Statistics:
    """Return sums. An item of several collections counts once for each. All different models are named.

    Weights are returned only if all collections have the same.
    """
    filled = [answer for answer in answers if answer.documents] or answers[:1]
    models = sorted({answer.model or "no model" for answer in filled})
    dimensions = {answer.dimension for answer in filled}
    return Statistics(
        documents=sum(a.documents for a in answers),
        passages=sum(a.passages for a in answers),
        entities=sum(a.entities for a in answers),
        facts=sum(a.facts for a in answers),
        mentions=sum(a.mentions for a in answers),
        model=filled[0].model if len(models) == 1 else " and ".join(models) or None,
        dimension=dimensions.pop() if len(dimensions) == 1 else None,
        version=sum(a.version for a in answers),
        weights=filled[0].weights if len({answer.weights for answer in filled}) == 1 else "",
    )


def merge_receipts(one: Receipt, other: Receipt) -> Receipt:
    """Return a receipt of all items that were removed in two cells."""
    ids = {kind: tuple(sorted({*getattr(one, kind), *getattr(other, kind)})) for kind in KINDS}
    return Receipt(**ids, id=one.id or other.id, unconfirmed=one.unconfirmed + other.unconfirmed)


# -- entities ------------------------------------------------------------------------------------------


def merge_entities(answers: Sequence[Mapping[str, Entity]]) -> dict[str, Entity]:
    """Return each entity once, combined from the descriptions of all collections."""
    copies = group_pairs(item for answer in answers for item in answer.items())
    return {id_: same[0] if len(same) == 1 else _combine(same) for id_, same in copies.items()}


def _combine(copies: Sequence[Entity]) -> Entity:
    """Combine the copies of one entity, beginning with the one that has the most passages."""
    ordered = sorted(copies, key=lambda e: -e.passages)
    names: Counter[str] = Counter()
    for entity in ordered:
        names[entity.name] += max(entity.passages, 1)
    name = min(names, key=lambda n: (-names[n], n))
    aliases = dict.fromkeys(a for e in ordered for a in (e.name, *e.aliases) if a != name)
    return replace(
        ordered[0],
        name=name,
        type=next((e.type for e in ordered if e.type), ""),
        description=" ".join(_drop_contained(e.description for e in ordered)),
        aliases=tuple(aliases),
        passages=sum(e.passages for e in ordered),
        vector=next((e.vector for e in ordered if e.vector is not None), None),
    )


def _drop_contained(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text once, without texts that are contained in another."""
    distinct = list(dict.fromkeys(text for text in texts if text))
    return (text for text in distinct if not any(text in other for other in distinct if other != text))


# -- the graph -----------------------------------------------------------------------------------------


def merge_mentions(answers: Sequence[MentionColumns], *, limit: int, ids: Sequence[str]) -> MentionColumns:
    """Return at most `limit` mentions of each id, in a store's order, each pair of entity and passage once."""
    merged: dict[str, dict[tuple[str, str], Mention]] = defaultdict(dict)
    for id_, mentions in (item for answer in reversed(answers) for item in answer.items()):
        merged[id_] |= {(m.passage_id, m.entity_id): m for m in mentions}
    best = {id_: sort_mentions(mentions.values()) for id_, mentions in merged.items()}
    return to_mention_columns(cap(best, limit, ids))


def merge_nearby(
    answers: Sequence[tuple[MentionColumns, Mapping[str, float]]], *, limit: int
) -> tuple[MentionColumns, dict[str, float]]:
    """Return merged mentions, and the similarity of their passages."""
    mentions = [of_entity for of_entity, _ in answers]
    ids = [id_ for of_entity in mentions for id_ in of_entity]
    return merge_mentions(mentions, limit=limit, ids=ids), take_first([cosines for _, cosines in answers])


def pick_most_trusted(answers: Iterable[Mapping[str, Fact]]) -> dict[str, Fact]:
    """Return each fact as its most trusted assertion states it, with the largest use count."""
    assertions = group_pairs(item for answer in answers for item in answer.items())
    return {id_: facts[0] if len(facts) == 1 else _pick(facts) for id_, facts in assertions.items()}


def _pick(assertions: Sequence[Fact]) -> Fact:
    return reduce(take_uses, assertions, min(assertions, key=_make_trust_key))


def _make_trust_key(fact: Fact) -> tuple[int, float, str]:
    return SOURCES.index(fact.source), -fact.weight * fact.confidence, fact.passage_id


def take_uses(fact: Fact, other: Fact) -> Fact:
    """Return a fact with the larger use count and the later use of two copies."""
    times = [at for at in (fact.last_accessed, other.last_accessed) if at]
    count = max(fact.access_count, other.access_count)
    return replace(fact, access_count=count, last_accessed=max(times, default=None))


def index_by_id(facts: Facts) -> dict[str, Fact]:
    """Return all facts of an answer by id."""
    return {fact.id: fact for some in facts.values() for fact in some}


def merge_facts_of_entities(
    answers: Sequence[Facts], trusted: Mapping[str, Fact], *, statuses: Sequence[Status]
) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of each entity, strongest first, as their most trusted assertions state them."""
    of_entity = merge_ids([{id_: [f.id for f in facts] for id_, facts in a.items()} for a in answers])
    live = {id_: fact for id_, fact in trusted.items() if fact.status in statuses}
    return {id_: sort_by_strength(live[fact] for fact in facts if fact in live) for id_, facts in of_entity.items()}


def merge_facts_of_passages(
    answers: Sequence[Facts], trusted: Mapping[str, Fact], *, statuses: Sequence[Status]
) -> dict[str, tuple[Fact, ...]]:
    """Return the facts and pairs of each passage, strongest first, as the passage states them.

    A fact is left out if its most trusted assertion has another status, such as retracted.
    """
    pairs = {fact.id: fact for answer in answers for facts in answer.values() for fact in facts if not fact.is_typed}
    live = {id_: fact for id_, fact in {**pairs, **trusted}.items() if fact.status in statuses}
    return {
        id_: sort_by_strength(take_uses(f, live[f.id]) for f in facts if f.id in live and f.status in statuses)
        for id_, facts in take_first(answers).items()
    }


def merge_pairs(answers: Sequence[Facts], mentions: MentionColumns, *, limit: int) -> FactColumns:
    """Return at most `limit` pairs of each entity, from the passages of its mentions and in their order."""
    ranks = {ends: rank for rank, ends in enumerate(zip(mentions.entities, mentions.passages, strict=True))}
    found: dict[tuple[str, str], tuple[int, Fact]] = {}
    for entity, pair in ((entity, pair) for answer in answers for entity, pairs in answer.items() for pair in pairs):
        rank = ranks.get((entity, pair.passage_id))
        if rank is not None and rank < found.get((entity, pair.id), (rank + 1, pair))[0]:
            found[entity, pair.id] = (rank, pair)
    best = cap_pairs([(entity, rank, id_, pair) for (entity, id_), (rank, pair) in found.items()], limit)
    return to_fact_columns(group_pairs((entity, pair) for entity, _, _, pair in best))


def is_short(
    merged: Mapping[str, Sequence[Any]],
    answers: Sequence[Mapping[str, Sequence[Any]]],
    *,
    wanted: int,
    requested: int,
) -> bool:
    """Return whether an id has fewer items than wanted while a collection may have more than the requested ones."""
    return any(
        len(merged.get(id_, ())) < wanted and len(items) >= requested
        for answer in answers
        for id_, items in answer.items()
    )


def cap(items: Mapping[str, Sequence[T]], limit: int, ids: Sequence[str]) -> dict[str, tuple[T, ...]]:
    """Return at most `limit` items of each id, in the order of `ids`, without ids that have no items."""
    return {id_: tuple(items[id_][:limit]) for id_ in dict.fromkeys(ids) if items.get(id_)}
