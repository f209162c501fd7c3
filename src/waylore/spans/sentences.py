"""Decide the tense of an expression, and whether its sentence is a question."""

from bisect import bisect_left, bisect_right
from functools import cached_property
from re import Pattern

from waylore.spans.language import Language

_TAIL = 8  # a question mark is searched in this many characters at the end of a sentence


class Sentences:
    """The sentences, clauses and verbs of a text; each is computed when it is first needed."""

    def __init__(self, text: str, language: Language) -> None:
        self._text, self._language = text, language

    def find_tense(self, start: int, end: int) -> int:
        """Return the tense at an expression: -1 past, 0 present or unknown, 1 future.

        The verb before the expression decides, or without it the verb after it. If the clause has no verb, verbs of
        other clauses of the sentence decide.
        """
        places, tenses = self._verbs
        after = bisect_left(places, end)
        near = [verb for verb in (after - 1, after) if 0 <= verb < len(places)]
        near = [verb for verb in near if _is_same(self._sentences, places[verb], start)]
        near.sort(key=lambda verb: not _is_same(self._clause_ends, places[verb], start))
        return tenses[near[0]] if near else 0

    def is_question(self, place: int) -> bool:
        """Return whether the sentence at a place is a question."""
        number = bisect_right(self._sentences, place, hi=len(self._sentences) - 1)
        first, last = self._sentences[number - 1 : number + 1]
        is_marked = self._text[max(first, last - _TAIL) : last].rstrip().endswith("?")
        return is_marked or self._language.question.match(self._text, first) is not None

    @cached_property
    def _sentences(self) -> list[int]:
        """The places at which sentences begin, and the end of the text."""
        return [0, *_list_ends(self._language.sentence_end, self._text), len(self._text)]

    @cached_property
    def _clause_ends(self) -> list[int]:
        return _list_ends(self._language.clause_end, self._text)

    @cached_property
    def _verbs(self) -> tuple[list[int], list[int]]:
        verbs = list(self._language.find_verbs(self._text))
        return [place for place, _ in verbs], [tense for _, tense in verbs]


def _list_ends(pattern: Pattern[str], text: str) -> list[int]:
    return [match.end() for match in pattern.finditer(text)]


def _is_same(ends: list[int], place: int, other: int) -> bool:
    """Return whether no end lies between two places."""
    return bisect_right(ends, place) == bisect_right(ends, other)
