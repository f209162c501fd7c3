"""Compute the features that rank candidates along a chain, and the bridges between candidates.

A *bridge* into a candidate is a fact that another candidate states and that names an entity this one mentions.
Candidates are judged twice: first by themselves and by the best bridge into each, then also by the first
judgement of the candidates at the other ends of their bridges. Each feature belongs to one search, so that an
explanation can give each search its share. Pure arithmetic: it reads neither the store nor a model.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from waylore.retrieval.graph.similarity import compute_cosines
from waylore.types.knowledge import Fact, Mention, Vector

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Columns = Mapping[str, Numbers]

FIRST_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "cosine": "vector",  # of the question and the candidate
        "cosine_below_best": "vector",  # minus the best candidate's cosine
        "hybrid_rank": "vector",  # 1 / rank by cosine and BM25 together
        "keyword": "keyword",  # BM25 as a share of the best
        "activation": "walk",  # its logarithm, scaled to 0..1
        "is_named": "walk",  # whether the candidate is about an entity that the question names
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
    }
)
MIN_LOG_ODDS, MAX_LOG_ODDS = -6.0, 4.0  # bounds of the first judgement in second features
# So few rows that BLAS starts no threads, which would spin long after the product.
ROWS_PER_PRODUCT = 16


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates in columns: vectors, scores, the facts they state and the entities they mention."""

    ids: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    keyword: Numbers
    activation: Numbers
    facts: tuple[tuple[Fact, ...], ...]
    mentions: tuple[tuple[Mention, ...], ...]
    named: frozenset[str]


@dataclass(frozen=True, slots=True)
class Bridges:
    """All bridges of a pool in columns: source and target candidate, the fact, and the end that it shares."""

    facts: tuple[Fact, ...]
    source: Places
    target: Places
    fact: Places
    end: Places
    is_own: Numbers


def find_bridges(pool: Pool, *, common: int) -> Bridges:
    """Find the bridges between candidates.

    An entity that more than `common` candidates mention leads only to the passage that is about it.
    """
    mentioning: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for place, mentions in enumerate(pool.mentions):
        for mention in mentions:
            mentioning[mention.entity_id].append((place, mention.is_own))
    facts: list[Fact] = []
    rows: list[tuple[int, int, int, int, bool]] = []
    for source, stated in enumerate(pool.facts):
        own = {m.entity_id for m in pool.mentions[source] if m.is_own}
        for fact in stated:
            for end, entity_id in enumerate(dict.fromkeys(fact.ends)):
                if entity_id not in own and (targets := mentioning.get(entity_id)):
                    is_rare = len(targets) <= common
                    rows += [
                        (source, target, len(facts), end, is_own)
                        for target, is_own in targets
                        if target != source and (is_own or is_rare)
                    ]
            facts.append(fact)
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    columns = table.T
    return Bridges(tuple(facts), columns[0], columns[1], columns[2], columns[3], columns[4].astype(np.float64))


def compute_features(pool: Pool, question: Vector, bridges: Bridges) -> tuple[dict[str, Numbers], dict[int, int]]:
    """Return the features of the first judgement by name, and the number of the best bridge by candidate."""
    cosine = np.einsum("ij,j->i", pool.vectors, question).astype(np.float64)
    fact_cosines = np.array(compute_cosines(question, bridges.facts))
    own = {
        "cosine": cosine,
        "cosine_below_best": cosine - cosine.max(),
        "hybrid_rank": _invert_ranks(cosine + 0.15 * pool.keyword),
        "keyword": pool.keyword,
        "activation": _scale(np.log(pool.activation + 1e-5)),
        "is_named": np.array([float(_is_named(ms, pool.named)) for ms in pool.mentions]),
        "names": np.array([float(len(pool.named.intersection(m.entity_id for m in ms))) for ms in pool.mentions]),
        "best_fact": _find_best_facts(pool, fact_cosines),
    }
    bridged, best = _compute_bridge_features(pool, question, bridges, own, fact_cosines)
    return {**own, **bridged, "best_cosine": np.maximum(cosine, bridged["bridge_cosine"])}, best


def compute_second_features(first: Columns, odds: Numbers, bridges: Bridges) -> dict[str, Numbers]:
    """Return the features of the second judgement: those of the first, and log-odds that bridges pass on."""
    passed_on = np.clip(odds, MIN_LOG_ODDS, MAX_LOG_ODDS)
    own = bridges.is_own > 0
    return {
        **first,
        "first_rank": _invert_ranks(odds),
        "source_odds": _find_best_at(bridges.target, passed_on[bridges.source], len(odds)),
        "own_source_odds": _find_best_at(bridges.target[own], passed_on[bridges.source[own]], len(odds)),
        "target_odds": _find_best_at(bridges.source, passed_on[bridges.target], len(odds)),
        "own_target_odds": _find_best_at(bridges.source[own], passed_on[bridges.target[own]], len(odds)),
    }


def _compute_bridge_features(
    pool: Pool, question: Vector, bridges: Bridges, own: Columns, fact_cosines: Numbers
) -> tuple[dict[str, Numbers], dict[int, int]]:
    """Compute the features of candidates that come from the bridges into them."""
    size, source, target = len(pool.ids), bridges.source, bridges.target
    values = {
        "bridge_cosine": _compute_bridge_cosines(pool, question, bridges, own["cosine"], fact_cosines),
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
    columns["from_named"] = _find_best_at(target, own["is_named"][source], size, minimum=0.0)
    return columns, best


def _compute_bridge_cosines(
    pool: Pool, question: Vector, bridges: Bridges, cosine: Numbers, fact_cosines: Numbers
) -> Numbers:
    """Return the cosine of each bridge's target and unit(question + fact)."""
    if not len(bridges.source):
        return np.zeros(0)
    used, row = np.unique(bridges.fact, return_inverse=True)
    blank = np.zeros_like(question)
    vectors = [blank if (vector := bridges.facts[i].vector) is None else vector for i in used.tolist()]
    stacked = np.stack(vectors)
    slices = [stacked[at : at + ROWS_PER_PRODUCT] @ pool.vectors.T for at in range(0, len(stacked), ROWS_PER_PRODUCT)]
    table = np.concatenate(slices)
    sums: Numbers = cosine[bridges.target] + table[row, bridges.target]
    return sums / np.sqrt(np.maximum(2.0 + 2.0 * fact_cosines[bridges.fact], 1e-9))


def _find_best_facts(pool: Pool, fact_cosines: Numbers) -> Numbers:
    """Return the best cosine of a fact that each candidate states."""
    best, start = np.full(len(pool.ids), 0.5), 0
    for place, facts in enumerate(pool.facts):
        if facts:
            best[place] = fact_cosines[start : start + len(facts)].max()
        start += len(facts)
    return best


def _find_best_at(places: Places, values: Numbers, size: int, *, minimum: float = MIN_LOG_ODDS) -> Numbers:
    """Return the greatest of the values at each place."""
    best = np.full(size, minimum)
    np.maximum.at(best, places, values)
    return best


def _is_named(mentions: tuple[Mention, ...], named: frozenset[str]) -> bool:
    return any(mention.is_own and mention.entity_id in named for mention in mentions)


def _invert_ranks(scores: Numbers) -> Numbers:
    """Return 1 for the best score, 1/2 for the next, and so on."""
    ranks: Numbers = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return 1.0 / ranks


def _scale(values: Numbers) -> Numbers:
    low, high = values.min(), values.max()
    scaled: Numbers = (values - low) / (high - low + 1e-9)
    return scaled
