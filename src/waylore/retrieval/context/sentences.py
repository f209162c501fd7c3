"""Cut texts at the ends of sentences, and choose the sentences of passages that a small budget holds.

Passages keep their order. The place of a sentence is the rank of its passage and half a place more for each better
sentence of the same passage: one that has more of the question's words, weighted by how rare they are among the hits, a
name of the question or the path, or the beginning. Vectors of sentences would gain little more. Lists, tables and code
are kept whole or left out whole. Pure functions over words.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from waylore.fence import to_line
from waylore.text import normalise, terms

DEPTH = 0.5  # places by which the next best sentence of a passage comes later
WORDS, NAMED, FIRST, LATER = 0.3, 0.05, 0.15, 0.01  # what makes a sentence better
MIN_NAME_CHARACTERS = 3
MIN_SENTENCE_CHARACTERS = 20
MIN_CUT_CHARACTERS = 80  # a shorter part of a passage is left out
MAX_SHORT_CHARACTERS = 240  # of a description, a statement or a value
# "Dr." and initials end no sentence.
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!\b[A-Z][a-z])[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？।؟۔]+|(?<=\S)(?=\n\n)")
_BLOCK = re.compile(r"^(?:\t| {4}|\s*(?:[-*+•|>]\s|\d+[.)]\s|```|~~~|\|))", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


class Part(NamedTuple):
    """A sentence or a block of a passage: the number of the passage, and where it stands in its text."""

    passage: int
    start: int
    end: int


def order_parts(question: str, texts: Sequence[str], names: Sequence[Sequence[str]]) -> list[Part]:
    """Return the parts of passages in the order in which a budget is spent on them.

    names: for each passage, the names that the question has or that led to it.
    """
    parts = [Part(number, *span) for number, text in enumerate(texts) for span in split_parts(text)]
    shown = [texts[part.passage][part.start : part.end] for part in parts]
    said = [frozenset(terms(text)) for text in shown]
    rarity = _weigh_terms(terms(question), said)
    total = sum(rarity.values()) or 1.0
    earlier: Counter[int] = Counter()
    ranked: list[tuple[int, float, Part]] = []
    for part, text, words in zip(parts, shown, said, strict=True):
        merit = WORDS * sum(weight for term, weight in rarity.items() if term in words) / total
        merit += NAMED * _has_name(text, names[part.passage])
        merit += FIRST * (part.start == 0)
        ranked.append((part.passage, LATER * earlier[part.passage] - merit, part))
        earlier[part.passage] += 1
    return [part for _, part in sorted(_place(part for *_, part in sorted(ranked)))]


def _weigh_terms(wanted: Sequence[str], said: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return how rare the terms of a question are among the parts."""
    counts = Counter(term for words in said for term in words)
    return {term: math.log((len(said) + 1) / (counts[term] + 0.5)) for term in dict.fromkeys(wanted)}


def _has_name(text: str, names: Sequence[str]) -> bool:
    padded = f" {normalise(text)} "
    return any(len(name) >= MIN_NAME_CHARACTERS and f" {name} " in padded for name in map(normalise, names))


def _place(ranked: Iterable[Part]) -> Iterator[tuple[float, Part]]:
    """Yield the place of each part: after the better parts of its passage, which come before it."""
    before: Counter[int] = Counter()
    for part in ranked:
        yield part.passage + DEPTH * before[part.passage], part
        before[part.passage] += 1


def split_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a text stand, and its lists, tables and code as a whole."""
    start = 0
    for blank in (*_BLANK_LINES.finditer(text), None):
        end = blank.start() if blank else len(text)
        if text[start:end].strip():
            yield from [(start, end)] if _BLOCK.search(text, start, end) else _split_sentences(text, start, end)
        start = blank.end() if blank else end


def _split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a paragraph. What is very short is part of the next one, such as "Dr."."""
    for found in (*_SENTENCE_END.finditer(text, start, end), None):
        stop = found.end() if found else end
        begin = stop - len(text[start:stop].lstrip())
        if begin < stop and (found is None or stop - begin >= MIN_SENTENCE_CHARACTERS):
            yield begin, stop
            start = stop


def join_parts(text: str, parts: Sequence[Part]) -> str:
    """Return parts of a text in order, with dots for what is left out between and after them."""
    pieces: list[list[int]] = []
    for part in sorted(parts):
        if pieces and not text[pieces[-1][1] : part.start].strip():
            pieces[-1][1] = part.end
        else:
            pieces.append([part.start, part.end])
    rest = " …" if pieces and text[pieces[-1][1] :].strip() else ""
    return " … ".join(text[start:end] for start, end in pieces) + rest


def find_sentence_ends(text: str) -> list[int]:
    """Return where a text may be cut so that at least `MIN_CUT_CHARACTERS` of it are left."""
    return [end.end() for end in _SENTENCE_END.finditer(text) if end.end() >= MIN_CUT_CHARACTERS]


def shorten(text: str) -> str:
    """Return a text on one line. If it is long, cut it at the end of a sentence, else of a word."""
    line = to_line(text)
    if len(line) <= MAX_SHORT_CHARACTERS:
        return line
    ends = [end for end in find_sentence_ends(line[: MAX_SHORT_CHARACTERS + 1]) if end <= MAX_SHORT_CHARACTERS]
    end = ends[-1] if ends else line.rfind(" ", 0, MAX_SHORT_CHARACTERS)
    return f"{line[: end if end > 0 else MAX_SHORT_CHARACTERS]} …"
