"""Fit an answer into a budget of tokens: keep as many of its parts as possible, the first parts first.

An answer is sent twice: as text for a model, which must fit, and as JSON for programs, which is not counted. Tokens
are estimated by `waylore.text.estimate_tokens`, within a tenth of what models count. The answer itself reports what was
left out.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from waylore.text import estimate_tokens

MAX_TOKEN_LENGTH = 32  # maximum characters per token, reached by white space


class SizedAnswer(Protocol):
    """The answer of a tool."""

    def to_text(self) -> str:
        """Return the answer as text for a model."""
        ...


A = TypeVar("A", bound=SizedAnswer)


def count_tokens(answer: SizedAnswer) -> int:
    """Return the tokens of the text of an answer."""
    return estimate_tokens(answer.to_text())


def fit_answer(parts: int, make_answer: Callable[[int], A], tokens: int) -> A:
    """Return the answer with as many of its first parts as fit."""
    complete = make_answer(parts)
    if count_tokens(complete) <= tokens:
        return complete
    shown = bisect_left(range(parts), True, key=lambda n: count_tokens(make_answer(n)) > tokens)
    while shown and count_tokens(make_answer(shown)) > tokens:
        shown -= 1
    return make_answer(shown)


def shorten(text: str, tokens: int) -> str:
    """Return a text, or its beginning and … if it has too many tokens."""
    head = text[: MAX_TOKEN_LENGTH * tokens]
    if head == text and estimate_tokens(text) <= tokens:
        return text
    too_long = bisect_left(range(len(head)), True, key=lambda n: estimate_tokens(f"{head[:n]} …") > tokens)
    return f"{head[: find_word_end(head, 0, max(too_long - 1, 0))].rstrip()} …"


def take_lines(lines: Iterable[str], tokens: int) -> list[str]:
    """Return as many of the first lines as fit together."""
    taken: list[str] = []
    for line in lines:
        tokens -= estimate_tokens(line) + 1
        if tokens < 0:
            break
        taken.append(line)
    return taken


def find_word_end(text: str, start: int, end: int) -> int:
    """Return the end of the last complete word before `end`, or `end` if no word ends after `start`."""
    if end >= len(text) or text[end].isspace():
        return min(end, len(text))
    space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
    return space + 1 if space >= start else end
