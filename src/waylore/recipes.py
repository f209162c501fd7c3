"""Named recipes, and the choice of one for a question (S16).

A recipe is data: every stage of a search reads its own part. A method is the name of a recipe, an alias of one, or
`auto`, the default, which chooses a recipe by the words of the question and by what the caller may see, and gives the
reason. This module reads neither the store nor a model.
"""

# ruff: noqa: RUF009 (the defaults of a recipe are frozen)

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from waylore.config import (
    ChainConfig,
    ConversationConfig,
    DeepConfig,
    ExpansionConfig,
    GateConfig,
    HybridConfig,
    LinkingConfig,
    MergeConfig,
    PartsConfig,
    ResolutionConfig,
    TrustConfig,
    WalkConfig,
    Weights,
)
from waylore.errors import ArgumentError
from waylore.plugins import load_plugin

Graph = Literal["", "neighbourhood", "guided", "activation", "citations", "chain", "deep"]
TurnShare = Literal["none", "some", "all"]  # how many of the passages that a caller may see are turns of conversations


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to answer, as data.

    `graph` names the graph search; without one, hybrid search answers alone. With `is_graph_only`, the graph search
    answers alone: hybrid search is not run, and a question that names no known entity has no hits. With
    `is_conversation`, turns of conversations are ranked together with the turns around them. With `mixes_turns`, only
    the turns are ranked this way: they fill the places that turns have in the order of the graph search. With
    `asks_parts`, the parts of a question that asks for several things are searched too.
    """

    name: str
    graph: Graph = ""
    top_k: int = 10  # S10
    hybrid: HybridConfig = HybridConfig()
    linking: LinkingConfig = LinkingConfig()
    resolution: ResolutionConfig = ResolutionConfig()
    gate: GateConfig = GateConfig()
    trust: TrustConfig = TrustConfig()
    walk: WalkConfig = WalkConfig()
    chain: ChainConfig = ChainConfig()
    deep: DeepConfig = DeepConfig()
    merge: MergeConfig = MergeConfig()
    expansion: ExpansionConfig = ExpansionConfig()
    is_graph_only: bool = False  # S16: "pure graph traversal"
    is_conversation: bool = False
    mixes_turns: bool = False
    conversation: ConversationConfig = ConversationConfig()
    asks_parts: bool = False
    parts: PartsConfig = PartsConfig()

    @property
    def has_hybrid(self) -> bool:
        """True if hybrid search is run."""
        return not (self.graph and self.is_graph_only)


@dataclass(frozen=True, slots=True)
class Rule:
    """S16: the recipe for questions that match a pattern, and the reason."""

    pattern: str
    recipe: str
    reason: str


# Passages of the graph have a score of 0.3 at most, which is fitted to "weighted": anchored scores fall more slowly.
# With one search alone "weighted" keeps its order.
WEIGHTED = HybridConfig(fusion="weighted")
VECTOR = Recipe("vector", hybrid=replace(WEIGHTED, text_weight=0.0))  # S16
KEYWORD = Recipe("keyword", hybrid=replace(WEIGHTED, vector_weight=0.0))  # S16
HYBRID = Recipe("hybrid")  # S1
CONVERSATION = Recipe("conversation", is_conversation=True)  # ours, for turns of conversations
# These return all of hybrid's top K and up to four more passages, because the graph adds at most 0.3 to a score.
LITERAL = MergeConfig(max_graph_passages=4)  # S5
NEIGHBOURHOOD = Recipe("neighbourhood", "neighbourhood", hybrid=WEIGHTED, merge=LITERAL)  # S4, S5
SPECIFIED = replace(NEIGHBOURHOOD, name="specified")  # the literal reading of the specification, also under this name
GUIDED = Recipe(  # S11, S15
    "guided", "guided", hybrid=HybridConfig(fusion="rrf"), merge=replace(LITERAL, graph_weight=0.5)
)
ACTIVATION = Recipe(  # S12
    "activation",
    "activation",
    hybrid=WEIGHTED,
    merge=LITERAL,
    linking=LinkingConfig(ways=("nearest", "names"), nearest_threshold=-1.0),
    walk=WalkConfig(max_hops=2, facts_per_entity=10, max_facts=30),
)
CITATIONS = Recipe(  # S18
    "citations", "citations", hybrid=WEIGHTED, merge=LITERAL, walk=WalkConfig(max_hops=2, predicates=("cites",))
)
# Ours. Linking by nearest names made answers worse. A second hop of facts did not help: bridges make that step.
CHAIN = Recipe(
    "chain",
    "chain",
    linking=LinkingConfig(ways=("names",)),
    walk=WalkConfig(max_hops=1),
    asks_parts=True,
)
DEEP = replace(CHAIN, name="deep", graph="deep")  # ours; it asks again for words that are left open
MIXED = replace(CHAIN, name="mixed", mixes_turns=True)  # ours, for documents and turns together
GRAPH_ONLY = replace(  # S16; calls no model; low confidence does not close its gate
    CHAIN,
    name="graph_only",
    is_graph_only=True,
    asks_parts=False,
    hybrid=replace(WEIGHTED, vector_weight=0.0),
    gate=GateConfig(min_confidence=0.0),
    walk=WalkConfig(max_hops=2),
    chain=ChainConfig(walked=100),
    merge=MergeConfig(hybrid_weight=0.0, graph_weight=1.0),
)

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            CHAIN,
            HYBRID,
            VECTOR,
            KEYWORD,
            NEIGHBOURHOOD,
            SPECIFIED,
            GUIDED,
            ACTIVATION,
            CITATIONS,
            DEEP,
            GRAPH_ONLY,
            CONVERSATION,
            MIXED,
        )
    }
)

AUTO = "auto"  # the method that chooses a recipe by the question and the collection; the default of every surface
ALIASES: Mapping[str, str] = MappingProxyType({"graph": CHAIN.name, "agentic": AUTO})  # S16
METHODS = (AUTO, *RECIPES, *ALIASES)

# "Who wrote the paper that this one cites?" asks for a person, not for works.
ASKS_WORKS = r"^(?!\W*(?:who|whom|whose|when|where|why|how)\b(?! cite))(?s:.*?)"
# "Who directed Kramer vs. Kramer?" has a word of a rule in a title, so questions with an asking word do not compare.
NO_QUESTION = r"^(?!\W*(?:who|whose|whom|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|in)\b)"
IDENTIFIER = r"[a-z]+[-_]\d+|(?=\w*_)\w+|\w[\w.]*\(\)|\w+(?:::\w+)+|`[^`]+`"
PAPER_NUMBER = r"(?:arxiv\W{0,3})?\d{4}\.\d{4,5}(?:v\d+)?|(?:doi\W{0,3})?10\.\d{4,9}/\S+|paper:.+"
RULES = (
    Rule(
        rf"{ASKS_WORKS}(?:\bcit(?:e[sd]?|ing|ations?)\b|\bbibliograph|^\W*references\b|\breferences (?:of|in|from)\b"
        r"|\b(?:which|what|its|all|list the|show the) references\b|\b(?:papers?|articles?|works?) references?\b)",
        "citations",
        "it asks for citations",
    ),
    Rule(rf"^\W*(?:{PAPER_NUMBER})\W{{0,3}}$", "keyword", "it is the number of a paper"),
    Rule(rf"^\W*(?:{IDENTIFIER})\W{{0,3}}$", "keyword", "it is an identifier"),
    Rule(
        rf"{NO_QUESTION}\s*(?:\S+\s+){{1,6}}(?:vs\.?|versus)\s+(?:\S+\s+){{0,5}}\S+\s*$"
        r"|^\W*compar(?:e|ing)\b(?! (?:to|this|these|it)\b)|^\W*(?:an? )?comparison (?:of|between)\b"
        r"|^\W*how (?:do|does|did) .+ compare\b",
        "hybrid",
        "it compares",
    ),
    Rule(
        r"^\W*(?:(?:please|is|there|give|show|find|me|us|an?|the|short|brief)\s+)*(?:overview|survey|summary|summari[sz]e)\b"
        r"|^(?:\S+\s+){1,6}(?:overview|survey|summary)\W{0,3}$",
        "hybrid",
        "it asks for an overview",
    ),
)  # S16, in the order in which they are tried
MAX_RULE_WORDS = 25  # a longer question is a text, which may have the words of a rule by chance
TURNS = Rule("", "conversation", "everything here is a turn of a conversation")
SOME_TURNS = Rule("", "mixed", "here are documents and turns of conversations")
OTHERWISE = Rule("", "chain", "the default for documents")


def resolve_method(method: str) -> str:
    """Return the name of the recipe of a method, or `auto`. Upper and lower case are the same."""
    name = ALIASES.get(method.lower(), method.lower())
    if name != AUTO and name not in RECIPES and load_plugin("waylore.recipes", name) is None:
        raise ArgumentError(
            f"unknown method {method!r}; use {AUTO}, {', '.join(RECIPES)}, "
            f"or {' or '.join(f'{alias} (= {known})' for alias, known in ALIASES.items())}"
        )
    return name


def apply_weights(recipe: Recipe, weights: str) -> tuple[Recipe, str]:
    """Return a recipe with the weights fitted to a collection, and the name of these weights (empty without any)."""
    if not weights or recipe.graph not in {CHAIN.graph, DEEP.graph}:
        return recipe, ""
    tuned, name = _read_weights(weights)
    return replace(recipe, chain=replace(recipe.chain, tuned=tuned)), name


@lru_cache(maxsize=256)
def _read_weights(weights: str) -> tuple[Weights, str]:
    digest = hashlib.sha256(weights.encode()).hexdigest()[:8]
    return tuple(json.loads(weights).items()), f"with weights tuned to this collection ({digest})"


def _find_no_turns() -> TurnShare:
    return "none"


def choose_recipe(
    method: str, question: str, find_turns: Callable[[], TurnShare] = _find_no_turns
) -> tuple[Recipe, str]:
    """Return the recipe of a method and, if the method is `auto`, the reason for the choice.

    `find_turns` returns how many of the passages that the caller may see are turns of conversations. It is called if no
    rule of the specification matches.
    """
    name = resolve_method(method)
    if name != AUTO:
        recipe: Recipe = RECIPES.get(name) or load_plugin("waylore.recipes", name)  # type: ignore[assignment]  # known
        return recipe, ""
    rule = match_rule(question)
    if rule is OTHERWISE:
        rule = {"all": TURNS, "some": SOME_TURNS, "none": OTHERWISE}[find_turns()]
    return RECIPES[rule.recipe], f"{rule.recipe}: {rule.reason}"


def match_rule(question: str, rules: Sequence[Rule] = RULES) -> Rule:
    """Return the first rule that a question matches. A text of more than `MAX_RULE_WORDS` words matches none."""
    if len(question.split()) > MAX_RULE_WORDS:
        return OTHERWISE
    found = (rule for rule in rules if re.search(rule.pattern, question, re.IGNORECASE))
    return next(found, OTHERWISE)
