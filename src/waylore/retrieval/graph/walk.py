"""Walk the graph: spread activation from the entities of a question over facts and mentions to passages.

The walk is personalised PageRank over a small neighbourhood, read from the store in a few bounded calls: facts
of the seeds, facts of the most promising entities they lead to, and passages of all of these. The weight of an
edge is the trust in its fact (S12) times its relevance to the question. The graph is never loaded as a whole,
so the cost does not depend on its size. The passages are ranked elsewhere.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from math import exp

import numpy as np
import numpy.typing as npt

from waylore.config import ResolutionConfig, TrustConfig, WalkConfig
from waylore.names import list_word_keys
from waylore.retrieval.graph.same_as import find_merges, map_end_names
from waylore.retrieval.graph.similarity import NEUTRAL, map_cosines
from waylore.retrieval.graph.validity import select_current
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.text import normalise
from waylore.types.knowledge import Fact, Mention
from waylore.types.search import Query, Scored

DAYS_PER_WEEK = 7
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The rows that a walk read: seeds, facts and passages with their cosine to the question, and mentions."""

    seeds: Mapping[str, float]
    facts: Mapping[str, Fact]
    fact_cosines: Mapping[str, float]
    mentions: tuple[Mention, ...]
    mentioned: Mapping[str, tuple[Mention, ...]]  # by hybrid passage
    passage_cosines: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class WalkResult:
    """Passages by activation, best first, and the activation of entities."""

    passages: tuple[Scored, ...]
    entities: Mapping[str, float]


def walk(
    neighbourhood: Neighbourhood,
    hybrid: Sequence[Scored],
    *,
    config: WalkConfig,
    trust: TrustConfig,
    now: datetime,
) -> WalkResult:
    """Spread activation from the seeds and, very lightly, from the best hybrid passages."""
    near = neighbourhood
    ends = {end for fact in near.facts.values() for end in fact.ends}
    entities = sorted({m.entity_id for m in near.mentions} | set(near.seeds) | ends)
    passages = sorted(near.passage_cosines)
    nodes = {id_: place for place, id_ in enumerate([*entities, *passages])}
    edges = [(nodes[a], nodes[b], weight) for a, b, weight in _list_edges(near, config, trust, now)]
    start = _make_start(near, hybrid, nodes, config)
    activation = spread(edges, start, restart=config.restart, rounds=config.rounds).tolist()
    reached = [Scored(id_, round(activation[nodes[id_]], 9)) for id_ in passages]
    return WalkResult(
        tuple(sorted(reached, key=lambda s: (-s.score, s.id))),
        {id_: activation[nodes[id_]] for id_ in entities},
    )


def _list_edges(
    near: Neighbourhood, config: WalkConfig, trust: TrustConfig, now: datetime
) -> Iterator[tuple[str, str, float]]:
    """Yield an edge for each fact between two entities, and for each mention in a passage that was read."""
    for fact in near.facts.values():
        if fact.object_id and fact.object_id != fact.subject_id:
            relevance = exp(config.question * (near.fact_cosines[fact.id] - NEUTRAL))
            yield fact.subject_id, fact.object_id, compute_weight(fact, trust, now) * relevance
    relevances = {id_: exp(config.question * (c - NEUTRAL)) for id_, c in near.passage_cosines.items()}
    for mention in near.mentions:
        if mention.passage_id in relevances:
            own = config.own_passage if mention.is_own else 1.0
            yield mention.entity_id, mention.passage_id, own * relevances[mention.passage_id]


def _make_start(near: Neighbourhood, hybrid: Sequence[Scored], nodes: Mapping[str, int], config: WalkConfig) -> Numbers:
    start = np.zeros(len(nodes))
    total = max(sum(near.seeds.values()), 1e-9)
    for id_, weight in near.seeds.items():
        start[nodes[id_]] = weight / total
    for scored in hybrid:
        if scored.id in nodes:
            start[nodes[scored.id]] += config.start_at_passages * scored.score
    return start


def spread(edges: Sequence[tuple[int, int, float]], start: Numbers, *, restart: float, rounds: int) -> Numbers:
    """Return the activation of each node: personalised PageRank over undirected edges."""
    total = start.sum()
    if not edges or not total:
        return start
    start = start / total
    table = np.array(edges)
    first, second, weight = table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2]
    source, target = np.concatenate([first, second]), np.concatenate([second, first])
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
    config: WalkConfig,
    resolution: ResolutionConfig,
    read_before: Collection[str] = (),
) -> Reads[Neighbourhood]:
    """Read the neighbourhood of the seeds: facts with one read per hop, then mentions and passages once.

    `weights` are the weights of the seeds, which are divided by the number of their passages. `facts` are known
    already: they include all facts of the entities in `read_before`. `mentioned` has the mentions of the hybrid
    passages.
    """
    seeds, known, cosines = yield from _read_hops(query, weights, facts, read_before, config)
    reached = [*sorted(seeds), *_rank_promising(known.values(), set(seeds), cosines)]
    own = [scored.id for scored in hybrid]
    merged, mentions, passage_cosines = yield from _read_surroundings(
        query, reached, len(seeds), known, own, config, resolution
    )
    known |= merged
    cosines |= map_cosines(query.vector, merged.values())
    all_mentions = {(m.entity_id, m.passage_id): m for ms in (*mentions.values(), *mentioned.values()) for m in ms}
    passages = sorted({*own, *(passage for _, passage in all_mentions)})
    near = {id_: passage_cosines.get(id_, NEUTRAL) for id_ in passages}
    return Neighbourhood(seeds, known, cosines, tuple(all_mentions.values()), mentioned, near)


def _read_hops(
    query: Query,
    weights: Mapping[str, float],
    facts: Mapping[str, Fact],
    read_before: Collection[str],
    config: WalkConfig,
) -> Reads[tuple[dict[str, float], dict[str, Fact], dict[str, float]]]:
    """Return the seeds that exist, all facts within `max_hops`, and the cosine of each fact to the question."""
    frontier = sorted(set(weights).difference(read_before))
    entities, listed = yield from read_together(
        read(Store.entities, sorted(weights), where=query.where), read_entity_facts(query, frontier, config)
    )
    seeds = {id_: weights[id_] / max(entity.passages, 1) for id_, entity in entities.items()}
    listed = {id_: entity_facts for id_, entity_facts in listed.items() if id_ in seeds}
    known, cosines, walked = dict(facts), map_cosines(query.vector, facts.values()), set(seeds)
    for hop in range(config.max_hops):
        listed = (yield from read_entity_facts(query, frontier, config)) if hop else listed
        new = {f.id: f for fs in listed.values() for f in fs if f.id not in known}
        new = dict(islice(new.items(), max(config.max_facts - len(known), 0)))
        known |= new
        cosines |= map_cosines(query.vector, new.values())
        frontier = _rank_promising(known.values(), walked, cosines)[: config.frontier]
        walked.update(frontier)
    return seeds, known, cosines


def _read_surroundings(
    query: Query,
    reached: Sequence[str],
    seeds: int,
    known: Mapping[str, Fact],
    own: Sequence[str],
    config: WalkConfig,
    resolution: ResolutionConfig,
) -> Reads[tuple[dict[str, Fact], dict[str, tuple[Mention, ...]], dict[str, float]]]:
    """Read the merges of reached entities, the mentions of all of them, and the cosines of their passages."""
    cut, within = seeds + resolution.max_reached, reached[: config.max_entities]
    names = map_end_names(known.values())
    keys = {id_: list_word_keys(names[id_]) for id_ in reached[:cut] if id_ in names}
    merges, (mentions, cosines), own_cosines = yield from read_together(
        find_merges(query, keys, resolution),
        _read_mentions(query, within, config, keys=list(chain(*keys.values())), max_per_key=resolution.max_similar + 1),
        _read_cosines(query, own),
    )
    merged = merges.facts
    others = [end for fact in merged.values() for end in fact.ends]
    wanted = list(dict.fromkeys([*reached[:cut], *others, *reached[cut:]]))[: config.max_entities]
    further = [id_ for id_ in wanted if id_ not in within and id_ not in mentions]
    if further:
        more, more_cosines = yield from _read_mentions(query, further, config)
        mentions, cosines = {**mentions, **more}, {**cosines, **more_cosines}
    return merged, {id_: mentions[id_] for id_ in wanted if id_ in mentions}, {**cosines, **own_cosines}


def _read_mentions(
    query: Query, entities: Sequence[str], config: WalkConfig, *, keys: Sequence[str] = (), max_per_key: int = 0
) -> Reads[tuple[Mapping[str, tuple[Mention, ...]], Mapping[str, float]]]:
    """Read the mentions of entities, and of those with one of the keys, with cosines if there are vectors."""
    per_entity, where = config.passages_per_entity, query.where
    if query.vector is None:
        listed = yield from read(Store.passages_of_entities, entities, per_entity=per_entity, where=where)
        return listed, {}
    near = read(
        Store.nearby,
        query.vector,
        entities,
        per_entity=per_entity,
        keys=keys,
        max_per_key=max_per_key,
        where=where,
    )
    return (yield from near)


def _read_cosines(query: Query, passages: Sequence[str]) -> Reads[Mapping[str, float]]:
    if query.vector is None:
        return {}
    return (yield from read(Store.cosines, query.vector, passages, where=query.where))


def read_entity_facts(
    query: Query, entities: Sequence[str], config: WalkConfig
) -> Reads[Mapping[str, tuple[Fact, ...]]]:
    """Read the facts of entities that a walk may follow, strongest first."""
    facts = yield from read(
        Store.facts_of_entities,
        entities,
        per_entity=config.facts_per_entity,
        predicates=config.predicates,
        statuses=config.statuses,
        as_of=query.as_of,
        where=query.where,
    )
    return (yield from select_current(query, facts, config.single_valued))


def read_passage_facts(
    query: Query, passages: Sequence[str], config: WalkConfig, *, per_passage: int
) -> Reads[Mapping[str, tuple[Fact, ...]]]:
    """Read the facts that passages state and that a walk may follow."""
    stated = yield from read(
        Store.facts_of_passages,
        passages,
        per_passage=per_passage,
        statuses=config.statuses,
        as_of=query.as_of,
        where=query.where,
    )
    stated = yield from select_current(query, stated, config.single_valued)
    if not config.predicates:
        return stated
    wanted = set(map(normalise, config.predicates))
    return {id_: tuple(f for f in fs if normalise(f.predicate) in wanted) for id_, fs in stated.items()}


def compute_weight(fact: Fact, trust: TrustConfig, now: datetime) -> float:
    """Return the weight of a fact in a walk: its own weight times the trust in it.

    Uses do not count here, so that the same question always gets the same scores.
    """
    return fact.weight / 10 * compute_trust(fact, trust, now - fact.recorded_at)


def compute_trust(fact: Fact, trust: TrustConfig, age: timedelta) -> float:
    """Return the trust in a fact by its confidence, source, age and status (S12)."""
    weeks = age.days / DAYS_PER_WEEK  # in whole days, so that an answer stays the same for a day
    decay = (1.0 - trust.decay_per_week) ** max(weeks - trust.grace_weeks, 0.0)
    status = trust.confirmed if fact.status == "confirmed" else 1.0
    return float(fact.confidence * trust.get_weight(fact.source) * decay * status)


def _rank_promising(facts: Iterable[Fact], walked: set[str], cosines: Mapping[str, float]) -> list[str]:
    """Return the entities not walked yet, by the best cosine of a fact that leads to each."""
    best: dict[str, float] = {}
    for fact in facts:
        for end in fact.ends:
            if end not in walked:
                best[end] = max(best.get(end, -1.0), cosines[fact.id])
    return sorted(best, key=lambda id_: (-best[id_], id_))
