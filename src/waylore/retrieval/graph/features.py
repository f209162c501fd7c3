"""Compute the features that rank candidates along a chain, and the bridges between candidates.

A *bridge* into a candidate is a fact that another candidate states and that names an entity this one mentions.
Candidates are judged twice: first by themselves and by the best bridge into each, then also by the first
judgement of the candidates at the other ends of their bridges. Each feature belongs to one search, so that an
explanation can give each search its share. Pure arithmetic: it reads neither the store nor a model.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, repeat
from operator import eq
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from waylore.config import ChainConfig, Weights
from waylore.retrieval.graph.coverage import Coverage, compute_coverage, compute_need, find_best_at, join_coverage
from waylore.types.columns import FactColumns, MentionColumns, Numbers, join_facts, join_mentions
from waylore.types.search import Query

Places = npt.NDArray[np.int64]
Columns = Mapping[str, Numbers]

FIRST_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "cosine": "vector",  # of the question and the candidate
        "cosine_below_best": "vector",  # minus the best candidate's cosine
        "hybrid_rank": "vector",  # 1 / rank by cosine and BM25 together
        "keyword": "keyword",  # BM25 as a share of the best
        "activation": "walk",  # its logarithm, scaled to 0..1
        "is_named": "walk",  # 1 / number of candidates about an entity that the question names; 0 for other candidates
        "names": "walk",  # number of the question's entities that the candidate mentions
        "best_fact": "walk",  # the best cosine of a fact that the candidate states
        "bridge_cosine": "chain",  # of the candidate and the question plus the bridge's fact
        "bridge_fact": "chain",  # the cosine of the bridge's fact
        "bridge_source": "chain",  # the cosine of the candidate that the bridge comes from
        "bridge_activation": "chain",  # the activation of that candidate
        "bridge_to_own": "chain",  # whether the bridge leads to the entity that the candidate is about
        "is_bridged": "chain",  # whether there is a bridge at all
        "bridges": "chain",  # the logarithm of the number of bridges
        "from_named": "chain",  # whether a bridge comes from a passage about an entity of the question
        "best_cosine": "chain",  # the greater of the candidate's own cosine and its bridge's
        "coverage": "keyword",  # the weights of the question's terms that the candidate has
        "title_coverage": "keyword",  # the same of its title
        "title_share": "keyword",  # the share of the question's terms among those of its title
        "rarest_term": "keyword",  # the weight of the rarest term that it has, as a share of the greatest weight
        "scarce_terms": "keyword",  # the weights of its terms, each divided by the number of candidates with the term
        "pair_coverage": "chain",  # the best coverage of the candidate and another end of its bridges
        "pair_gain": "chain",  # how much it adds at best to the coverage of a candidate with a bridge into it
        "pair_rest": "chain",  # the same as a share of what that candidate leaves open
        "fact_coverage": "keyword",  # the best coverage of a fact that it states
        "bridge_coverage": "chain",  # the best coverage of the candidate and the fact of a bridge into it
    }
)
SECOND_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        **FIRST_FEATURES,
        "first_rank": "chain",  # 1 / rank by the first judgement
        "source_odds": "chain",  # the best first judgement of a candidate with a bridge into this one
        "own_source_odds": "chain",  # the same, of bridges that lead to the entity this one is about
        "target_odds": "chain",  # the best first judgement of a candidate that this one has a bridge into
        "own_target_odds": "chain",  # the same, of candidates that are about the entity of the bridge
        "need": "keyword",  # the weights of its terms, each times the chance that no other right candidate has it
        "need_share": "keyword",  # the same as a share of its coverage
        "best_pair_coverage": "chain",  # `pair_coverage` of the bridge from the candidate with the best first judgement
        "best_pair_rest": "chain",  # `pair_rest` of that bridge
        "best_pair_open": "chain",  # what both leave open
    }
)
COVERAGE_FEATURES = frozenset(
    """coverage title_coverage title_share rarest_term scarce_terms pair_coverage pair_gain pair_rest fact_coverage
    bridge_coverage need need_share best_pair_coverage best_pair_rest best_pair_open""".split()
)  # not used for long pages, where they did not help
ODDS = "odds"  # the log-odds of a judgement, as a feature of one that corrects it
MIN_LOG_ODDS, MAX_LOG_ODDS = -6.0, 4.0  # bounds of the first judgement in second features
LONG_SHARE = 0.4  # of the candidates have another of their page before them, from which on all pages count as long
# So few rows that BLAS starts no threads, which would spin long after the product.
ROWS_PER_PRODUCT = 16


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates in columns: vectors, scores, the facts they state and the entities they mention.

    Facts and mentions are in the order of the candidates; `stating` and `mentioning` have the place of the candidate
    of each. `documents` has the document of each candidate.
    """

    ids: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    keyword: Numbers
    activation: Numbers
    facts: FactColumns
    stating: Places
    mentions: MentionColumns
    mentioning: Places
    named: frozenset[str]
    documents: tuple[str, ...]
    coverage: Coverage


def join_pools(one: Pool, other: Pool) -> Pool:
    """Return a pool of the candidates of two pools of one question, which share none."""
    return Pool(
        ids=one.ids + other.ids,
        vectors=np.concatenate([one.vectors, other.vectors]),
        keyword=np.concatenate([one.keyword, other.keyword]),
        activation=np.concatenate([one.activation, other.activation]),
        facts=join_facts([one.facts, other.facts]),
        stating=np.concatenate([one.stating, other.stating + len(one.ids)]),
        mentions=join_mentions([one.mentions, other.mentions]),
        mentioning=np.concatenate([one.mentioning, other.mentioning + len(one.ids)]),
        named=one.named,
        documents=one.documents + other.documents,
        coverage=join_coverage(one.coverage, other.coverage),
    )


@dataclass(frozen=True, slots=True)
class Bridges:
    """All bridges of a pool in columns: source and target candidate, the fact, and the end that it shares."""

    source: Places
    target: Places
    fact: Places
    end: Places
    is_own: Numbers


def find_bridges(pool: Pool, *, common: int) -> Bridges:
    """Find the bridges between candidates, by source, fact, end and target.

    An entity that more than `common` candidates mention leads only to the passage that is about it.
    """
    codes = dict(zip(dict.fromkeys(pool.mentions.entities), count()))
    mentioned = np.array([*map(codes.__getitem__, pool.mentions.entities)], np.int64)
    subjects = np.array([*map(codes.get, pool.facts.subjects, repeat(-1))], np.int64)
    objects = np.array([*map(codes.get, pool.facts.objects, repeat(-1))], np.int64)
    objects[np.array([*map(eq, pool.facts.subjects, pool.facts.objects)], np.bool_)] = -1
    ends = np.column_stack([subjects, objects]).ravel()  # two for each fact; -1 for one that no candidate mentions
    order, first, number = _group_by_entity(mentioned, len(codes))
    known = np.flatnonzero(ends >= 0)
    end = np.repeat(known, number[ends[known]])
    mention = order[_expand(first[ends[known]], number[ends[known]])]
    source, target, entity = pool.stating[end // 2], pool.mentioning[mention], mentioned[mention]
    is_own = pool.mentions.is_own[mention]
    is_about = np.zeros((len(pool.ids), len(codes)), np.bool_)
    is_about[pool.mentioning[pool.mentions.is_own], mentioned[pool.mentions.is_own]] = True
    kept = ~is_about[source, entity] & (target != source) & (is_own | (number[entity] <= common))
    return Bridges(source[kept], target[kept], end[kept] // 2, end[kept] % 2, is_own[kept].astype(np.float64))


def _group_by_entity(mentioned: Places, entities: int) -> tuple[Places, Places, Places]:
    """Return the places of mentions by entity, and for each entity its first among them and their number."""
    number = np.bincount(mentioned, minlength=entities)
    return np.argsort(mentioned, kind="stable"), np.cumsum(number) - number, number


def _expand(first: Places, number: Places) -> Places:
    """Return `first`, `first` + 1 and so on, `number` places for each."""
    before: Places = np.cumsum(number) - number
    return np.arange(number.sum()) + np.repeat(first - before, number)


def compute_features(pool: Pool, query: Query, bridges: Bridges) -> tuple[dict[str, Numbers], dict[int, int]]:
    """Return the features of the first judgement by name, and the number of the best bridge by candidate."""
    assert query.vector is not None  # noqa: S101 (without vectors there is no pool)
    cosine = query.map_cosines(np.einsum("ij,j->i", pool.vectors, query.vector).astype(np.float64))
    fact_cosines = pool.facts.compute_cosines(query)
    is_named = np.array([id_ in pool.named for id_ in pool.mentions.entities], np.bool_)
    own = {
        "cosine": cosine,
        "cosine_below_best": cosine - cosine.max(),
        "hybrid_rank": invert_ranks(cosine + 0.15 * pool.keyword),
        "keyword": pool.keyword,
        "activation": _scale(np.log(pool.activation + 1e-5)),
        "is_named": _share_names(pool, is_named & pool.mentions.is_own),
        "names": _count_at(pool.mentioning[is_named], len(pool.ids)),
        "best_fact": _find_best_facts(pool, fact_cosines),
    }
    bridged, best = _compute_bridge_features(pool, bridges, own, fact_cosines, query)
    covered = compute_coverage(pool.coverage, pool.stating, bridges.source, bridges.target, bridges.fact)
    return {**own, **bridged, "best_cosine": np.maximum(cosine, bridged["bridge_cosine"]), **covered}, best


def compute_second_features(first: Columns, odds: Numbers, bridges: Bridges, coverage: Coverage) -> dict[str, Numbers]:
    """Return the features of the second judgement: those of the first, and log-odds that bridges pass on."""
    clipped = np.clip(odds, MIN_LOG_ODDS, MAX_LOG_ODDS)
    own = bridges.is_own > 0

    def pass_on(places: Places, origins: Places) -> Numbers:
        return find_best_at(places, clipped[origins], len(odds), minimum=MIN_LOG_ODDS)

    return {
        **first,
        **compute_need(coverage, odds, bridges.source, bridges.target),
        "first_rank": invert_ranks(odds),
        "source_odds": pass_on(bridges.target, bridges.source),
        "own_source_odds": pass_on(bridges.target[own], bridges.source[own]),
        "target_odds": pass_on(bridges.source, bridges.target),
        "own_target_odds": pass_on(bridges.source[own], bridges.target[own]),
    }


def blend_weights(config: ChainConfig, long: float) -> tuple[Weights, Weights]:
    """Return the weights of both judgements for the candidates of a question, by how far these are of long pages.

    If each candidate is a page of its own, a name leads to the passage that tells of it. A long page has many passages
    that its name leads to, so their own words decide. Weights that were tuned to the collection correct the second.
    """
    second = _blend(config.second, config.long_second, long)
    return _blend(config.first, config.long_first, long), correct_weights(second, config.tuned)


def correct_weights(weights: Weights, correction: Weights) -> Weights:
    """Return weights after a correction, in which `odds` is the factor of the weights before; none if it is empty."""
    own = dict(correction) or {ODDS: 1.0}
    corrected = {name: own[ODDS] * weight for name, weight in weights}
    added = {name: corrected.get(name, 0.0) + weight for name, weight in own.items() if name != ODDS}
    return tuple({**corrected, **added}.items())


def compute_long_share(pool: Pool) -> float:
    """Return how far the candidates count as parts of long pages: 0 if each is a page of its own, at most 1."""
    return min((1.0 - len({*pool.documents}) / len(pool.ids)) / LONG_SHARE, 1.0)


def _blend(of_short: Weights, of_long: Weights, long: float) -> Weights:
    """Return the weights of short pages, mixed with those of long ones; a feature that these lack has the weight 0."""
    weights = dict(of_long)
    return tuple((name, (1.0 - long) * weight + long * weights.get(name, 0.0)) for name, weight in of_short)


def _compute_bridge_features(
    pool: Pool, bridges: Bridges, own: Columns, fact_cosines: Numbers, query: Query
) -> tuple[dict[str, Numbers], dict[int, int]]:
    """Compute the features of candidates that come from the bridges into them."""
    size, source, target = len(pool.ids), bridges.source, bridges.target
    values = {
        "bridge_cosine": _compute_bridge_cosines(pool, bridges, own["cosine"], fact_cosines, query),
        "bridge_fact": fact_cosines[bridges.fact],
        "bridge_source": own["cosine"][source],
        "bridge_activation": own["activation"][source],
        "bridge_to_own": bridges.is_own,
        "is_bridged": np.ones(len(source)),
    }
    merit = values["bridge_cosine"] + 0.3 * values["bridge_fact"] + 0.3 * values["bridge_source"]
    order = np.argsort(merit + 0.02 * bridges.is_own, kind="stable")
    best = dict(zip(target[order].tolist(), order.tolist(), strict=True))
    columns = {name: np.zeros(size) for name in values}
    for name, value in values.items():
        columns[name][list(best)] = value[list(best.values())]
    columns["bridges"] = np.log1p(np.bincount(target, minlength=size))
    columns["from_named"] = find_best_at(target, own["is_named"][source], size)
    return columns, best


def _compute_bridge_cosines(
    pool: Pool, bridges: Bridges, cosine: Numbers, fact_cosines: Numbers, query: Query
) -> Numbers:
    """Return the cosine of each bridge's target and unit(question + fact)."""
    if not len(bridges.source):
        return np.zeros(0)
    used = np.flatnonzero(np.bincount(bridges.fact))  # np.unique would import numpy.ma, which takes 40 ms
    row = np.cumsum(np.bincount(bridges.fact) > 0) - 1
    dimension = pool.vectors.shape[1]
    stacked = (
        pool.facts.take_vectors(used) if pool.facts.has_vector.any() else np.zeros((len(used), dimension), np.float32)
    )
    slices = [stacked[at : at + ROWS_PER_PRODUCT] @ pool.vectors.T for at in range(0, len(stacked), ROWS_PER_PRODUCT)]
    table = np.where(pool.facts.has_vector[used, None], query.map_cosines(np.concatenate(slices)), 0.0)
    sums: Numbers = cosine[bridges.target] + table[row[bridges.fact], bridges.target]
    return sums / np.sqrt(np.maximum(2.0 + 2.0 * fact_cosines[bridges.fact], 1e-9))


def _share_names(pool: Pool, chosen: npt.NDArray[np.bool_]) -> Numbers:
    """Return for each candidate the greatest share that it has in an entity which the chosen mentions name."""
    rows = np.flatnonzero(chosen)
    counts = Counter(pool.mentions.entities[row] for row in rows.tolist())
    shares = np.array([1.0 / counts[pool.mentions.entities[row]] for row in rows.tolist()])
    return find_best_at(pool.mentioning[rows], shares, len(pool.ids))


def _find_best_facts(pool: Pool, fact_cosines: Numbers) -> Numbers:
    """Return the best cosine of a fact that each candidate states, 0.5 if it states none."""
    best = find_best_at(pool.stating, fact_cosines, len(pool.ids), minimum=-1.0)
    best[_count_at(pool.stating, len(pool.ids)) == 0] = 0.5
    return best


def _count_at(places: Places, size: int) -> Numbers:
    return np.bincount(places, minlength=size).astype(np.float64)


def invert_ranks(scores: Numbers) -> Numbers:
    """Return 1 for the best score, 1/2 for the next, and so on."""
    ranks: Numbers = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return 1.0 / ranks


def _scale(values: Numbers) -> Numbers:
    low, high = values.min(), values.max()
    scaled: Numbers = (values - low) / (high - low + 1e-9)
    return scaled
