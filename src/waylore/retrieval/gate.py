"""Is the evidence good enough to walk the graph? A confidence as specified (S6), and a reason where it is not.

Pure arithmetic over what other stages found: it knows neither store nor models.
"""

from dataclasses import dataclass

from waylore.config import Gate
from waylore.types.search import Gate as Decision

SPECIFIC = 100  # characters of a question that is as specific as can be


@dataclass(frozen=True, slots=True)
class Gated:
    """How sure we are that the graph will help, if that was asked, and why it was left out, if it was."""

    confidence: float | None
    reason: str = ""
    decision: Decision = "open"

    @property
    def is_open(self) -> bool:
        """Whether to walk."""
        return not self.reason


def gate(question: str, *, entities: int, best_cosine: float | None, facts: int, config: Gate) -> Gated:
    """Decide by how specific the question is, whether it names anything, and how well vectors match (S6).

    Where there are no vectors (`best_cosine` is None) the other two decide, in proportion.
    """
    terms = [
        (config.specificity, min(len(question) / SPECIFIC, 1.0)),
        (config.recognition, 1.0 if entities else 0.5),
    ]
    if best_cosine is not None:
        terms.append((config.quality, max(best_cosine, 0.0)))
    whole = 1.0 if best_cosine is not None else sum(weight for weight, _ in terms) or 1.0
    confidence = sum(weight * value for weight, value in terms) / whole
    return Gated(confidence, *_reason(confidence, entities, facts, config))


def _reason(confidence: float, entities: int, facts: int, config: Gate) -> tuple[str, Decision]:
    if not facts:
        return "the graph is empty", "empty"
    if not entities:
        return "the question names nothing that is known", "unnamed"
    if confidence < config.min_confidence:
        return f"confidence {confidence:.2f} is under {config.min_confidence:.2f}", "unsure"
    return "", "open"
