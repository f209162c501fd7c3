"""Chooses a method by the question's own words (S16), and says why.

Rules are data, and the first that matches wins. It knows neither store nor models, and it is asked only where
the caller leaves the choice to us.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from waylore.config import Chain, Expansion, Gate, Hybrid, Linking, Merge, Resolution, Trust, Walk

Graph = Literal["", "neighbourhood", "guided", "activation", "citations", "chain"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to answer, as data; a stage reads the part that concerns it. `graph` names the graph search."""

    name: str
    graph: Graph = ""
    top_k: int = 10  # S10
    hybrid: Hybrid = Hybrid()
    linking: Linking = Linking()
    resolution: Resolution = Resolution()
    gate: Gate = Gate()
    trust: Trust = Trust()
    walk: Walk = Walk()
    chain: Chain = Chain()
    merge: Merge = Merge()
    expansion: Expansion = Expansion()


@dataclass(frozen=True, slots=True)
class Rule:
    """S16: a question that matches the pattern is answered by this recipe, for this reason."""

    pattern: str
    recipe: str
    reason: str


VECTOR = Recipe("vector", hybrid=Hybrid(text_weight=0.0))  # S16
KEYWORD = Recipe("keyword", hybrid=Hybrid(vector_weight=0.0))  # S16
HYBRID = Recipe("hybrid")  # S1
NEIGHBOURHOOD = Recipe("neighbourhood", "neighbourhood")  # S4, S5
GUIDED = Recipe("guided", "guided", hybrid=Hybrid(fusion="rrf"), merge=Merge(graph_weight=0.5))  # S11, S15
ACTIVATION = Recipe(  # S12
    "activation",
    "activation",
    linking=Linking(ways=("nearest", "names"), nearest_threshold=-1.0),
    walk=Walk(max_hops=2, facts_per_entity=10, max_facts=30),
)
CITATIONS = Recipe("citations", "citations", walk=Walk(max_hops=2, predicates=("cites",)))  # S18
CHAIN = Recipe(  # ours; names that are merely near did harm, and a second hop of facts no good: bridges make it
    "chain",
    "chain",
    linking=Linking(ways=("names",)),
    walk=Walk(max_hops=1),
    merge=Merge(max_graph_passages=None),
)

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {r.name: r for r in (CHAIN, HYBRID, VECTOR, KEYWORD, NEIGHBOURHOOD, GUIDED, ACTIVATION, CITATIONS)}
)

RULES = (
    Rule(r"\bcit(e[sd]?|ing|ations?)\b|\breferences?\b|\bbibliograph", "citations", "it asks for citations"),
    Rule(r"\barxiv\b|\bpaper:|\b\d{4}\.\d{4,5}\b|\bdoi\b", "keyword", "it names a paper by its number"),
    Rule(r"\b[a-z]+[-_]\d+\b|\b\w+_\w+\b|\w\(\)|\w::\w|`[^`]+`", "keyword", "it names an identifier"),
    Rule(r"\bvs\b|\bversus\b|\bcompar(e[sd]?|ing|ison)\b", "hybrid", "it compares"),
    Rule(r"\boverview\b|\bsurvey\b|\bsummar(y|i[sz]e)\b", "hybrid", "it asks for an overview"),
)  # S16, in the order in which they are tried
OTHERWISE = Rule("", "chain", "no rule speaks against the default")


def route(question: str, rules: Sequence[Rule] = RULES) -> Rule:
    """The rule that a question falls under."""
    found = (rule for rule in rules if re.search(rule.pattern, question, re.IGNORECASE))
    return next(found, OTHERWISE)
