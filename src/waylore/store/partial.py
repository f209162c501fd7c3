"""Let a caller accept an answer without some cells. Outside of `partial_answers()`, a missing cell is an error.

Within `partial_answers()` a store over several cells may leave out a cell that does not answer, and records its
name and the reason. A cell that is left out once is left out of the rest of the answer, so that the answer is
consistent and the caller waits only once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_left_out: ContextVar[dict[str, str] | None] = ContextVar("left_out", default=None)


@contextmanager
def partial_answers() -> Iterator[dict[str, str]]:
    """Allow partial answers. Yield a mapping of each missing cell to the reason.

    A nested call uses the mapping of the outer one.
    """
    outer = _left_out.get()
    if outer is not None:
        yield outer
        return
    left_out: dict[str, str] = {}
    token = _left_out.set(left_out)
    try:
        yield left_out
    finally:
        _left_out.reset(token)


def note_incomplete(what: str, reason: str) -> None:
    """Record that something other than a cell did not help with the answer, if the caller accepts that."""
    left_out = _left_out.get()
    if left_out is not None:
        left_out[f"~{what}"] = f"{what}: {reason}"  # no cell has such a name


def get_left_out() -> dict[str, str] | None:
    """Return the mapping in which a store records missing cells; None if it must answer completely."""
    return _left_out.get()
