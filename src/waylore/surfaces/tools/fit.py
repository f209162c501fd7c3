"""Makes an answer fit into a budget of tokens: as many of its parts as go in, the first ones first.

An answer goes out twice, as JSON and as text, and a client shows its model one of them: each has to fit. Tokens
are counted by `waylore.text.pieces`, rather too many than too few. What is left out is for the answer to say.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from waylore.text import pieces

LONGEST_TOKEN = 32  # characters, of white space


class Answer(Protocol):
    """What a tool answers: JSON for programs, a text for whoever reads."""

    def model_dump_json(self) -> str:
        """The answer as JSON."""
        ...

    def readable(self) -> str:
        """The answer as a text."""
        ...


A = TypeVar("A", bound=Answer)


def size(answer: Answer) -> int:
    """The tokens of an answer, in the longer of its two forms."""
    return max(pieces(answer.model_dump_json()), pieces(answer.readable()))


def fitted(parts: int, answer: Callable[[int], A], tokens: int) -> A:
    """The answer with the most parts that fits: all of them, or fewer, or none."""
    whole = answer(parts)
    if size(whole) <= tokens:
        return whole
    shown = bisect_left(range(parts), True, key=lambda n: size(answer(n)) > tokens)
    while shown and size(answer(shown)) > tokens:
        shown -= 1
    return answer(shown)


def cut(text: str, tokens: int) -> str:
    """A text, or its beginning with a … where it takes more tokens."""
    head = text[: LONGEST_TOKEN * tokens]
    if head == text and quoted(text) <= tokens:
        return text
    too_long = bisect_left(range(len(head)), True, key=lambda n: quoted(f"{head[:n]} …") > tokens)
    return f"{head[: at_word(head, 0, max(too_long - 1, 0))].rstrip()} …"


def first(lines: Iterable[str], tokens: int) -> list[str]:
    """The first lines, as many as fit together."""
    kept: list[str] = []
    for line in lines:
        tokens -= quoted(line) + 1
        if tokens < 0:
            break
        kept.append(line)
    return kept


def at_word(text: str, start: int, end: int) -> int:
    """The end of the last whole word before `end`, or `end` itself where there is none after `start`."""
    if end >= len(text) or text[end].isspace():
        return min(end, len(text))
    space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
    return space + 1 if space >= start else end


def quoted(text: str) -> int:
    """The tokens of a text within JSON, where quotes and line ends take more."""
    return pieces(json.dumps(text, ensure_ascii=False))
