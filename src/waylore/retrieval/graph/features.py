"""The features by which candidates are ranked along a chain, and the bridges between them. Pure arithmetic.

A *bridge* into a candidate is a fact that another candidate states and that names an entity this one mentions.
Candidates are judged twice: first by themselves and by the best bridge into each, then also by the first
judgement of the candidates at the other ends of their bridges. Each feature belongs to the search whose merit
it is, so that an explanation can give each its share.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from waylore.retrieval.graph.similarity import each_cosine
from waylore.types.knowledge import Fact, Mention, Vector

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Columns = Mapping[str, Numbers]

FIRST: Mapping[str, str] = MappingProxyType(
    {
        "cosine": "dense",  # of the question and the candidate
        "cosine_below_best": "dense",  # how far that is under the best candidate's
        "hybrid_rank": "dense",  # 1 / rank by cosine and words together
        "lexical": "lexical",  # BM25 as a share of the best
        "activation": "walk",  # its logarithm, scaled to 0..1
        "is_named": "walk",  # whether the candidate is about what the question names
        "names": "walk",  # how many of the entities that the question names it mentions
        "best_fact": "walk",  # the best cosine of a fact that the candidate states
        "bridge_cosine": "chain",  # of the candidate and the question plus the bridge's fact
        "bridge_fact": "chain",  # the cosine of the bridge's fact
        "bridge_source": "chain",  # the cosine of the candidate that the bridge comes from
        "bridge_activation": "chain",  # and its activation
        "bridge_to_own": "chain",  # whether the bridge leads to what the candidate is about
        "is_bridged": "chain",  # whether there is a bridge at all
        "bridges": "chain",  # the logarithm of how many there are
        "from_named": "chain",  # whether one comes from a passage about what the question names
        "best_cosine": "chain",  # the greater of the candidate's own cosine and its bridge's
    }
)
SECOND: Mapping[str, str] = MappingProxyType(
    {
        **FIRST,
        "first_rank": "chain",  # 1 / rank by the first judgement
        "source_odds": "chain",  # the best first judgement of a candidate with a bridge into this one
        "own_source_odds": "chain",  # of those whose bridge leads to what this one is about
        "target_odds": "chain",  # the best first judgement of a candidate that this one has a bridge into
        "own_target_odds": "chain",  # of those that are about what the bridge leads to
    }
)
LEAST, MOST = -6.0, 4.0  # log-odds that a first judgement may pass on
SLICE = 16  # rows that are multiplied at a time: so few that BLAS wakes no threads, which would spin for long


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates side by side: their vectors and scores, what they state and what they mention."""

    ids: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    lexical: Numbers
    activation: Numbers
    facts: tuple[tuple[Fact, ...], ...]
    mentions: tuple[tuple[Mention, ...], ...]
    named: frozenset[str]


@dataclass(frozen=True, slots=True)
class Bridges:
    """All bridges of a pool, in columns: from which candidate to which, by which fact, to which of its ends."""

    facts: tuple[Fact, ...]
    source: Places
    target: Places
    fact: Places
    end: Places
    is_own: Numbers


def bridges(pool: Pool, *, common: int) -> Bridges:
    """The bridges between candidates; an entity that many of them mention leads only to its own passage."""
    mentioning: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for place, mentions in enumerate(pool.mentions):
        for mention in mentions:
            mentioning[mention.entity_id].append((place, mention.is_own))
    facts: list[Fact] = []
    found: list[tuple[int, int, int, int, bool]] = []
    for source, stated in enumerate(pool.facts):
        own = {m.entity_id for m in pool.mentions[source] if m.is_own}
        for fact in stated:
            for end, entity_id in enumerate(dict.fromkeys(fact.ends)):
                if entity_id not in own and (targets := mentioning.get(entity_id)):
                    is_rare = len(targets) <= common
                    found += [
                        (source, target, len(facts), end, is_own)
                        for target, is_own in targets
                        if target != source and (is_own or is_rare)
                    ]
            facts.append(fact)
    table = np.array(found, dtype=np.int64).reshape(-1, 5)
    of = table.T
    return Bridges(tuple(facts), of[0], of[1], of[2], of[3], of[4].astype(np.float64))


def features(pool: Pool, question: Vector, found: Bridges) -> tuple[dict[str, Numbers], dict[int, int]]:
    """The features of the first judgement by name, and the best bridge into each candidate that has one."""
    cosine = np.einsum("ij,j->i", pool.vectors, question).astype(np.float64)
    bearing = np.array(each_cosine(question, found.facts))
    own = {
        "cosine": cosine,
        "cosine_below_best": cosine - cosine.max(),
        "hybrid_rank": _inverse_ranks(cosine + 0.15 * pool.lexical),
        "lexical": pool.lexical,
        "activation": _scaled(np.log(pool.activation + 1e-5)),
        "is_named": np.array([float(_is_named(ms, pool.named)) for ms in pool.mentions]),
        "names": np.array(
            [float(len(pool.named.intersection(m.entity_id for m in ms))) for ms in pool.mentions]
        ),
        "best_fact": _best_facts(pool, bearing),
    }
    bridged, best = _bridged(pool, question, found, own, bearing)
    return {**own, **bridged, "best_cosine": np.maximum(cosine, bridged["bridge_cosine"])}, best


def second_features(first: Columns, odds: Numbers, found: Bridges) -> dict[str, Numbers]:
    """The features of the second judgement: those of the first, and what bridges tell of its log-odds."""
    told = np.clip(odds, LEAST, MOST)
    own = found.is_own > 0
    return {
        **first,
        "first_rank": _inverse_ranks(odds),
        "source_odds": _best_at(found.target, told[found.source], len(odds)),
        "own_source_odds": _best_at(found.target[own], told[found.source[own]], len(odds)),
        "target_odds": _best_at(found.source, told[found.target], len(odds)),
        "own_target_odds": _best_at(found.source[own], told[found.target[own]], len(odds)),
    }


def _bridged(
    pool: Pool, question: Vector, found: Bridges, own: Columns, bearing: Numbers
) -> tuple[dict[str, Numbers], dict[int, int]]:
    """The features that candidates owe to the bridges into them."""
    size, source, target = len(pool.ids), found.source, found.target
    values = {
        "bridge_cosine": _along(pool, question, found, own["cosine"], bearing),
        "bridge_fact": bearing[found.fact],
        "bridge_source": own["cosine"][source],
        "bridge_activation": own["activation"][source],
        "bridge_to_own": found.is_own,
        "is_bridged": np.ones(len(source)),
    }
    merit = values["bridge_cosine"] + 0.3 * values["bridge_fact"] + 0.3 * values["bridge_source"]
    order = np.argsort(merit + 0.02 * found.is_own, kind="stable")
    best = dict(zip(target[order].tolist(), order.tolist(), strict=True))
    columns = {name: np.zeros(size) for name in values}
    for name, value in values.items():
        columns[name][list(best)] = value[list(best.values())]
    columns["bridges"] = np.log1p(np.bincount(target, minlength=size))
    columns["from_named"] = _best_at(target, own["is_named"][source], size, least=0.0)
    return columns, best


def _along(pool: Pool, question: Vector, found: Bridges, cosine: Numbers, bearing: Numbers) -> Numbers:
    """The cosine of each bridge's target and unit(question + fact)."""
    if not len(found.source):
        return np.zeros(0)
    used, row = np.unique(found.fact, return_inverse=True)
    blank = np.zeros_like(question)
    vectors = [blank if (vector := found.facts[i].vector) is None else vector for i in used.tolist()]
    stacked = np.stack(vectors)
    slices = [stacked[at : at + SLICE] @ pool.vectors.T for at in range(0, len(stacked), SLICE)]
    table = np.concatenate(slices)
    together: Numbers = cosine[found.target] + table[row, found.target]
    return together / np.sqrt(np.maximum(2.0 + 2.0 * bearing[found.fact], 1e-9))


def _best_facts(pool: Pool, bearing: Numbers) -> Numbers:
    """For each candidate the best cosine of a fact that it states."""
    best, start = np.full(len(pool.ids), 0.5), 0
    for place, facts in enumerate(pool.facts):
        if facts:
            best[place] = bearing[start : start + len(facts)].max()
        start += len(facts)
    return best


def _best_at(places: Places, values: Numbers, size: int, *, least: float = LEAST) -> Numbers:
    """For each place the greatest value that stands there."""
    best = np.full(size, least)
    np.maximum.at(best, places, values)
    return best


def _is_named(mentions: tuple[Mention, ...], named: frozenset[str]) -> bool:
    return any(mention.is_own and mention.entity_id in named for mention in mentions)


def _inverse_ranks(scores: Numbers) -> Numbers:
    """1 for the best, 1/2 for the next, and so on."""
    ranks: Numbers = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return 1.0 / ranks


def _scaled(values: Numbers) -> Numbers:
    low, high = values.min(), values.max()
    scaled: Numbers = (values - low) / (high - low + 1e-9)
    return scaled
