"""Configuration of each stage as frozen dataclasses, with the defaults of the specification.

The comment after a default gives the requirement it comes from (S1 to S21). Each stage is passed its configuration and
does not store it. Only `waylore.settings.load` reads the environment. `dataclasses.replace` makes any variant (S21).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal, TypeAlias

from waylore.types.knowledge import LIVE, Source, Status

Fusion = Literal["anchored", "weighted", "rrf"]


@dataclass(frozen=True, slots=True)
class HybridConfig:
    """S1: vectors and BM25, merged by weight, or by reciprocal rank (S15).

    "anchored" reads both scores of every candidate and measures each from the best one. "weighted" scales each ranking
    to 0..1, and a candidate gets nothing from a ranking that lacks it.
    """

    fusion: Fusion = "anchored"
    vector_weight: float = 0.7  # S1
    text_weight: float = 0.3  # S1
    rrf_k: int = 60  # S15
    depth: int = 4  # candidates of each search, as a multiple of top_k; not with "anchored"
    candidates: int = 80  # minimum of each search; with "anchored" they are read in blocks of this number

    def count_candidates(self, top_k: int) -> int:
        """Return the number of candidates that each search returns."""
        if self.fusion == "anchored":
            return self.candidates * -(-top_k // self.candidates)
        return max(self.depth * top_k, self.candidates)


@dataclass(frozen=True, slots=True)
class LinkingConfig:
    """S2, S3: how to find the entities that a question names, without a model."""

    ways: tuple[Literal["names", "nearest"], ...] = ("names", "nearest")  # in this order, until one finds an entity
    max_name_words: int = 10  # words of a name; S2 says 3, but real names have more
    max_entities_per_name: int = 5  # entities with the most passages first
    nearest_threshold: float = 0.75  # S3
    nearest_limit: int = 3  # S3
    hybrid_passages: int = 20  # best passages whose facts may add entities
    facts_per_passage: int = 50
    facts_per_entity: int = 50
    max_facts: int = 5  # facts whose entities start the walk; more than 5 hurt


@dataclass(frozen=True, slots=True)
class ResolutionConfig:
    """When two names are treated as one thing, and when as similar (see `retrieval/graph/same_as.py`)."""

    near_identical: float = 0.93  # minimum cosine of two names that may be one
    resembling: float = 0.85  # minimum cosine of two similar names
    max_similar: int = 3  # entities that one key may find; a key of more entities is ignored
    facts_per_entity: int = 8  # facts that say that an entity is the same as another
    max_linked: int = 8  # entities of the question that are examined
    max_reached: int = 16  # entities at the end of facts that are examined, best first
    same_weight: float = 10.0  # weight of the step from one name to the other
    resembling_weight: float = 1.0  # the minimum weight of a fact; a higher weight did harm


@dataclass(frozen=True, slots=True)
class GateConfig:
    """S6: when the evidence is good enough to use the graph."""

    specificity: float = 0.3  # S6
    recognition: float = 0.3  # S6
    quality: float = 0.4  # S6
    min_confidence: float = 0.5  # S6
    min_graph_score: float = 0.3  # S6, S10


@dataclass(frozen=True, slots=True)
class TrustConfig:
    """S12: the weight of a fact by its source, age, use and status."""

    user_edit: float = 2.0
    file: float = 1.5
    system: float = 1.2
    conversation: float = 1.0
    decay_per_week: float = 0.05
    grace_weeks: float = 1.0
    usage: float = 0.5
    confirmed: float = 1.2

    def get_weight(self, source: Source) -> float:
        """Return the weight of a source."""
        return float(getattr(self, source))


@dataclass(frozen=True, slots=True)
class WalkConfig:
    """S4, S12: the bounded spread of activation over facts and mentions."""

    max_hops: int = 1  # S4, up to 3; S12 says 2
    predicates: tuple[str, ...] = ()  # S4; empty means all
    single_valued: tuple[str, ...] = ()  # predicates with one object at a time for each subject
    statuses: tuple[Status, ...] = LIVE  # S12
    restart: float = 0.5  # S4's decay of 1, 1/2, 1/4
    facts_per_entity: int = 30
    passages_per_entity: int = 8
    entities_per_passage: int = 30
    frontier: int = 40  # entities from which a round continues, best first
    max_entities: int = 150  # entities whose passages are read
    max_facts: int = 10_000
    start_at_passages: float = 0.003  # initial share of activation of each of the best hybrid passages
    question: float = 4.0  # weight of an edge's similarity to the question
    own_passage: float = 4.0  # factor for a passage that is about the entity
    rounds: int = 12  # with restart 0.5 the remaining activation is under 0.03 %


Weights: TypeAlias = tuple[tuple[str, float], ...]


@cache
def load_weights() -> Mapping[str, Weights]:
    """Return the weights of the package, by judgement; `python -m waylore.evaluation.fit` computes them."""
    tables = json.loads(files("waylore").joinpath("chain_weights.json").read_text("utf-8"))
    return MappingProxyType({judgement: tuple(table.items()) for judgement, table in tables.items()})


@cache
def load_conversation_weights() -> Mapping[str, Weights]:
    """Return the weights of turns of the package, with and without vectors.

    `python -m waylore.evaluation.conversations.fit` computes them.
    """
    tables = json.loads(files("waylore").joinpath("conversation_weights.json").read_text("utf-8"))
    return MappingProxyType({name: tuple(table.items()) for name, table in tables.items()})


@dataclass(frozen=True, slots=True)
class ConversationConfig:
    """How turns of conversations are ranked: the candidates, and the weights of features with and without vectors."""

    best: int = 40  # turns of each search; their neighbours are candidates too
    reach: int = 2  # candidates before and after each of these
    vectors: Weights = field(default_factory=lambda: load_conversation_weights()["vectors"])
    words: Weights = field(default_factory=lambda: load_conversation_weights()["words"])


@dataclass(frozen=True, slots=True)
class RelevanceTable:
    """The model of `is_relevant`: weights, typical values of questions with an answer, and the minimum score."""

    weights: Mapping[str, float]
    typical: Mapping[str, float]
    minimum: float


@cache
def load_relevance() -> RelevanceTable:
    """Return the model that the package ships; `python -m waylore.evaluation.fit_relevance` computes it."""
    return RelevanceTable(**json.loads(files("waylore").joinpath("relevance_weights.json").read_text("utf-8")))


@dataclass(frozen=True, slots=True)
class ChainConfig:
    """How passages reached by the walk are ranked: the candidates, and the weights of two judgements.

    `first` and `second` are for candidates that are pages of their own, `long_first` and `long_second` for candidates
    that share their pages. `tuned` corrects the second judgement for one collection; `waylore tune` computes it.
    """

    walked: int = 40  # best candidates from the walk
    hybrid: int = 20  # best candidates from hybrid search
    facts_per_passage: int = 50
    entities_per_passage: int = 30
    common: int = 8  # an entity in more candidates than this leads only to its own passage
    min_graph_score: float = 0.0  # S10; below it, candidates of hybrid search keep the order of hybrid search
    first: Weights = field(default_factory=lambda: load_weights()["first"])
    second: Weights = field(default_factory=lambda: load_weights()["second"])
    long_first: Weights = field(default_factory=lambda: load_weights()["long_first"])
    long_second: Weights = field(default_factory=lambda: load_weights()["long_second"])
    tuned: Weights = ()


@dataclass(frozen=True, slots=True)
class DeepConfig:
    """How a question is rewritten and asked again if the best candidates leave words open: bounds, and two models.

    `choice` chooses the entities for the rewrites, `third` judges the candidates again.
    """

    sources: int = 8  # best candidates; their facts give the entities
    facts_per_source: int = 50
    per_source: int = 4  # rewrites of one candidate
    rewrites: int = 12
    max_words: int = 64  # of a rewrite
    results: int = 3  # new candidates of each rewrite
    choice: Weights = field(default_factory=lambda: load_weights()["choice"])
    third: Weights = field(default_factory=lambda: load_weights()["third"])


@dataclass(frozen=True, slots=True)
class PartsConfig:
    """How a question that asks for several things is split, and how the rankings of its parts are merged."""

    max_parts: int = 4
    min_words: int = 3  # of a part
    max_words: int = 60  # of a question; a longer one is a text
    depth: int = 30  # candidates of each ranking that count
    rrf_k: int = 10
    weight: float = 0.4  # of a part beside the whole question


@dataclass(frozen=True, slots=True)
class MergeConfig:
    """S5: how passages of the graph are merged with those of hybrid search.

    Without `max_graph_passages` there are exactly top_k hits, and at least a third of them are hybrid's best. With it,
    all of hybrid's top K are hits, and at most this number of passages of the graph are added, as the specification
    literally says.
    """

    hybrid_weight: float = 0.7  # S5
    graph_weight: float = 0.3  # S5
    max_graph_passages: int | None = None  # S5 says 4, see the recipe `specified`
    max_facts: int = 30  # S12, facts in an answer


@dataclass(frozen=True, slots=True)
class ExpansionConfig:
    """S11: queries of the form "seed neighbour", fused by reciprocal rank."""

    results_per_query: int = 3  # S11
    max_queries: int = 10


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """S9, S13: the text handed to a model."""

    max_tokens: int = 4_000  # S9
    graph_tokens: int = 500  # S9
    include_relationships: bool = True  # S9
    include_sources: bool = True  # S9


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """S14: how long answers are cached, and how many. A size of 0 turns the cache off."""

    seconds: float = 60.0  # S14
    size: int = 1_024


@dataclass(frozen=True, slots=True)
class CellsConfig:
    """How cells are queried, and how a collection is moved from one cell to another.

    The process that moves a collection must use the same `place_seconds` and `read_seconds` as its readers.
    """

    read_seconds: float = 5.0  # time limit of a read in one cell, second try included
    hedge_seconds: float = 0.05  # a second try is sent after this time or the cell's p95, whichever is longer
    threads: int = 16  # concurrent reads of one cell
    failures: int = 3  # a cell is not queried for a while after this number of consecutive failures
    rest_seconds: float = 10.0  # how long a failing cell is not queried
    place_seconds: float = 0.5  # how long the cell of a collection is cached
    stop_seconds: float = 20.0  # how long a move may block writers
    wait_seconds: float = 60.0  # how long a writer waits for a move
    batch: int = 256  # documents in one batch of a move
    sweeps: int = 10  # comparisons of both cells before a move blocks writers
