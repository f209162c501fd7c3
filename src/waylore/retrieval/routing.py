"""Chooses a method by the question's own words (S16), and says why.

Rules are data, and the first that matches wins. It knows neither store nor models, and it is asked only where
the caller leaves the choice to us.
"""

import re
from collections.abc import Sequence

from waylore.config import OTHERWISE, RULES, Rule


def route(question: str, rules: Sequence[Rule] = RULES) -> Rule:
    """The rule that a question falls under."""
    found = (rule for rule in rules if re.search(rule.pattern, question, re.IGNORECASE))
    return next(found, OTHERWISE)
