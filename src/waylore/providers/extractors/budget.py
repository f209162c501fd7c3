"""Limit and record the cost of calls to a model.

A call reserves its maximum cost before it is sent and settles its real cost afterwards, so a budget holds with
any number of threads. This module sends nothing. The caller counts tokens, and a budget is as exact as these
counts.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from waylore.errors import ConfigError

TOKENS_PER_PRICE = 1_000_000  # prices are for a million tokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens sent to a model, and tokens of its answers."""

    sent: int = 0
    answered: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.sent + other.sent, self.answered + other.answered)

    def __sub__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.sent - other.sent, self.answered - other.answered)

    def __str__(self) -> str:
        return f"{self.sent:,} tokens sent, {self.answered:,} answered"


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum to spend, in tokens of both kinds, in money, or both; `None` means no limit.

    Prices are for a million tokens, in the currency of `money`.
    """

    tokens: int | None = None
    money: float | None = None
    input_price: float = 0.0
    output_price: float = 0.0

    def __post_init__(self) -> None:
        if min(self.tokens or 0, self.money or 0, self.input_price, self.output_price) < 0:
            raise ConfigError("tokens, money and prices must not be negative; use None for no limit")
        if self.money is not None and not (self.input_price or self.output_price):
            raise ConfigError("money needs input_price and output_price, each for a million tokens")

    def cost(self, tokens: Tokens) -> float:
        """Return the cost of tokens in money, 0 without prices."""
        return (tokens.sent * self.input_price + tokens.answered * self.output_price) / TOKENS_PER_PRICE

    def covers(self, tokens: Tokens) -> bool:
        """Return whether all of these tokens may be spent."""
        return (self.tokens is None or tokens.sent + tokens.answered <= self.tokens) and (
            self.money is None or self.cost(tokens) <= self.money
        )


UNLIMITED = Budget()


@dataclass(frozen=True, slots=True)
class Estimate:
    """The maximum cost of calls about some passages, unless an answer has to be repaired.

    A repair is a second call that shows the model its answer. It may cost the same again, plus the answer.
    """

    passages: int
    from_cache: int
    calls: int
    tokens: Tokens
    money: float
    is_covered: bool

    def __str__(self) -> str:
        cached = f" ({self.from_cache:,} of {self.passages:,} passages are in the cache)" if self.from_cache else ""
        price = f", {self.money:,.4f} in money" if self.money else ""
        cost = f"{self.calls:,} calls{cached}: at most {self.tokens}{price}"
        return (
            cost
            if self.is_covered
            else f"{cost}; the budget may end before that, and the other passages are read without a model"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The results of calls: passages by how they were read, and the cost.

    `fallbacks` counts passages that were read without the model, `dropped` counts unused facts of answers, both by
    reason.
    """

    passages: int = 0
    from_cache: int = 0
    answered: int = 0
    repaired: int = 0
    cut_off: int = 0
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    money: float = 0.0

    def __str__(self) -> str:
        price = f", {self.money:,.4f} in money" if self.money else ""
        return "\n".join(
            [
                f"{self.passages:,} passages: {self.answered:,} answered, {self.from_cache:,} from the cache",
                f"answers repaired: {self.repaired:,}; cut off and used in part: {self.cut_off:,}",
                f"read without the model: {_format_counts(self.fallbacks)}",
                f"facts dropped: {_format_counts(self.dropped)}",
                f"spent: {self.calls:,} calls, {self.tokens}{price}",
            ]
        )


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} ({reason})" for reason, n in sorted(counts.items())) or "none"


class Ledger:
    """Reservations, spending and counts, for many threads at once."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._changed = threading.Condition()
        self._reserved = self._spent = Tokens()
        self._counts: Counter[tuple[str, str]] = Counter()

    def reserve(self, maximum: Tokens) -> bool:
        """Reserve the maximum cost of a call. Return False if the budget has no room for it.

        Other calls may not need their whole reservation, so this waits for them before it returns False.
        """
        with self._changed:
            while self._budget.covers(self._spent + maximum):
                if self._budget.covers(self._spent + self._reserved + maximum):
                    self._reserved += maximum
                    return True
                self._changed.wait()
            return False

    def settle(self, reserved: Tokens, spent: Tokens) -> None:
        """Release the reservation of a call, and record its cost."""
        with self._changed:
            self._reserved -= reserved
            self._spent += spent
            self._changed.notify_all()

    def count(self, event: str, reason: str = "", number: int = 1) -> int:
        """Count an event and return the count."""
        with self._changed:
            self._counts[event, reason] += number
            return self._counts[event, reason]

    @property
    def report(self) -> Report:
        """All counts and costs so far."""
        with self._changed:
            counts, spent = self._counts.copy(), self._spent
        return Report(
            passages=counts["passages", ""],
            from_cache=counts["from_cache", ""],
            answered=counts["answered", ""],
            repaired=counts["repaired", ""],
            cut_off=counts["cut_off", ""],
            fallbacks={reason: n for (event, reason), n in counts.items() if event == "fallback"},
            dropped={reason: n for (event, reason), n in counts.items() if event == "dropped"},
            calls=counts["calls", ""],
            tokens=spent,
            money=self._budget.cost(spent),
        )
