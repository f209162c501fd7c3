"""Deadlines: who inherits them, when they raise, what they let commit, and which waits they end."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from math import inf

import pytest

from waylore.deadline import (
    ANSWER_SECONDS,
    Deadline,
    check_deadline,
    check_each,
    commit_in_time,
    get_deadline,
    is_ending,
    is_over,
    limit_wait,
    restart_deadline,
    wait_for,
    wait_for_thread,
    watch,
)
from waylore.errors import DeadlineExceeded, StoreUnavailable


def make_over() -> Deadline:
    made = Deadline()
    made.cancel()
    return made


def test_work_without_a_deadline_is_not_limited() -> None:
    check_deadline()
    restart_deadline(0.0)
    assert (get_deadline(), is_over(), is_ending(), limit_wait(7.0)) == (None, False, False, 7.0)
    assert list(check_each([1, 2])) == [1, 2]
    with commit_in_time(), watch(lambda: pytest.fail("nothing ends this wait"), "it"):
        pass


def test_deadline_ends_with_its_time_or_when_cancelled() -> None:
    for over in (Deadline(0.0), make_over()):
        with over.activate(), pytest.raises(DeadlineExceeded, match="nothing was changed"):
            check_deadline()
        assert (over.is_over, over.is_ending) == (True, True)
    open_ended = Deadline()
    assert (open_ended.remaining, open_ended.is_over, open_ended.is_ending) == (inf, False, False)


async def test_threads_and_tasks_inherit_the_deadline() -> None:
    with make_over().activate() as deadline:
        assert await asyncio.to_thread(get_deadline) is deadline
        assert await asyncio.create_task(asyncio.to_thread(is_over))
    assert get_deadline() is None


def test_items_are_not_yielded_after_the_deadline() -> None:
    with Deadline().activate() as deadline:
        items = check_each(range(10))
        assert next(items) == 0
        deadline.cancel()
        with pytest.raises(DeadlineExceeded):
            next(items)


def test_waits_end_before_the_deadline() -> None:
    with Deadline(100.0).activate() as deadline:
        assert 90.0 < limit_wait(inf) < 99.6
        assert limit_wait(5.0) == 5.0
        deadline.restart(0.0)
        assert 0 < limit_wait(5.0) < 0.1
        assert is_ending()


def test_nothing_is_committed_after_the_deadline() -> None:
    with make_over().activate(), pytest.raises(DeadlineExceeded), commit_in_time():
        pytest.fail("this must not be committed")


def test_deadline_does_not_expire_during_a_commit() -> None:
    deadline = Deadline(0.01)
    with deadline.activate(), commit_in_time():
        time.sleep(0.02)
        assert deadline.is_over
        assert not deadline.expire()
    assert ANSWER_SECONDS - 1 < deadline.remaining < ANSWER_SECONDS  # to answer what was done
    assert not deadline.expire()


def test_expired_deadline_admits_no_commit() -> None:
    deadline = Deadline(0.0)
    assert deadline.expire()
    deadline.restart(100.0)
    with deadline.activate(), pytest.raises(DeadlineExceeded), commit_in_time():
        pytest.fail("this must not be committed")


def test_failed_commit_is_no_change() -> None:
    deadline = Deadline(100.0)
    with deadline.activate(), pytest.raises(ValueError, match="full"), commit_in_time():
        raise ValueError("full")
    assert deadline.remaining < 100.0
    assert "nothing was changed" in str(deadline.make_error())
    with deadline.activate(), commit_in_time():
        pass
    assert "a part was written" in str(deadline.make_error())


@pytest.mark.parametrize("make", [lambda: Deadline(0.05), make_over])
def test_watched_wait_is_ended_once(make: Callable[[], Deadline]) -> None:
    ended = threading.Semaphore(0)
    with make().activate(), watch(ended.release, "it"):
        assert ended.acquire(timeout=30)
        assert not ended.acquire(timeout=0.1)


def test_cancelling_ends_a_wait_that_has_begun() -> None:
    ended = threading.Event()
    with Deadline().activate() as deadline, watch(ended.set, "it"):
        assert not ended.wait(0.05)
        deadline.cancel()
        assert ended.wait(30)


def test_wait_that_is_over_is_not_ended() -> None:
    ended = threading.Event()
    with Deadline(0.05).activate(), watch(ended.set, "it"):
        pass
    assert not ended.wait(0.2)


def test_later_wait_does_not_hide_an_earlier_one() -> None:
    first, second = threading.Event(), threading.Event()
    with Deadline(100.0).activate(), watch(second.set, "it"), Deadline(0.1).activate(), watch(first.set, "it"):
        assert first.wait(30)
        assert not second.is_set()


def test_call_waits_for_a_thread_until_it_begins() -> None:
    with Deadline(100.0).activate() as deadline:
        call = wait_for_thread(lambda: deadline.waiting_for)
        assert deadline.waiting_for == "a free thread"
        assert copy_context().run(call) == ""
        call = wait_for_thread(lambda: pytest.fail("nobody waits for it any more"))
        deadline.cancel()
        with pytest.raises(StoreUnavailable, match="a free thread did not come within the time limit"):
            call()


def test_work_that_only_waited_says_for_what() -> None:
    ended = threading.Event()
    with Deadline(0.05).activate() as deadline, watch(ended.set, "an answer"):
        assert ended.wait(30)
        deadline.cancel()
        with pytest.raises(StoreUnavailable, match="an answer did not come"):
            check_deadline()
    with Deadline(100.0).activate() as deadline:
        with wait_for("a connection"):
            assert "a connection" in str(deadline.make_error())
        assert isinstance(deadline.make_error(), DeadlineExceeded)
    with wait_for("a connection"):
        pass
