"""Find the known sentences of a text with a table of hashes, in time linear in the text and the known passages.

A unit is a run of words that equals whole sentences of one known passage: the fewest sentences that have MIN_RUN_WORDS
words together, or these with shorter sentences after them. Every longer repetition is a sequence of units, so only
units are stored. Words that introduce a repetition ("as you told me") may stand between units. `memory.repeats` decides
what happens with new and known sentences.
"""

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from waylore.indexing.memory.wording import LEAD_IN, REPORTING, Wording, split_wordings

MIN_RUN_WORDS = 3  # shorter repetitions within a longer text are not recognised
MIN_COMPARISONS = 10_000  # comparisons with known units, for a text of any length
COMPARISONS_PER_WORD = 4  # further comparisons; only a malicious text needs more, and its beginning counts as new
_MODULUS = 2**61 - 1
_BASE = secrets.randbelow(_MODULUS - 2**60) + 2**60  # secret, so that no caller can construct words with equal hashes
_NO_WAY = (-1,) * 6


@dataclass(frozen=True, slots=True)
class KnownPassage:
    """A stored passage that is visible to the same readers."""

    passage_id: str
    document_id: str
    text: str
    title: str = ""


def mark_known(
    wordings: Sequence[Wording], known: Sequence[KnownPassage]
) -> tuple[list[bool], tuple[KnownPassage, ...]]:
    """Return whether each wording is known, and the repeated passages, in order of the text."""
    words = [word for wording in wordings for word in wording.words]
    ends = list(accumulate(len(wording.words) for wording in wordings))
    ways = _Ways(words, frozenset(ends), _UnitTable(known, min(MIN_RUN_WORDS, len(words))))
    is_known, units, at = [], list[int](), 0
    for wording, end in zip(wordings, ends, strict=True):
        start = end - len(wording.words)
        if start >= at:
            at = max(ways.find_end(start), start)
            units += ways.list_units(start, at)
        is_known.append(end <= at)
    return is_known, tuple(known[number] for number in ways.table.choose_passages(units))


class _HashedWords:
    """Words with prefix sums, which give the hash of any run of words in constant time."""

    def __init__(self, words: Sequence[str]) -> None:
        self._sums = list(accumulate(words, _add_word, initial=0))
        self._powers = list(accumulate(words, lambda power, _: power * _BASE % _MODULUS, initial=1))

    def hash_run(self, start: int, end: int) -> int:
        return (self._sums[end] - self._sums[start] * self._powers[end - start]) % _MODULUS


def _add_word(total: int, word: str) -> int:
    return (total * _BASE + hash(word)) % _MODULUS


class _UnitTable:
    """The units of known passages: their hashes, each with its passages, and their lengths by their first words."""

    def __init__(self, known: Sequence[KnownPassage], min_words: int) -> None:
        self._min_words = min_words
        self._passages: dict[int, dict[int, None]] = {}
        lengths: dict[tuple[str, ...], set[int]] = {}
        for number, passage in enumerate(known):
            wordings = split_wordings(passage.text)
            words = [word for wording in wordings for word in wording.words]
            hashed = _HashedWords(words)
            for start, end in _list_units([len(wording.words) for wording in wordings], min_words):
                lengths.setdefault(tuple(words[start : start + min_words]), set()).add(end - start)
                self._passages.setdefault(hashed.hash_run(start, end), {})[number] = None
        self._lengths = {first: sorted(all_, reverse=True) for first, all_ in lengths.items()}

    def list_lengths(self, words: Sequence[str], start: int) -> Sequence[int]:
        """Return the lengths of the units that may begin at a place of a text, longest first."""
        return self._lengths.get(tuple(words[start : start + self._min_words]), ())

    def has_unit(self, unit: int) -> bool:
        """Return whether a hash belongs to a unit."""
        return unit in self._passages

    def choose_passages(self, units: Sequence[int]) -> list[int]:
        """Return the numbers of passages that together have all of these units: few passages with most units first."""
        distinct = list(dict.fromkeys(units))
        counts = Counter(number for unit in distinct for number in self._passages[unit])
        ranks = {number: rank for rank, number in enumerate(sorted(counts, key=lambda n: (-counts[n], n)))}
        return list(dict.fromkeys(min(self._passages[unit], key=ranks.__getitem__) for unit in distinct))


def _list_units(lengths: Sequence[int], min_words: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each unit of a passage whose sentences have these lengths in words."""
    starts = [0, *accumulate(lengths)]
    for first, start in enumerate(starts[:-1]):
        whole = next((at for at in range(first + 1, len(starts)) if starts[at] - start >= min_words), len(starts))
        for at in range(whole, len(starts)):
            if starts[at] - starts[whole] >= min_words:
                break
            yield start, starts[at]


class _Ways:
    """The reach of units and introductory words from each place of a text, computed once from its end.

    The state of a way is twice the kind of its introductory words (0: none, 1: without reporting words, 2: with
    reporting words), plus 1 if it has a unit. A way may end after a sentence if it has a unit, and reporting words if
    it has introductory words.
    """

    def __init__(self, words: Sequence[str], ends: frozenset[int], table: _UnitTable) -> None:
        self.table = table
        self._words, self._hashed = words, _HashedWords(words)
        self._left = MIN_COMPARISONS + COMPARISONS_PER_WORD * len(words)
        self._furthest: list[tuple[int, ...]] = [_NO_WAY] * (len(words) + 1)
        for at in range(len(words), -1, -1):
            own = tuple(at if state in (1, 5) else -1 for state in range(6)) if at in ends else _NO_WAY
            steps = list(self._list_steps(at)) if self._left > 0 else []
            self._furthest[at] = tuple(map(max, own, *steps)) if steps else own

    def _list_steps(self, at: int) -> Iterator[tuple[int, ...]]:
        """Yield the reach of each step from a place, by the state before the step."""
        for end, _ in self._find_units(at):
            _, one, _, three, _, five = self._furthest[end]
            yield one, one, three, three, five, five
        if at < len(self._words) and self._words[at] in LEAD_IN:
            _, _, two, three, four, five = self._furthest[at + 1]
            reports = self._words[at] in REPORTING
            yield (four, five) * 3 if reports else (two, three, two, three, four, five)

    def _find_units(self, start: int) -> Iterator[tuple[int, int]]:
        """Yield the end and hash of each unit that begins at a place, longest first."""
        for length in self.table.list_lengths(self._words, start):
            if (end := start + length) <= len(self._words):
                self._left -= 1
                unit = self._hashed.hash_run(start, end)
                if self.table.has_unit(unit):
                    yield end, unit

    def find_end(self, start: int) -> int:
        """Return the end of the longest way from a place, or -1 if there is none."""
        return self._furthest[start][0]

    def list_units(self, at: int, end: int) -> Iterator[int]:
        """Yield the hashes of the units on a way to its end."""
        state = 0
        while at < end:
            step = next(((to, unit) for to, unit in self._find_units(at) if self._furthest[to][state | 1] == end), None)
            if step:
                at, state = step[0], state | 1
                yield step[1]
            else:
                state = 4 | state & 1 if self._words[at] in REPORTING else max(state, 2 | state & 1)
                at += 1
