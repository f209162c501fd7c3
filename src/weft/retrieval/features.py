"""The features by which candidates are ranked along a chain, and the bridges between them. Pure arithmetic.

A *bridge* into a candidate is a fact that another candidate states and that names an entity this one mentions.
Each feature belongs to the search whose merit it is, so that an explanation can give each its share.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from weft.retrieval.similarity import cosines
from weft.types import Fact, Mention, Vector

Numbers = npt.NDArray[np.float64]

FEATURES: Mapping[str, str] = MappingProxyType(
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
class Bridge:
    """A fact of the candidate at `source` that names an entity which the one at `target` mentions."""

    source: int
    target: int
    fact: Fact
    entity_id: str
    is_own: bool


def bridges(pool: Pool, *, common: int) -> list[Bridge]:
    """All bridges between candidates; an entity that many of them mention leads only to its own passage."""
    mentioning: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for place, mentions in enumerate(pool.mentions):
        for mention in mentions:
            mentioning[mention.entity_id].append((place, mention.is_own))
    found = []
    for source, facts in enumerate(pool.facts):
        own = {m.entity_id for m in pool.mentions[source] if m.is_own}
        for fact in facts:
            for entity_id in fact.ends:
                if entity_id in own or entity_id not in mentioning:
                    continue
                is_common = len(mentioning[entity_id]) > common
                found += [
                    Bridge(source, target, fact, entity_id, is_own)
                    for target, is_own in mentioning[entity_id]
                    if target != source and (is_own or not is_common)
                ]
    return found


def features(
    pool: Pool, question: Vector, found: Sequence[Bridge]
) -> tuple[dict[str, Numbers], dict[int, Bridge]]:
    """Every feature of every candidate by name, and the best bridge into each that has one."""
    cosine = (pool.vectors @ question).astype(np.float64)
    activation = _scaled(np.log(pool.activation + 1e-5))
    named = np.array([float(any(m.is_own and m.entity_id in pool.named for m in ms)) for ms in pool.mentions])
    stated = cosines(question, (f for fs in pool.facts for f in fs))
    own = {
        "cosine": cosine,
        "cosine_below_best": cosine - cosine.max(),
        "hybrid_rank": 1.0 / (1.0 + _ranks(cosine + 0.15 * pool.lexical)),
        "lexical": pool.lexical,
        "activation": activation,
        "is_named": named,
        "names": np.array([float(len({m.entity_id for m in ms} & pool.named)) for ms in pool.mentions]),
        "best_fact": np.array([max((stated[f.id] for f in fs), default=0.5) for fs in pool.facts]),
    }
    bridged, best = _bridged(pool, question, found, own, stated)
    bridged["best_cosine"] = np.maximum(cosine, bridged["bridge_cosine"])
    return own | bridged, best


def _bridged(
    pool: Pool,
    question: Vector,
    found: Sequence[Bridge],
    own: Mapping[str, Numbers],
    stated: Mapping[str, float],
) -> tuple[dict[str, Numbers], dict[int, Bridge]]:
    """The features that candidates owe to the bridges into them."""
    size = len(pool.ids)
    source = np.array([b.source for b in found], dtype=int)
    target = np.array([b.target for b in found], dtype=int)
    is_own = np.array([float(b.is_own) for b in found])
    fact = np.array([stated[b.fact.id] for b in found])
    cosine = _along(pool, question, found, own["cosine"], fact)
    merit = cosine + 0.3 * fact + 0.3 * own["cosine"][source] + 0.02 * is_own
    best = {int(target[i]): int(i) for i in np.argsort(merit, kind="stable")}
    to, chosen = np.array(list(best), dtype=int), np.array(list(best.values()), dtype=int)
    values = {
        "bridge_cosine": cosine,
        "bridge_fact": fact,
        "bridge_source": own["cosine"][source],
        "bridge_activation": own["activation"][source],
        "bridge_to_own": is_own,
        "is_bridged": np.ones(len(found)),
    }
    columns = {name: np.zeros(size) for name in values}
    for name, value in values.items():
        columns[name][to] = value[chosen]
    columns["bridges"] = np.log1p(np.bincount(target, minlength=size))
    columns["from_named"] = np.zeros(size)
    np.maximum.at(columns["from_named"], target, own["is_named"][source])
    return columns, {place: found[i] for place, i in best.items()}


def _along(pool: Pool, question: Vector, found: Sequence[Bridge], cosine: Numbers, fact: Numbers) -> Numbers:
    """The cosine of each bridge's target and unit(question + fact)."""
    vectors = {b.fact.id: b.fact.vector for b in found}
    places = {id_: place for place, id_ in enumerate(vectors)}
    blank = np.zeros_like(question)
    table = np.stack([blank if v is None else v for v in vectors.values()] or [blank]) @ pool.vectors.T
    rows = np.array([places[b.fact.id] for b in found], dtype=int)
    target = np.array([b.target for b in found], dtype=int)
    along: Numbers = (cosine[target] + table[rows, target]) / np.sqrt(2.0 + 2.0 * fact)
    return along


def _ranks(scores: Numbers) -> npt.NDArray[np.int64]:
    """The rank of each, from 0, the best first."""
    return np.argsort(np.argsort(-scores, kind="stable"), kind="stable")


def _scaled(values: Numbers) -> Numbers:
    low, high = values.min(), values.max()
    scaled: Numbers = (values - low) / (high - low + 1e-9)
    return scaled
