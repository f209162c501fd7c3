"""Callers share threads: they take turns, nobody has all of them, and few of a caller's calls may wait."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from threading import Barrier, Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import StoreUnavailable
from waylore.service.shares import MAX_WAITING_CALLS, SERVICE, SharedThreads, TooManyWaiting

SECONDS = 30.0  # only a guard against hanging


class Held:
    """A call that runs until it is released."""

    def __init__(self) -> None:
        self.has_begun = Event()
        self.may_end = Event()

    def __call__(self) -> None:
        self.has_begun.set()
        assert self.may_end.wait(SECONDS)


@pytest.fixture
def held() -> Iterator[Callable[[], Held]]:
    made: list[Held] = []

    def make() -> Held:
        made.append(Held())
        return made[-1]

    yield make
    for each in made:
        each.may_end.set()


@pytest.fixture
def eight() -> Iterator[SharedThreads]:
    threads = SharedThreads("test", 8)
    yield threads
    threads.close()


@pytest.fixture
def one() -> Iterator[SharedThreads]:
    threads = SharedThreads("test", 1)
    yield threads
    threads.close()


def test_lone_caller_has_all_threads(eight: SharedThreads) -> None:
    together = Barrier(8)
    calls = [eight.submit("a", lambda: together.wait(SECONDS)) for _ in range(8)]
    assert sorted(call.result(SECONDS) for call in calls) == [*range(8)]


def test_new_caller_does_not_wait_for_others(eight: SharedThreads, held: Callable[[], Held]) -> None:
    for _ in range(24):
        eight.submit("a", held())
    assert eight.submit("b", lambda: "done").result(SECONDS) == "done"


def test_caller_has_a_quarter_while_others_need_threads(eight: SharedThreads, held: Callable[[], Held]) -> None:
    calls = [held() for _ in range(8)]
    for call in calls:
        eight.submit("a", call)
    other = held()
    eight.submit("b", other)
    later = [held() for _ in range(8)]
    futures = [eight.submit("a", call) for call in later]
    for call in calls[:6]:
        call.may_end.set()
    assert calls[7].has_begun.wait(SECONDS)
    assert other.has_begun.wait(SECONDS)
    assert not any(call.has_begun.is_set() for call in later)  # two calls still run
    calls[6].may_end.set()
    assert later[0].has_begun.wait(SECONDS)
    assert not later[1].has_begun.is_set()
    for call in [*calls, *later, other]:
        call.may_end.set()
    assert not wait(futures, SECONDS).not_done


def test_callers_take_turns(one: SharedThreads, held: Callable[[], Held]) -> None:
    first, order = held(), list[str]()
    one.submit("a", first)
    calls = [one.submit(caller, lambda caller=caller: order.append(caller)) for caller in "aaabbcc"]  # type: ignore[misc]
    first.may_end.set()
    assert not wait(calls, SECONDS).not_done
    assert "".join(order) == "abcabca"


def test_only_few_calls_of_a_caller_may_wait(one: SharedThreads, held: Callable[[], Held]) -> None:
    first = held()
    one.submit("a", first)
    waiting = [one.submit("a", lambda: None) for _ in range(MAX_WAITING_CALLS)]
    with pytest.raises(TooManyWaiting, match="16 requests of yours are waiting"):
        one.submit("a", lambda: None)
    others = [one.submit("b", lambda: None), one.submit(SERVICE, lambda: None)]
    assert waiting.pop(3).cancel()
    waiting.append(one.submit("a", lambda: None))
    with pytest.raises(TooManyWaiting):
        one.submit("a", lambda: None)
    first.may_end.set()
    assert not wait([*waiting, *others], SECONDS).not_done


def test_queue_of_all_callers_is_limited(one: SharedThreads, held: Callable[[], Held]) -> None:
    one.submit("a", held())
    for number in range(255):
        one.submit(f"{number}", lambda: None)
    with pytest.raises(StoreUnavailable, match="256 requests are waiting"):
        one.submit("b", lambda: None)


def test_calls_that_exclude_each_other_hold_no_thread(eight: SharedThreads, held: Callable[[], Held]) -> None:
    first, second = held(), held()
    eight.submit("a", first, alone="notes")
    late = eight.submit("b", second, alone="notes")
    assert first.has_begun.wait(SECONDS)
    for number in range(16):
        assert eight.submit("c", lambda number=number: number, alone=f"{number}").result(SECONDS) == number  # type: ignore[misc]
    assert not second.has_begun.is_set()
    first.may_end.set()
    second.may_end.set()
    late.result(SECONDS)


def test_errors_and_closing_reach_the_caller(held: Callable[[], Held]) -> None:
    threads, first = SharedThreads("test", 1), held()
    with pytest.raises(ZeroDivisionError):
        threads.submit("a", lambda: 1 // 0).result(SECONDS)
    threads.submit("a", first)
    waiting = threads.submit("a", lambda: None)
    assert first.has_begun.wait(SECONDS)
    first.may_end.set()
    threads.close()
    assert waiting.done()


CALLS = st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "", "x", "y"]))


@given(st.integers(1, 8), st.lists(CALLS, max_size=60))
def test_every_call_runs_and_limits_hold(count: int, wanted: list[tuple[str, str]]) -> None:
    threads, running, most = SharedThreads("test", count), list[str](), 0

    def call(alone: str) -> None:
        nonlocal most
        running.append(alone)
        most = max(most, len(running))
        assert not alone or running.count(alone) == 1
        time.sleep(0)
        running.remove(alone)

    calls: list[Future[None]] = []
    for caller, alone in wanted:
        try:
            calls.append(threads.submit(caller, lambda alone=alone: call(alone), alone=alone))  # type: ignore[misc]
        except TooManyWaiting:
            assert sum(not each.done() for each in calls) >= MAX_WAITING_CALLS
    assert not wait(calls, SECONDS).not_done
    assert all(each.result() is None for each in calls)
    threads.close()
    assert most <= count + count // 4
