"""Frozen configurations with the specification's defaults, and named recipes made of them.

Each default carries the number of the requirement it comes from (S1 to S21). Configuration is passed to
a stage and never kept by it; the environment is read in `waylore.settings.load` only. S21 asks that
everything be tunable: `dataclasses.replace` makes any variant.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal, TypeAlias

from waylore.types.knowledge import LIVE, Source, Status


@dataclass(frozen=True, slots=True)
class Hybrid:
    """S1: vectors and BM25, merged by weight after min-max, or by reciprocal rank (S15)."""

    fusion: Literal["weighted", "rrf"] = "weighted"
    vector_weight: float = 0.7  # S1
    text_weight: float = 0.3  # S1
    rrf_k: int = 60  # S15
    depth: int = 4  # candidates of each search, as a multiple of top_k
    candidates: int = 80  # and at the least, so that a small top_k does not change the order

    def reach(self, top_k: int) -> int:
        """How many candidates each search gives."""
        return max(self.depth * top_k, self.candidates)


@dataclass(frozen=True, slots=True)
class Linking:
    """S2, S3: which entities the question names, without a model."""

    ways: tuple[Literal["names", "nearest"], ...] = ("names", "nearest")  # the first that finds any
    longest_name: int = 10  # S2 says 3 words; names have more
    namesakes: int = 5  # that one name may link, those in most passages first
    nearest_threshold: float = 0.75  # S3
    nearest_limit: int = 3  # S3
    hybrid_passages: int = 20  # whose facts may link
    facts_per_passage: int = 50
    facts_per_entity: int = 50
    facts: int = 5  # that lend their ends to the walk; more than 5 hurts


@dataclass(frozen=True, slots=True)
class Resolution:
    """Which names are taken for one thing, and which for alike (`retrieval/graph/same_as.py` says how)."""

    near_identical: float = 0.93  # the cosine of two names that may be one
    resembling: float = 0.85  # and of two that look alike
    most: int = 3  # others that one key may find; a key that more share tells nothing
    facts_per_entity: int = 8  # that say what an entity is the same as
    links: int = 8  # entities that the question names and that are looked at
    ends: int = 16  # and entities that facts lead to, the most promising
    same_weight: float = 10.0  # of the step from one name to the other
    resembling_weight: float = 1.0  # the least that a fact has: more did harm


@dataclass(frozen=True, slots=True)
class Gate:
    """S6: whether the evidence is good enough to walk the graph."""

    specificity: float = 0.3  # S6
    recognition: float = 0.3  # S6
    quality: float = 0.4  # S6
    min_confidence: float = 0.5  # S6
    min_graph_score: float = 0.3  # S6, S10


@dataclass(frozen=True, slots=True)
class Trust:
    """S12: how much a fact weighs for where it came from, its age, its use and its status."""

    user_edit: float = 2.0
    file: float = 1.5
    system: float = 1.2
    conversation: float = 1.0
    decay_per_week: float = 0.05
    grace_weeks: float = 1.0
    usage: float = 0.5
    confirmed: float = 1.2

    def of_source(self, source: Source) -> float:
        """The weight of a source."""
        return float(getattr(self, source))


@dataclass(frozen=True, slots=True)
class Walk:
    """S4, S12: the bounded spread of activation over facts and mentions."""

    max_hops: int = 1  # S4, up to 3; S12 says 2
    predicates: tuple[str, ...] = ()  # S4, all if empty
    functional: tuple[str, ...] = ()  # of which a subject has one object at a time, the newest
    statuses: tuple[Status, ...] = LIVE  # S12
    restart: float = 0.5  # S4's decay of 1, 1/2, 1/4
    facts_per_entity: int = 30
    passages_per_entity: int = 8
    entities_per_passage: int = 30
    frontier: int = 40  # entities that one round goes on from, the most promising first
    max_entities: int = 150  # whose passages are read
    max_facts: int = 10_000
    start_at_passages: float = 0.003  # of the mass, at each of the best hybrid passages
    question: float = 4.0  # how much an edge is worth for bearing on the question
    own_passage: float = 4.0  # how much more a passage is worth to the entity it is about
    rounds: int = 12  # of spreading; with restart 0.5 the rest is under 0.03 %


Weights: TypeAlias = tuple[tuple[str, float], ...]


@cache
def shipped_weights() -> Mapping[str, Weights]:
    """The weights that the package ships, by judgement; `python -m waylore.evaluation.fit` makes them."""
    tables = json.loads(files("waylore").joinpath("chain_weights.json").read_text("utf-8"))
    return MappingProxyType({judgement: tuple(table.items()) for judgement, table in tables.items()})


@dataclass(frozen=True, slots=True)
class Chain:
    """How what the walk reached is ranked: which candidates, and what each feature weighs in two judgements."""

    walked: int = 40  # candidates from the walk, the best
    hybrid: int = 20  # and from hybrid search
    facts_per_passage: int = 50
    entities_per_passage: int = 30
    common: int = 8  # candidates that mention an entity, above which it leads only to its own passage
    min_graph_score: float = 0.0  # S10, of what hybrid search does not have among its top K
    first: Weights = field(default_factory=lambda: shipped_weights()["first"])
    second: Weights = field(default_factory=lambda: shipped_weights()["second"])


@dataclass(frozen=True, slots=True)
class Merge:
    """S5: how the graph's passages join the hybrid ones; additive, whatever the numbers."""

    hybrid_weight: float = 0.7  # S5
    graph_weight: float = 0.3  # S5
    max_graph_passages: int | None = 4  # S5; as many as top_k if None
    max_facts: int = 30  # S12, that an answer tells


@dataclass(frozen=True, slots=True)
class Expansion:
    """S11: queries of the form "seed neighbour", fused by reciprocal rank."""

    results_per_query: int = 3  # S11
    max_queries: int = 10


@dataclass(frozen=True, slots=True)
class Context:
    """S9, S13: the text handed to a model."""

    max_tokens: int = 4_000  # S9
    graph_tokens: int = 500  # S9
    include_relationships: bool = True  # S9
    include_sources: bool = True  # S9


@dataclass(frozen=True, slots=True)
class Cache:
    """S14: answers kept for a minute, keyed by the collection's version."""

    seconds: float = 60.0  # S14
    size: int = 1_024


@dataclass(frozen=True, slots=True)
class Cells:
    """How a federation asks its cells, and how a collection moves from one to another.

    Whoever moves a collection must know the `place_seconds` and `read_seconds` of those who read it.
    """

    read_seconds: float = 5.0  # that a reading verb may take in one cell, both tries together
    hedge_seconds: float = 0.05  # after which a second try is sent, if the cell's own p95 is not longer
    threads: int = 16  # reads that one cell is asked for at once
    failures: int = 3  # in a row, after which a cell is left alone
    rest_seconds: float = 10.0  # for which it is left alone before one question tries it again
    place_seconds: float = 0.5  # for which it is remembered where a collection lives
    stop_seconds: float = 20.0  # for which a move may keep writers waiting
    wait_seconds: float = 60.0  # that a writer waits for a move to let him write
    batch: int = 256  # documents that a move reads and writes at once
    sweeps: int = 10  # comparisons before a move stops writers to catch up with them
