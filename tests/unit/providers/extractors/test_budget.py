"""Budgets: reservations and spending never exceed them, and a call waits for the reservations of others."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.waiting import HANG_SECONDS

from waylore.errors import ConfigError
from waylore.providers.extractors.budget import UNLIMITED, Budget, Estimate, Ledger, Report, Tokens

AMOUNTS = st.builds(Tokens, st.integers(0, 50), st.integers(0, 50))
CALLS = st.lists(st.tuples(AMOUNTS, st.floats(0, 1)), max_size=40)
BUDGETS = st.builds(
    Budget,
    st.none() | st.integers(0, 800),
    st.none() | st.floats(0, 0.002),
    st.floats(0.1, 5),
    st.floats(0.1, 5),
)


@given(budget=BUDGETS, calls=CALLS)
def test_reservations_never_exceed_budget(budget: Budget, calls: list[tuple[Tokens, float]]) -> None:
    ledger = Ledger(budget)
    reserved, lock, kept = Tokens(), threading.Lock(), []

    def call(most: Tokens, share: float) -> None:
        nonlocal reserved
        if not ledger.reserve(most):
            return
        with lock:
            reserved += most
            kept.append(budget.covers(ledger.report.tokens + reserved))
        with lock:
            reserved -= most
            ledger.settle(most, Tokens(int(most.sent * share), int(most.answered * share)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda args: call(*args), calls))
    assert all(kept)
    assert budget.covers(ledger.report.tokens)


@given(budget=BUDGETS, calls=CALLS)
def test_reserve_refuses_only_without_room(budget: Budget, calls: list[tuple[Tokens, float]]) -> None:
    ledger = Ledger(budget)
    for most, share in calls:
        has_room = budget.covers(ledger.report.tokens + most)
        assert ledger.reserve(most) == has_room
        if has_room:
            ledger.settle(most, Tokens(int(most.sent * share), int(most.answered * share)))


def test_reserve_waits_for_other_reservations() -> None:
    ledger = Ledger(Budget(tokens=100))
    assert ledger.reserve(Tokens(40, 40))
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(ledger.reserve, Tokens(40, 40))
        time.sleep(0.05)
        assert not second.done()
        ledger.settle(Tokens(40, 40), Tokens(10, 5))
        assert second.result(HANG_SECONDS)


def test_reserve_does_not_wait_if_never_fitting() -> None:
    ledger = Ledger(Budget(tokens=100))
    assert ledger.reserve(Tokens(40, 40))
    assert not ledger.reserve(Tokens(61, 40))


def test_unlimited_budget_has_room() -> None:
    assert Ledger(UNLIMITED).reserve(Tokens(10**12, 10**12))


def test_prices_are_for_a_million_tokens() -> None:
    budget = Budget(money=1.0, input_price=2.0, output_price=8.0)
    assert budget.cost(Tokens(500_000, 0)) == 1.0
    assert budget.cost(Tokens(100_000, 100_000)) == 1.0
    assert budget.covers(Tokens(100_000, 100_000))
    assert not budget.covers(Tokens(100_001, 100_000))


@pytest.mark.parametrize(
    ("tokens", "money", "price"), [(None, 1.0, 0.0), (-1, None, 0.0), (None, -1.0, 1.0), (None, None, -1.0)]
)
def test_invalid_budget_raises(tokens: int | None, money: float | None, price: float) -> None:
    with pytest.raises(ConfigError):
        Budget(tokens=tokens, money=money, input_price=price)


def test_estimate_shows_cost_and_cover() -> None:
    covered = Estimate(3, 1, 2, Tokens(2_000, 4_096), 0.25, is_covered=True)
    assert str(covered) == (
        "2 calls (1 of 3 passages are in the cache): at most 2,000 tokens sent, 4,096 answered, 0.2500 in money"
    )
    assert "budget may end before" in str(Estimate(3, 0, 3, Tokens(1, 1), 0.0, is_covered=False))


def test_report_prints_all_figures() -> None:
    report = Report(5, 1, 4, 1, 2, {"malformed answer": 1}, {"invalid": 2}, 6, Tokens(1_200, 300), 0.0)
    assert str(report).splitlines() == [
        "5 passages: 4 answered, 1 from the cache",
        "answers repaired: 1; cut off and used in part: 2",
        "read without the model: 1 (malformed answer)",
        "facts dropped: 2 (invalid)",
        "spent: 6 calls, 1,200 tokens sent, 300 answered",
    ]
