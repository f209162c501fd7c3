"""Lets whoever can tell what is missing accept an answer in part; everyone else gets an error instead.

A store over several cells may leave a cell out of an answer only within `partial_answers`, and says there what
it left out and why. A cell that is left out once is left out of the rest of the answer: so it holds together,
and costs one wait.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_left_out: ContextVar[dict[str, str] | None] = ContextVar("left_out", default=None)


@contextmanager
def partial_answers() -> Iterator[dict[str, str]]:
    """Accept answers in part; the mapping tells what was left out, and why. One within another is the same."""
    known = _left_out.get()
    if known is not None:
        yield known
        return
    left_out: dict[str, str] = {}
    token = _left_out.set(left_out)
    try:
        yield left_out
    finally:
        _left_out.reset(token)


def left_out() -> dict[str, str] | None:
    """Where a store says what it leaves out; None, if it may leave out nothing."""
    return _left_out.get()
