"""What asking a model may cost, what it has cost, and what came of it.

A call reserves the most it may cost before it is sent and settles what it did cost afterwards, so that a
budget holds with any number of threads. Nothing here sends anything. Tokens are counted by whoever asks; a
budget is kept as exactly as they are counted.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from waylore.errors import ConfigError

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens that go to a model, and tokens that come back."""

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
    """The most that may be spent, in tokens of both kinds, in money, or both; `None` is no limit.

    Prices are for a million tokens, in the currency that `money` is in.
    """

    tokens: int | None = None
    money: float | None = None
    input_price: float = 0.0
    output_price: float = 0.0

    def __post_init__(self) -> None:
        if min(self.tokens or 0, self.money or 0, self.input_price, self.output_price) < 0:
            raise ConfigError("a budget and its prices cannot be negative; leave out what has no limit")
        if self.money is not None and not (self.input_price or self.output_price):
            raise ConfigError("a budget in money needs input_price and output_price, for a million tokens each")

    def cost(self, tokens: Tokens) -> float:
        """What these tokens cost in money; nothing, where there are no prices."""
        return (tokens.sent * self.input_price + tokens.answered * self.output_price) / MILLION

    def covers(self, tokens: Tokens) -> bool:
        """Whether all of these may be spent."""
        return (self.tokens is None or tokens.sent + tokens.answered <= self.tokens) and (
            self.money is None or self.cost(tokens) <= self.money
        )


UNLIMITED = Budget()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What asking about some passages will cost at most, unless an answer has to be repaired.

    A repair asks once more, and shows the model what it said: it may cost as much again, and the answer.
    """

    passages: int
    from_cache: int
    calls: int
    tokens: Tokens
    money: float
    is_covered: bool

    def __str__(self) -> str:
        kept = (
            f" ({self.from_cache:,} of {self.passages:,} passages are in the cache)" if self.from_cache else ""
        )
        price = f", {self.money:,.4f} in money" if self.money else ""
        most = f"{self.calls:,} calls{kept}: at most {self.tokens}{price}"
        return (
            most if self.is_covered else f"{most}; the budget may end before, the rest is read without a model"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What came of asking: passages by how they were read, and what that cost.

    `fell_back` counts passages that were read without the model, by reason; `dropped` counts facts of answers
    that were not kept, by reason.
    """

    passages: int = 0
    from_cache: int = 0
    answered: int = 0
    repaired: int = 0
    cut_off: int = 0
    fell_back: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    money: float = 0.0

    def __str__(self) -> str:
        price = f", {self.money:,.4f} in money" if self.money else ""
        return "\n".join(
            [
                f"{self.passages:,} passages: {self.answered:,} answered, {self.from_cache:,} from the cache",
                f"answers repaired: {self.repaired:,}; cut off and read as far as they go: {self.cut_off:,}",
                f"read without the model: {_listed(self.fell_back)}",
                f"facts dropped: {_listed(self.dropped)}",
                f"spent: {self.calls:,} calls, {self.tokens}{price}",
            ]
        )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} ({reason})" for reason, n in sorted(counts.items())) or "none"


class Ledger:
    """What is reserved, spent and counted, for many threads at once."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._changed = threading.Condition()
        self._reserved = self._spent = Tokens()
        self._counts: Counter[tuple[str, str]] = Counter()

    def reserve(self, most: Tokens) -> bool:
        """Set aside what a call may cost; `False` where the budget has no room for it.

        What others have reserved they may not need: it waits for them before it says no.
        """
        with self._changed:
            while self._budget.covers(self._spent + most):
                if self._budget.covers(self._spent + self._reserved + most):
                    self._reserved += most
                    return True
                self._changed.wait()
            return False

    def settle(self, most: Tokens, spent: Tokens) -> None:
        """Give back what a call had reserved, and count what it cost."""
        with self._changed:
            self._reserved -= most
            self._spent += spent
            self._changed.notify_all()

    def count(self, what: str, reason: str = "", number: int = 1) -> int:
        """Count something that happened, and tell how often it has."""
        with self._changed:
            self._counts[what, reason] += number
            return self._counts[what, reason]

    @property
    def report(self) -> Report:
        """All of it, as it stands."""
        with self._changed:
            counts, spent = self._counts.copy(), self._spent
        return Report(
            passages=counts["passages", ""],
            from_cache=counts["from_cache", ""],
            answered=counts["answered", ""],
            repaired=counts["repaired", ""],
            cut_off=counts["cut_off", ""],
            fell_back={reason: n for (what, reason), n in counts.items() if what == "fell_back"},
            dropped={reason: n for (what, reason), n in counts.items() if what == "dropped"},
            calls=counts["calls", ""],
            tokens=spent,
            money=self._budget.cost(spent),
        )
