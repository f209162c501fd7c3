"""Walk the graph: spread activation from the entities of a question over facts and mentions to passages.

The walk is personalised PageRank over a small neighbourhood, read from the store in a few bounded calls: facts
of the seeds, facts of the most promising entities they lead to, and passages of all of these. The weight of an
edge is the trust in its fact (S12) times its relevance to the question. The graph is never loaded as a whole,
so the cost does not depend on its size. The passages are ranked elsewhere.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

from waylore.config import ResolutionConfig, TrustConfig, WalkConfig
from waylore.names import list_word_keys
from waylore.retrieval.fusion import round_decimals
from waylore.retrieval.graph.same_as import find_merges, map_end_names
from waylore.retrieval.graph.validity import select_current, select_stated
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_nothing, read_together
from waylore.store.rows import group_pairs
from waylore.text import normalise
from waylore.types.columns import (
    MICROSECOND,
    NEUTRAL,
    FactColumns,
    MentionColumns,
    Numbers,
    join_facts,
    join_mentions,
    to_fact_columns,
    unique_facts,
)
from waylore.types.knowledge import EPOCH, SOURCES, STATUSES
from waylore.types.search import Query, Scored, make_ranking

DAYS_PER_WEEK = 7
MICROSECONDS_PER_DAY = 86_400_000_000
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The rows that a walk read: seeds, facts and passages with their cosine to the question, and mentions."""

    seeds: Mapping[str, float]
    facts: FactColumns
    fact_cosines: Numbers
    mentions: MentionColumns
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
    ends = {*near.facts.subjects, *near.facts.objects, *near.mentions.entities, *near.seeds} - {""}
    entities, passages = sorted(ends), sorted(near.passage_cosines)
    nodes = dict(zip([*entities, *passages], range(len(entities) + len(passages)), strict=True))
    edges = _join_edges(_list_fact_edges(near, nodes, config, trust, now), _list_mention_edges(near, nodes, config))
    start = _make_start(near, hybrid, nodes, config)
    activation = spread(*edges, start, restart=config.restart, rounds=config.rounds)
    scores = round_decimals(activation[len(entities) :], 9)
    order = np.argsort(-scores, kind="stable")  # passages are in the order of their ids
    return WalkResult(
        make_ranking(map(passages.__getitem__, order.tolist()), scores[order].tolist()),
        dict(zip(entities, activation[: len(entities)].tolist(), strict=True)),
    )


Edges = tuple[Places, Places, Numbers]  # two ends and a weight


def _list_fact_edges(
    near: Neighbourhood, nodes: Mapping[str, int], config: WalkConfig, trust: TrustConfig, now: datetime
) -> Edges:
    """Return an edge for each fact between two entities."""
    facts = near.facts
    subjects = np.array([*map(nodes.__getitem__, facts.subjects)], np.int64)
    objects = np.array([*map(nodes.get, facts.objects, repeat(-1))], np.int64)
    weights = compute_weights(facts, trust, now) * np.exp(config.question * (near.fact_cosines - NEUTRAL))
    is_edge = (objects >= 0) & (objects != subjects)
    return subjects[is_edge], objects[is_edge], weights[is_edge]


def _list_mention_edges(near: Neighbourhood, nodes: Mapping[str, int], config: WalkConfig) -> Edges:
    """Return an edge for each mention."""
    mentions, cosines = near.mentions, near.passage_cosines
    relevances = np.exp(config.question * (np.array([*map(cosines.__getitem__, mentions.passages)]) - NEUTRAL))
    own = np.where(mentions.is_own, config.own_passage, 1.0)
    entities = np.array([*map(nodes.__getitem__, mentions.entities)], np.int64)
    return entities, np.array([*map(nodes.__getitem__, mentions.passages)], np.int64), own * relevances


def _join_edges(one: Edges, other: Edges) -> Edges:
    first, second, weight = (np.concatenate(pair) for pair in zip(one, other, strict=True))
    return first, second, weight


def _make_start(near: Neighbourhood, hybrid: Sequence[Scored], nodes: Mapping[str, int], config: WalkConfig) -> Numbers:
    start = np.zeros(len(nodes))
    total = max(sum(near.seeds.values()), 1e-9)
    for id_, weight in near.seeds.items():
        start[nodes[id_]] = weight / total
    for scored in hybrid:
        if scored.id in nodes:
            start[nodes[scored.id]] += config.start_at_passages * scored.score
    return start


def spread(first: Places, second: Places, weight: Numbers, start: Numbers, *, restart: float, rounds: int) -> Numbers:
    """Return the activation of each node: personalised PageRank over undirected edges."""
    total = start.sum()
    if not len(weight) or not total:
        return start
    start = start / total
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
    facts: FactColumns,
    hybrid: Sequence[Scored],
    mentioned: MentionColumns,
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
    seeds, known = yield from _read_hops(query, weights, facts, read_before, config)
    promising = _rank_promising(known, set(seeds), known.compute_cosines(query))
    own = [scored.id for scored in hybrid]
    merged, mentions, cosines = yield from _read_surroundings(
        query, [*sorted(seeds), *promising], len(seeds), known, own, config, resolution
    )
    known = unique_facts([known, merged])
    mentions = _drop_repeated(join_mentions([mentions, mentioned]))
    passages = sorted({*own, *mentions.passages})
    near = {id_: query.map_cosines(cosines[id_]) if id_ in cosines else NEUTRAL for id_ in passages}
    return Neighbourhood(seeds, known, known.compute_cosines(query), mentions, near)


def _drop_repeated(mentions: MentionColumns) -> MentionColumns:
    """Return each pair of entity and passage once."""
    pairs = zip(mentions.entities, mentions.passages, strict=True)
    return mentions.take(list(dict(zip(pairs, range(mentions.size), strict=True)).values()))


def _read_hops(
    query: Query,
    weights: Mapping[str, float],
    facts: FactColumns,
    read_before: Collection[str],
    config: WalkConfig,
) -> Reads[tuple[dict[str, float], FactColumns]]:
    """Return the seeds that exist, and all facts within `max_hops`."""
    frontier = sorted(set(weights).difference(read_before))
    entities, listed = yield from read_together(
        read(Store.entities, sorted(weights), where=query.where), read_entity_facts(query, frontier, config)
    )
    seeds = {id_: weights[id_] / max(entity.passages, 1) for id_, entity in entities.items()}
    listed = listed.take([place for place, id_ in enumerate(listed.of) if id_ in seeds])
    known, walked = facts, set(seeds)
    for hop in range(config.max_hops):
        if hop:
            frontier = _rank_promising(known, walked, known.compute_cosines(query))[: config.frontier]
            walked.update(frontier)
            listed = yield from read_entity_facts(query, frontier, config)
        known = _add_new(known, listed, config)
    return seeds, known


def _add_new(known: FactColumns, listed: FactColumns, config: WalkConfig) -> FactColumns:
    """Return the known facts, and the others of the list, up to `max_facts`."""
    ids = set(known.ids)
    last = {id_: place for place, id_ in enumerate(listed.ids) if id_ not in ids}
    return unique_facts([known, listed.take(list(last.values())[: max(config.max_facts - known.size, 0)])])


def _read_surroundings(
    query: Query,
    reached: Sequence[str],
    seeds: int,
    known: FactColumns,
    own: Sequence[str],
    config: WalkConfig,
    resolution: ResolutionConfig,
) -> Reads[tuple[FactColumns, MentionColumns, dict[str, float]]]:
    """Read the merges of reached entities, the mentions of all of them, and the cosines of their passages."""
    cut, within = seeds + resolution.max_reached, reached[: config.max_entities]
    names = map_end_names(known, reached[:cut])
    keys = {id_: list_word_keys(names[id_]) for id_ in reached[:cut] if id_ in names}
    merges, (mentions, cosines), own_cosines = yield from read_together(
        find_merges(query, keys, resolution),
        _read_mentions(query, within, config, keys=list(chain(*keys.values())), max_per_key=resolution.max_similar + 1),
        _read_cosines(query, own),
    )
    merged = to_fact_columns({"": merges.facts.values()})
    others = [end for fact in merges.facts.values() for end in fact.ends]
    wanted = list(dict.fromkeys([*reached[:cut], *others, *reached[cut:]]))[: config.max_entities]
    known_before = {*within}
    further = [id_ for id_ in wanted if id_ not in known_before and id_ not in mentions]
    if further:
        more, more_cosines = yield from _read_mentions(query, further, config)
        mentions, cosines = join_mentions([mentions, more]), {**cosines, **more_cosines}
    return merged, _sort_groups(mentions, wanted), {**cosines, **own_cosines}


def _sort_groups(mentions: MentionColumns, wanted: Sequence[str]) -> MentionColumns:
    """Return the mentions of wanted entities, in the order of these."""
    order = dict(zip(wanted, range(len(wanted)), strict=True))
    places = [place for place, id_ in enumerate(mentions.of) if id_ in order]
    return mentions.take(sorted(places, key=lambda place: order[mentions.of[place]]))


def _read_mentions(
    query: Query, entities: Sequence[str], config: WalkConfig, *, keys: Sequence[str] = (), max_per_key: int = 0
) -> Reads[tuple[MentionColumns, Mapping[str, float]]]:
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


def read_entity_facts(query: Query, entities: Sequence[str], config: WalkConfig) -> Reads[FactColumns]:
    """Read the facts of entities that a walk may follow, strongest first, then pairs if all predicates count."""
    facts, pairs = yield from read_together(
        read(
            Store.facts_of_entities,
            entities,
            per_entity=config.facts_per_entity,
            predicates=config.predicates,
            statuses=config.statuses,
            as_of=query.as_of,
            where=query.where,
        ),
        read_nothing()
        if config.predicates or "confirmed" not in config.statuses
        else _read_pairs(query, entities, config),
    )
    current = yield from select_current(
        query, facts, config.single_valued, per_entity=config.facts_per_entity, statuses=config.statuses
    )
    if pairs is None or not pairs.size:
        return current
    joined = join_facts([current, pairs])
    places = group_pairs((id_, place) for place, id_ in enumerate(joined.of))
    return joined.take([place for of_one in places.values() for place in of_one[: config.facts_per_entity]])


def _read_pairs(query: Query, entities: Sequence[str], config: WalkConfig) -> Reads[FactColumns]:
    return read(
        Store.pairs_of_entities,
        entities,
        per_entity=config.facts_per_entity,
        passages_per_entity=config.passages_per_entity,
        where=query.where,
    )


def read_passage_facts(
    query: Query, passages: Sequence[str], config: WalkConfig, *, per_passage: int
) -> Reads[FactColumns]:
    """Read the facts that passages state and that a walk may follow."""
    stated = yield from read(
        Store.facts_of_passages,
        passages,
        per_passage=per_passage,
        statuses=config.statuses,
        as_of=query.as_of,
        where=query.where,
    )
    stated = yield from select_stated(query, stated, config.single_valued)
    if not config.predicates:
        return stated
    wanted = set(map(normalise, config.predicates))
    return stated.take([place for place in range(stated.size) if normalise(stated.make(place).predicate) in wanted])


def compute_weights(facts: FactColumns, trust: TrustConfig, now: datetime) -> Numbers:
    """Return the weight of each fact in a walk: its own weight times the trust in it.

    Uses do not count here, so that the same question always gets the same scores.
    """
    days = ((now - EPOCH) // MICROSECOND - facts.recorded_at) // MICROSECONDS_PER_DAY
    return facts.weights / 10 * compute_trust(facts, trust, days)


def compute_trust(facts: FactColumns, trust: TrustConfig, days: Places) -> Numbers:
    """Return the trust in each fact by its confidence, source, age and status (S12).

    Ages are in whole days, so that an answer stays the same for a day.
    """
    decay = (1.0 - trust.decay_per_week) ** np.maximum(days / DAYS_PER_WEEK - trust.grace_weeks, 0.0)
    sources = np.array([trust.get_weight(source) for source in SOURCES])[facts.sources]
    statuses = np.where(facts.statuses == STATUSES.index("confirmed"), trust.confirmed, 1.0)
    product: Numbers = facts.confidences * sources * decay * statuses
    return product


def _rank_promising(facts: FactColumns, walked: set[str], cosines: Numbers) -> list[str]:
    """Return the entities not walked yet, by the best cosine of a fact that leads to each."""
    ends = facts.subjects + facts.objects
    both = np.maximum(np.concatenate([cosines, cosines]), -1.0)
    order = np.argsort(both, kind="stable")  # of one entity the greatest is the last, and stays
    best = dict(zip(map(ends.__getitem__, order.tolist()), both[order].tolist(), strict=True))
    return [id_ for _, id_ in sorted([(-best[id_], id_) for id_ in best.keys() - walked - {""}])]
