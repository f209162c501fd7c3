"""The walk: activation spreads from what the question names, over facts and mentions, to passages.

It is personalised PageRank over a small neighbourhood that is read from the store in a few bounded calls:
facts of the seeds, facts of the most promising of those they lead to, passages of all of these. Edges weigh
what their fact is worth (S12) and how much it bears on the question. The graph is never loaded, so cost does
not depend on its size. What the walk reached is ranked elsewhere.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from math import exp, log10

import numpy as np
import numpy.typing as npt

from weft.config import Resolution, Trust, Walk
from weft.naming import words_key
from weft.retrieval.resolving import joins, names_of_ends
from weft.retrieval.similarity import NEUTRAL, cosines
from weft.retrieval.validity import current
from weft.store.base import Store
from weft.text import normalise
from weft.types import Fact, Mention, Query, Scored

DAYS = 7  # in a week
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What a walk read: seeds, facts and passages with their cosine to the question, and mentions."""

    seeds: Mapping[str, float]
    facts: Mapping[str, Fact]
    fact_cosines: Mapping[str, float]
    mentions: tuple[Mention, ...]
    mentioned: Mapping[str, tuple[Mention, ...]]  # by the hybrid passages
    passage_cosines: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Walked:
    """Passages by activation, best first, and the activation of entities."""

    passages: tuple[Scored, ...]
    entities: Mapping[str, float]


def walk(
    neighbourhood: Neighbourhood,
    hybrid: Sequence[Scored],
    *,
    config: Walk,
    trust: Trust,
    now: datetime,
) -> Walked:
    """Spread activation from the seeds and, very lightly, from the best hybrid passages."""
    near = neighbourhood
    ends = {end for fact in near.facts.values() for end in fact.ends}
    entities = sorted({m.entity_id for m in near.mentions} | set(near.seeds) | ends)
    passages = sorted(near.passage_cosines)
    nodes = {id_: place for place, id_ in enumerate([*entities, *passages])}
    edges = [(nodes[a], nodes[b], weight) for a, b, weight in _edges(near, config, trust, now)]
    start = _start(near, hybrid, nodes, config)
    activation = spread(edges, start, restart=config.restart, rounds=config.rounds).tolist()
    reached = [Scored(id_, round(activation[nodes[id_]], 9)) for id_ in passages]
    return Walked(
        tuple(sorted(reached, key=lambda s: (-s.score, s.id))),
        {id_: activation[nodes[id_]] for id_ in entities},
    )


def _edges(near: Neighbourhood, config: Walk, trust: Trust, now: datetime) -> Iterator[tuple[str, str, float]]:
    """Facts between two entities, and mentions of entities in passages that were read."""
    for fact in near.facts.values():
        if fact.object_id and fact.object_id != fact.subject_id:
            bearing = exp(config.question * (near.fact_cosines[fact.id] - NEUTRAL))
            yield fact.subject_id, fact.object_id, worth(fact, trust, now) * bearing
    bearings = {id_: exp(config.question * (c - NEUTRAL)) for id_, c in near.passage_cosines.items()}
    for mention in near.mentions:
        if mention.passage_id in bearings:
            own = config.own_passage if mention.is_own else 1.0
            yield mention.entity_id, mention.passage_id, own * bearings[mention.passage_id]


def _start(near: Neighbourhood, hybrid: Sequence[Scored], nodes: Mapping[str, int], config: Walk) -> Numbers:
    start = np.zeros(len(nodes))
    total = max(sum(near.seeds.values()), 1e-9)
    for id_, weight in near.seeds.items():
        start[nodes[id_]] = weight / total
    for scored in hybrid:
        if scored.id in nodes:
            start[nodes[scored.id]] += config.start_at_passages * scored.score
    return start


def spread(edges: Sequence[tuple[int, int, float]], start: Numbers, *, restart: float, rounds: int) -> Numbers:
    """Personalised PageRank over edges that lead both ways; the shares of what starts at `start`."""
    total = start.sum()
    if not edges or not total:
        return start
    start = start / total
    table = np.array(edges)
    one, other, weight = table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2]
    source, target = np.concatenate([one, other]), np.concatenate([other, one])
    weight = np.concatenate([weight, weight])
    flow = weight / np.maximum(np.bincount(source, weight, len(start)), 1e-12)[source]
    activation = start
    for _ in range(rounds):
        arrived = np.bincount(target, activation[source] * flow, len(start))
        activation = (1 - restart) * arrived + restart * start
    return activation


def gather(
    store: Store,
    query: Query,
    seeds: Mapping[str, float],
    facts: Mapping[str, Fact],
    hybrid: Sequence[Scored],
    *,
    config: Walk,
    resolution: Resolution,
    read: Collection[str] = (),
) -> Neighbourhood:
    """Read the neighbourhood of the seeds: one call for facts a hop, then mentions and passages once.

    `facts` are known already, among them all of the entities that were `read`.
    """
    known = dict(facts)
    bearing = cosines(query.vector, facts.values())
    frontier, walked = sorted(set(seeds).difference(read)), set(seeds)
    for _ in range(config.max_hops):
        found = facts_of(store, query, frontier, config)
        fresh = {f.id: f for fs in found.values() for f in fs if f.id not in known}
        fresh = dict(islice(fresh.items(), max(config.max_facts - len(known), 0)))
        known |= fresh
        bearing |= cosines(query.vector, fresh.values())
        frontier = _promising(known.values(), walked, bearing)[: config.frontier]
        walked.update(frontier)
    reached = [*sorted(seeds), *_promising(known.values(), set(seeds), bearing)]
    joined, others = _joined(store, query, reached[: len(seeds) + resolution.ends], known, resolution)
    known |= joined
    bearing |= cosines(query.vector, joined.values())
    cut = len(seeds) + resolution.ends
    entities = list(dict.fromkeys([*reached[:cut], *others, *reached[cut:]]))[: config.max_entities]
    own = [scored.id for scored in hybrid]
    listed = store.passages_of_entities(entities, per_entity=config.passages_per_entity, where=query.where)
    mentioned = store.entities_of_passages(own, per_passage=config.entities_per_passage, where=query.where)
    every = {(m.entity_id, m.passage_id): m for ms in (*listed.values(), *mentioned.values()) for m in ms}
    ids = sorted({*own, *(passage for _, passage in every)})
    near = {} if query.vector is None else store.cosines(query.vector, ids, where=query.where)
    at = {id_: near.get(id_, NEUTRAL) for id_ in ids}
    return Neighbourhood(seeds, known, bearing, tuple(every.values()), mentioned, at)


def _joined(
    store: Store, query: Query, entities: Sequence[str], known: Mapping[str, Fact], config: Resolution
) -> tuple[dict[str, Fact], list[str]]:
    """The facts by which entities are the same as others, or resemble them, and those others."""
    names = names_of_ends(known.values())
    keys = {id_: words_key(names[id_]) for id_ in entities if id_ in names}
    joined = joins(store, query, keys, config)
    facts = joined.facts
    return facts, list(dict.fromkeys(end for fact in facts.values() for end in fact.ends))


def facts_of(
    store: Store, query: Query, entities: Sequence[str], config: Walk
) -> Mapping[str, tuple[Fact, ...]]:
    """One step of a walk: the facts of these entities, strongest first, that the walk may follow."""
    facts = store.facts_of_entities(
        entities,
        per_entity=config.facts_per_entity,
        predicates=config.predicates,
        statuses=config.statuses,
        as_of=query.as_of,
        where=query.where,
    )
    return current(store, query, facts, config.functional)


def facts_in(
    store: Store, query: Query, passages: Sequence[str], config: Walk, *, per_passage: int
) -> Mapping[str, tuple[Fact, ...]]:
    """The facts that these passages state and that the walk may follow."""
    stated = store.facts_of_passages(
        passages, per_passage=per_passage, statuses=config.statuses, as_of=query.as_of, where=query.where
    )
    stated = current(store, query, stated, config.functional)
    if not config.predicates:
        return stated
    wanted = set(map(normalise, config.predicates))
    return {id_: tuple(f for f in fs if normalise(f.predicate) in wanted) for id_, fs in stated.items()}


def worth(fact: Fact, trust: Trust, now: datetime) -> float:
    """What a fact weighs in a walk: its weight, and how far it is to be trusted."""
    return fact.weight / 10 * trusted(fact, trust, now)


def trusted(fact: Fact, trust: Trust, now: datetime) -> float:
    """How far a fact is to be trusted (S12): by confidence, source, age, use and status."""
    age = (now - (fact.last_accessed or fact.recorded_at)).days  # whole days: an answer holds for a day
    decay = (1.0 - trust.decay_per_week) ** max(age / DAYS - trust.grace_weeks, 0.0)
    usage = 1.0 + trust.usage * log10(fact.access_count + 1)
    status = trust.confirmed if fact.status == "confirmed" else 1.0
    return float(fact.confidence * trust.of_source(fact.source) * decay * usage * status)


def _promising(facts: Iterable[Fact], walked: set[str], bearing: Mapping[str, float]) -> list[str]:
    """Entities not walked yet, by the fact that leads to each and bears most on the question."""
    best: dict[str, float] = {}
    for fact in facts:
        for end in fact.ends:
            if end not in walked:
                best[end] = max(best.get(end, -1.0), bearing[fact.id])
    return sorted(best, key=lambda id_: (-best[id_], id_))
