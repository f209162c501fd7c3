"""Find the names that a page repeats in scripts without spaces and capitals, such as Chinese and Japanese.

A run of two to six characters is a name if the page repeats it, if different characters stand before and after it,
and if it is no ordinary run of its language (`waylore.words`). A run that always stands inside the same longer run
has one neighbour and is left out. Hiragana joins words and is part of no name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from waylore.words import OrdinaryWords, load_words

SIZES = range(2, 7)
MIN_REPEATS = 3  # of a run; a text repeats many pairs by chance
MIN_NEIGHBOURS = 2
MAX_CHARACTERS = 50_000  # of a page that are examined
MAX_NAMES = 1_000
_RUNS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_KANA = re.compile("[\u3040-\u30ff]")
_PARTICLES = frozenset("的了是在和与與或及不有为為也就都而我你他她它们們这這那个個被把将將之其所")


def find_repeated_runs(text: str) -> tuple[str, ...]:
    """Return the runs of a text that are names, the longest first."""
    runs = _list_runs(text)
    if not runs:
        return ()
    counts = Counter(part for run in runs for _, part in _list_parts(run))
    repeated = {part for part, count in counts.items() if count >= MIN_REPEATS}
    before: dict[str, set[str]] = {part: set() for part in repeated}
    after: dict[str, set[str]] = {part: set() for part in repeated}
    for number, run in enumerate(runs):
        for start, part in _list_parts(run):
            if part in repeated:
                end = start + len(part)
                before[part].add(run[start - 1] if start else f"{number} begins")  # a border is a neighbour of its own
                after[part].add(run[end] if end < len(run) else f"{number} ends")
    ordinary = load_words("ja" if _KANA.search(text) else "zh")
    names = (
        part
        for part in repeated
        if len(before[part]) >= MIN_NEIGHBOURS and len(after[part]) >= MIN_NEIGHBOURS and _is_name(part, ordinary)
    )
    return tuple(islice(sorted(names, key=lambda name: (-len(name), name)), MAX_NAMES))


def find_runs(names: Iterable[str], sentence: str) -> Iterator[tuple[int, int]]:
    """Yield the places of names in a sentence."""
    for name in names:
        start = sentence.find(name)
        while start >= 0:
            yield start, start + len(name)
            start = sentence.find(name, start + len(name))


def _list_runs(text: str) -> list[str]:
    return [match[0] for match in _RUNS.finditer(text[:MAX_CHARACTERS]) if len(match[0]) > 1]


def _list_parts(run: str) -> Iterator[tuple[int, str]]:
    for size in SIZES:
        for start in range(len(run) - size + 1):
            yield start, run[start : start + size]


def _is_name(part: str, ordinary: OrdinaryWords) -> bool:
    """Return whether a run is neither ordinary nor made of ordinary pairs, and has no particle at its ends."""
    if part[0] in _PARTICLES or part[-1] in _PARTICLES or part in ordinary.runs:
        return False
    return not all(part[start : start + 2] in ordinary.runs for start in range(len(part) - 1))
