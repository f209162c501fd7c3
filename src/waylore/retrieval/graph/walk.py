"""The walk: activation spreads from what the question names, over facts and mentions, to passages.

It is personalised PageRank over a small neighbourhood that is read from the store in a few bounded calls:
facts of the seeds, facts of the most promising of those they lead to, passages of all of these. Edges weigh
what their fact is worth (S12) and how much it bears on the question. The graph is never loaded, so cost does
not depend on its size. What the walk reached is ranked elsewhere.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from math import exp, log10

import numpy as np
import numpy.typing as npt

from waylore.config import Resolution, Trust, Walk
from waylore.names import words_key
from waylore.retrieval.graph.same_as import joins, names_of_ends
from waylore.retrieval.graph.similarity import NEUTRAL, cosines
from waylore.retrieval.graph.validity import current
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, together
from waylore.text import normalise
from waylore.types.knowledge import Fact, Mention
from waylore.types.search import Query, Scored

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
    query: Query,
    weights: Mapping[str, float],
    facts: Mapping[str, Fact],
    hybrid: Sequence[Scored],
    mentioned: Mapping[str, tuple[Mention, ...]],
    *,
    config: Walk,
    resolution: Resolution,
    read_before: Collection[str] = (),
) -> Reads[Neighbourhood]:
    """Read the neighbourhood of the seeds: one call for facts a hop, then mentions and passages once.

    The seeds weigh what they are given, the rarer the more. `facts` are known already, among them all of the
    entities that were `read_before`, and what the hybrid passages `mentioned`.
    """
    seeds, known, bearing = yield from _hops(query, weights, facts, read_before, config)
    reached = [*sorted(seeds), *_promising(known.values(), set(seeds), bearing)]
    own = [scored.id for scored in hybrid]
    joined, mentions, near = yield from _surroundings(
        query, reached, len(seeds), known, own, config, resolution
    )
    known |= joined
    bearing |= cosines(query.vector, joined.values())
    every = {(m.entity_id, m.passage_id): m for ms in (*mentions.values(), *mentioned.values()) for m in ms}
    at = {id_: near.get(id_, NEUTRAL) for id_ in sorted({*own, *(passage for _, passage in every)})}
    return Neighbourhood(seeds, known, bearing, tuple(every.values()), mentioned, at)


def _hops(
    query: Query,
    weights: Mapping[str, float],
    facts: Mapping[str, Fact],
    read_before: Collection[str],
    config: Walk,
) -> Reads[tuple[dict[str, float], dict[str, Fact], dict[str, float]]]:
    """The seeds that are there, all facts within so many hops, and how much each bears on the question."""
    frontier = sorted(set(weights).difference(read_before))
    entities, found = yield from together(
        read(Store.entities, sorted(weights), where=query.where), facts_of(query, frontier, config)
    )
    seeds = {id_: weights[id_] / max(entity.passages, 1) for id_, entity in entities.items()}
    found = {id_: told for id_, told in found.items() if id_ in seeds}
    known, bearing, walked = dict(facts), cosines(query.vector, facts.values()), set(seeds)
    for hop in range(config.max_hops):
        found = (yield from facts_of(query, frontier, config)) if hop else found
        fresh = {f.id: f for fs in found.values() for f in fs if f.id not in known}
        fresh = dict(islice(fresh.items(), max(config.max_facts - len(known), 0)))
        known |= fresh
        bearing |= cosines(query.vector, fresh.values())
        frontier = _promising(known.values(), walked, bearing)[: config.frontier]
        walked.update(frontier)
    return seeds, known, bearing


def _surroundings(
    query: Query,
    reached: Sequence[str],
    seeds: int,
    known: Mapping[str, Fact],
    own: Sequence[str],
    config: Walk,
    resolution: Resolution,
) -> Reads[tuple[dict[str, Fact], dict[str, tuple[Mention, ...]], dict[str, float]]]:
    """What joins those who were reached with others, where all of them are mentioned, and how near that is."""
    cut, within = seeds + resolution.ends, reached[: config.max_entities]
    names = names_of_ends(known.values())
    keys = {id_: words_key(names[id_]) for id_ in reached[:cut] if id_ in names}
    names_joined, (mentions, near), own_near = yield from together(
        joins(query, keys, resolution),
        _mentions(query, within, config, keys=list(chain(*keys.values())), most=resolution.most + 1),
        _cosines(query, own),
    )
    joined = names_joined.facts
    others = [end for fact in joined.values() for end in fact.ends]
    wanted = list(dict.fromkeys([*reached[:cut], *others, *reached[cut:]]))[: config.max_entities]
    further = [id_ for id_ in wanted if id_ not in within and id_ not in mentions]
    if further:
        more, more_near = yield from _mentions(query, further, config)
        mentions, near = {**mentions, **more}, {**near, **more_near}
    return joined, {id_: mentions[id_] for id_ in wanted if id_ in mentions}, {**near, **own_near}


def _mentions(
    query: Query, entities: Sequence[str], config: Walk, *, keys: Sequence[str] = (), most: int = 0
) -> Reads[tuple[Mapping[str, tuple[Mention, ...]], Mapping[str, float]]]:
    """Where entities, and those with one of the keys, are mentioned, and how near that is, if that is known."""
    per_entity, where = config.passages_per_entity, query.where
    if query.vector is None:
        listed = yield from read(Store.passages_of_entities, entities, per_entity=per_entity, where=where)
        return listed, {}
    near = read(Store.nearby, query.vector, entities, per_entity=per_entity, keys=keys, most=most, where=where)
    return (yield from near)


def _cosines(query: Query, passages: Sequence[str]) -> Reads[Mapping[str, float]]:
    if query.vector is None:
        return {}
    return (yield from read(Store.cosines, query.vector, passages, where=query.where))


def facts_of(query: Query, entities: Sequence[str], config: Walk) -> Reads[Mapping[str, tuple[Fact, ...]]]:
    """One step of a walk: the facts of these entities, strongest first, that the walk may follow."""
    facts = yield from read(
        Store.facts_of_entities,
        entities,
        per_entity=config.facts_per_entity,
        predicates=config.predicates,
        statuses=config.statuses,
        as_of=query.as_of,
        where=query.where,
    )
    return (yield from current(query, facts, config.functional))


def facts_in(
    query: Query, passages: Sequence[str], config: Walk, *, per_passage: int
) -> Reads[Mapping[str, tuple[Fact, ...]]]:
    """The facts that these passages state and that the walk may follow."""
    stated = yield from read(
        Store.facts_of_passages,
        passages,
        per_passage=per_passage,
        statuses=config.statuses,
        as_of=query.as_of,
        where=query.where,
    )
    stated = yield from current(query, stated, config.functional)
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
