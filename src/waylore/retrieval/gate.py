"""Decide whether a question uses the graph (S6).

The gate computes a confidence from the length of the question, the number of entities it names and the best
vector match. Pure functions of the question: this module reads neither the store nor a model.
"""

import re
from dataclasses import dataclass

from waylore.config import GateConfig
from waylore.types.search import GateOutcome

FULL_LENGTH = 100  # a question of this many characters counts as fully specific
# The first words of questions that may ask for a set or a connection; `relations.questions` reads the rest.
_MAY_ASK_FOR_SET = re.compile(
    r"\W*(?:what|which|who|whom|how (?:many|are|is|were|was|do|does|did)|list|show|find|name|count|all|every|everything"
    r"|everyone|the|is there|connections?|paths?)\s",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Whether the graph is used, with which confidence, and the reason if it is skipped."""

    confidence: float | None
    reason: str = ""
    outcome: GateOutcome = "open"

    @property
    def is_open(self) -> bool:
        """True if the graph is used."""
        return not self.reason


def may_ask_for_set(text: str) -> bool:
    """Return whether a question begins like one that asks for a set or a connection."""
    return _MAY_ASK_FOR_SET.match(text) is not None


def decide(
    question: str, *, entities: int, best_cosine: float | None, has_facts: bool, config: GateConfig
) -> GateDecision:
    """Decide whether to use the graph for a question.

    `has_facts` is true if the caller may see a fact. Without vectors (`best_cosine` is None) the other two terms are
    scaled to the full range.
    """
    confidence = _compute_confidence(question, entities, best_cosine, config)
    if not has_facts:
        return GateDecision(confidence, "the graph has no facts", "empty")
    if not entities:
        return GateDecision(confidence, "the question names no known entity", "unnamed")
    if confidence < config.min_confidence:
        reason = f"confidence {confidence:.2f} is below {config.min_confidence:.2f}"
        return GateDecision(confidence, reason, "unsure")
    return GateDecision(confidence)


def _compute_confidence(question: str, entities: int, best_cosine: float | None, config: GateConfig) -> float:
    specificity = config.specificity * min(len(question) / FULL_LENGTH, 1.0)
    recognition = config.recognition * (1.0 if entities else 0.5)
    if best_cosine is None:
        return (specificity + recognition) / ((config.specificity + config.recognition) or 1.0)
    return specificity + recognition + config.quality * max(best_cosine, 0.0)
