"""Makes one answer of the answers of several collections: what one store that holds all of it would say.

Rankings are merged by score and identity. What is in two collections under one identity is one: of a document
or passage the first is taken, of a fact the most trusted voice, and of an entity what each says is put
together, the collection that mentions it most first. Scores of words are each collection's own: a term weighs
what its share of that collection's passages makes it weigh, as on every engine; where a term is equally common
everywhere that is what one store would say. Nothing here asks a store.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from waylore.store.rows import by_strength, foremost, grouped
from waylore.types.knowledge import SOURCES, Contribution, Document, Entity, Fact, Mention, Status
from waylore.types.results import Receipt, Statistics
from waylore.types.search import Ranking, Scored

T = TypeVar("T")
Facts = Mapping[str, tuple[Fact, ...]]


def rankings(answers: Sequence[Ranking], *, top_k: int) -> Ranking:
    """The best of all, ties broken by identity; what several found counts once, with its best score."""
    best: dict[str, float] = {}
    for scored in (scored for ranking in answers for scored in ranking):
        best[scored.id] = max(best.get(scored.id, scored.score), scored.score)
    order = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Scored(id_, score) for id_, score in order[:top_k])


def first(answers: Sequence[Mapping[str, T]]) -> dict[str, T]:
    """By identity, as the first that has it says."""
    return {id_: value for answer in reversed(answers) for id_, value in answer.items()}


def listed(answers: Sequence[Sequence[Document]], *, limit: int) -> tuple[Document, ...]:
    """By address and identity, each once."""
    known = first([{d.id: d for d in answer} for answer in answers])
    return tuple(sorted(known.values(), key=lambda d: (d.uri, d.id))[:limit])


def exports(streams: Sequence[Iterator[Contribution]]) -> Iterator[Contribution]:
    """Every document once, by identity, a document at a time."""
    last = ""
    for contribution in heapq.merge(*streams, key=lambda c: c.document.id):
        if contribution.document.id != last:
            yield contribution
        last = contribution.document.id


def identities(answers: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, tuple[str, ...]]:
    """Identities by key, in order, each once."""
    found: dict[str, set[str]] = defaultdict(set)
    for key, ids in (item for answer in answers for item in answer.items()):
        found[key].update(ids)
    return {key: tuple(sorted(ids)) for key, ids in found.items()}


def statistics(answers: Sequence[Statistics]) -> Statistics:
    """Sums; what several know counts once for each. Models, where they differ, are all named."""
    filled = [known for known in answers if known.documents] or answers[:1]
    models = sorted({known.model or "no model" for known in filled})
    dimensions = {known.dimension for known in filled}
    return Statistics(
        documents=sum(a.documents for a in answers),
        passages=sum(a.passages for a in answers),
        entities=sum(a.entities for a in answers),
        facts=sum(a.facts for a in answers),
        mentions=sum(a.mentions for a in answers),
        model=filled[0].model if len(models) == 1 else " and ".join(models) or None,
        dimension=dimensions.pop() if len(dimensions) == 1 else None,
        version=sum(a.version for a in answers),
    )


def receipts(one: Receipt, other: Receipt) -> Receipt:
    """What went, here and there."""
    return Receipt(
        *(
            tuple(sorted({*getattr(one, kind), *getattr(other, kind)}))
            for kind in ("documents", "passages", "entities", "facts")
        )
    )


# -- entities ------------------------------------------------------------------------------------------


def entities(answers: Sequence[Mapping[str, Entity]]) -> dict[str, Entity]:
    """Each entity once, put together from what each collection says of it."""
    found = grouped(item for answer in answers for item in answer.items())
    return {id_: same[0] if len(same) == 1 else _united(same) for id_, same in found.items()}


def _united(same: Sequence[Entity]) -> Entity:
    told = sorted(same, key=lambda e: -e.passages)
    names: Counter[str] = Counter()
    for entity in told:
        names[entity.name] += max(entity.passages, 1)
    name = min(names, key=lambda n: (-names[n], n))
    aliases = dict.fromkeys(a for e in told for a in (e.name, *e.aliases) if a != name)
    return replace(
        told[0],
        name=name,
        type=next((e.type for e in told if e.type), ""),
        description=" ".join(_distinct(e.description for e in told)),
        aliases=tuple(aliases),
        passages=sum(e.passages for e in told),
        vector=next((e.vector for e in told if e.vector is not None), None),
    )


def _distinct(texts: Iterable[str]) -> Iterator[str]:
    """Each text that is not within another; of the same ones the first."""
    kept = list(dict.fromkeys(text for text in texts if text))
    return (text for text in kept if not any(text in other for other in kept if other != text))


# -- the graph -----------------------------------------------------------------------------------------


def mentions(
    answers: Sequence[Mapping[str, Sequence[Mention]]], *, most: int, asked: Sequence[str]
) -> dict[str, tuple[Mention, ...]]:
    """Own passages first, then by how often; each pair of an entity and a passage once."""
    found: dict[str, dict[tuple[str, str], Mention]] = defaultdict(dict)
    for id_, told in (item for answer in reversed(answers) for item in answer.items()):
        found[id_] |= {(m.passage_id, m.entity_id): m for m in told}
    return cut({id_: foremost(told.values()) for id_, told in found.items()}, most, asked)


def nearby(
    answers: Sequence[tuple[Mapping[str, Sequence[Mention]], Mapping[str, float]]],
    *,
    most: int,
) -> tuple[dict[str, tuple[Mention, ...]], dict[str, float]]:
    """Mentions as above, and how near the passages are."""
    told = [mentioned for mentioned, _ in answers]
    asked = [id_ for mentioned in told for id_ in mentioned]
    return mentions(told, most=most, asked=asked), first([near for _, near in answers])


def voices(answers: Iterable[Mapping[str, Fact]]) -> dict[str, Fact]:
    """Each fact as the most trusted of several voices has it, used as often as where it was used most."""
    found = grouped(item for answer in answers for item in answer.items())
    return {id_: facts[0] if len(facts) == 1 else _foremost(facts) for id_, facts in found.items()}


def _foremost(facts: Sequence[Fact]) -> Fact:
    return reduce(used, facts, min(facts, key=_trust))


def _trust(fact: Fact) -> tuple[int, float, str]:
    return SOURCES.index(fact.source), -fact.weight * fact.confidence, fact.passage_id


def used(fact: Fact, also: Fact) -> Fact:
    """A fact with the uses of another that is the same, if those are more or later."""
    times = [at for at in (fact.last_accessed, also.last_accessed) if at]
    count = max(fact.access_count, also.access_count)
    return replace(fact, access_count=count, last_accessed=max(times, default=None))


def by_identity(told: Facts) -> dict[str, Fact]:
    """All facts of an answer, each once."""
    return {fact.id: fact for facts in told.values() for fact in facts}


def facts_of_entities(
    answers: Sequence[Facts], trusted: Mapping[str, Fact], *, statuses: Sequence[Status]
) -> dict[str, tuple[Fact, ...]]:
    """By entity, the facts of all collections in the words of their most trusted voice, strongest first."""
    of_entity = identities([{id_: [f.id for f in facts] for id_, facts in a.items()} for a in answers])
    live = {id_: fact for id_, fact in trusted.items() if fact.status in statuses}
    return {id_: by_strength(live[fact] for fact in facts if fact in live) for id_, facts in of_entity.items()}


def facts_of_passages(
    answers: Sequence[Facts], trusted: Mapping[str, Fact], *, statuses: Sequence[Status]
) -> dict[str, tuple[Fact, ...]]:
    """By passage, the facts that it states in its own words, unless somebody more trusted retracted them."""
    live = {id_: fact for id_, fact in trusted.items() if fact.status in statuses}
    return {
        id_: by_strength(used(f, live[f.id]) for f in facts if f.id in live and f.status in statuses)
        for id_, facts in first(answers).items()
    }


def is_short(
    kept: Mapping[str, Sequence[Any]],
    answers: Sequence[Mapping[str, Sequence[Any]]],
    *,
    wanted: int,
    asked: int,
) -> bool:
    """Whether less is left than was wanted, though a collection may have more than it was asked for."""
    return any(
        len(kept.get(id_, ())) < wanted and len(told) >= asked
        for answer in answers
        for id_, told in answer.items()
    )


def cut(kept: Mapping[str, Sequence[T]], most: int, asked: Sequence[str]) -> dict[str, tuple[T, ...]]:
    """At most so many of each, in the order in which they were asked for, and nothing where there is none."""
    return {id_: tuple(kept[id_][:most]) for id_ in dict.fromkeys(asked) if kept.get(id_)}
