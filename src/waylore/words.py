"""Look up how ordinary text of a language writes a word: small, or with a capital as names are.

The table ships with the package. `python -m tools.words` counts it from encyclopedia and documentation text. A word
is in it if that text writes it small in more than two fifths of its occurrences, with the share of capitals in
thirds. The module finds no names: `indexing.extractors` and `retrieval.graph.linking` decide with these counts.
"""

import gzip
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from Stemmer import Stemmer

OCCURRENCES = 3  # each word of the table counts as this many occurrences
LARGE_TABLE = 12_000  # a table with this many words covers most ordinary words
DETECTING_WORDS = 40  # the most frequent words, used to detect a language
MIN_FREQUENT_SHARE = 0.1  # share of the small words of a text in a language
DEFAULT_LANGUAGE = "en"  # language of a question without a frequent word of any language
_TABLE = "words.txt.gz"
_STEMMERS = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
    "ru": "russian",
}
_FREQUENT, _NOUNS, _RUNS = "frequent", "nouns", "runs"


@dataclass(frozen=True, slots=True)
class OrdinaryWords:
    """The ordinary words of a language, in small letters.

    `capitals` has for each word how many of three occurrences begin with a capital. `frequent` has the thousand most
    frequent words. `nouns` are written with a capital although they are not names, as in German. `runs` are frequent
    words of a script without spaces.
    """

    language: str = ""
    capitals: Mapping[str, int] = field(default_factory=dict)
    frequent: frozenset[str] = frozenset()
    nouns: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()

    @property
    def is_large(self) -> bool:
        """True if an unknown word of the language is probably a name."""
        return len(self.capitals) >= LARGE_TABLE

    def is_ordinary(self, word: str) -> bool:
        """Return whether ordinary text writes a word small, or with a capital without meaning a name."""
        folded = word.lower()
        return folded in self.capitals or folded in self.nouns or folded in self.runs

    def is_inflected(self, word: str) -> bool:
        """Return whether a word has the stem of an ordinary word."""
        if self.language not in _STEMMERS:
            return False
        [stem] = _stem(self.language, [word.lower()])
        return stem in _load_stems(self.language)


@cache
def load_words(language: str) -> OrdinaryWords:
    """Return the ordinary words of a language; empty if there is no table for it."""
    lines = _read_table().get(language)
    if lines is None:
        return OrdinaryWords()
    capitals: dict[str, int] = {}
    for number in range(OCCURRENCES):
        capitals |= dict.fromkeys(lines.get(str(number), "").split(), number)
    return OrdinaryWords(
        language, capitals, *(frozenset(lines.get(kind, "").split()) for kind in (_FREQUENT, _NOUNS, _RUNS))
    )


def detect_language(counts: Mapping[str, int]) -> str:
    """Return the language whose most frequent words occur most often in a text; empty if they are few.

    `counts` has the occurrences of each word of the text, small words in small letters.
    """
    found: Counter[str] = Counter()
    frequent = _list_detecting_words()
    for word in frequent.keys() & counts.keys():
        for language in frequent[word]:
            found[language] += counts[word]
    best = max(found, key=lambda code: (found[code], code == DEFAULT_LANGUAGE, code), default="")
    return best if found[best] > MIN_FREQUENT_SHARE * sum(counts.values()) else ""


@cache
def _load_stems(language: str) -> frozenset[str]:
    return frozenset(_stem(language, list(load_words(language).capitals)))


def _stem(language: str, words: list[str]) -> list[str]:
    stems: list[str] = Stemmer(_STEMMERS[language], 0).stemWords(words)  # not cached: the cache would cost more
    return stems


@cache
def _list_detecting_words() -> dict[str, tuple[str, ...]]:
    """Return the languages in which a word is frequent."""
    languages: dict[str, tuple[str, ...]] = {}
    for language, lines in _read_table().items():
        for word in lines.get(_FREQUENT, "").split()[:DETECTING_WORDS]:
            languages[word] = (*languages.get(word, ()), language)
    return languages


@cache
def _read_table() -> dict[str, dict[str, str]]:
    """Return the lines of the table by language and kind."""
    table: dict[str, dict[str, str]] = {}
    content = gzip.decompress(files("waylore").joinpath(_TABLE).read_bytes()).decode()
    for line in content.split("\n"):
        language, kind, words = line.split("\t")
        table.setdefault(language, {})[kind] = words
    return table
