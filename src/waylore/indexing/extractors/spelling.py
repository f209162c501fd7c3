"""Count how a page writes each word, and compute from it how likely a word is part of a name.

The counts of a page are added to those of ordinary text (`waylore.words`), so a short page is judged by its
language and a long one by itself. Other documents are not read: the names of a document depend on it alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from waylore.indexing.extractors.unspaced import find_repeated_runs
from waylore.words import DEFAULT_LANGUAGE, OCCURRENCES, OrdinaryWords, detect_language, load_words

LEAST_NAMENESS = 0.6  # of a word that is a name by itself
HEADING_WEIGHT = 0.2  # of a capital in a heading, because headings write ordinary words so too
DOUBT = 0.25  # added to the occurrences, so that one of them does not give certainty
CAPITAL_NOUN_SHARE = 0.25  # of capitalised words inside sentences, above which a language capitalises nouns
MIN_WORDS_FOR_SHARE = 80  # fewer words of a page do not show how its language writes nouns
MAX_UNDETECTED_WORDS = 20  # a text of more different words has a frequent word of its language
MIN_COMPOUND_END = 5  # letters of an ordinary noun that ends a compound

WORD = re.compile(r"[^\W_](?:[\w&]|['’](?!s\b)(?=\w)|[.-](?=\w))*")
_INITIAL = re.compile(r"(?:^|[!?:;|•–—][^\w\s]*\s| - )[^\w\n]*" + f"({WORD.pattern})", re.MULTILINE)
_NOISE = re.compile(r"(?<!\S)\S*?(?:[@#]|://|/[^\s/]*/)\S*")  # addresses, handles and paths
_HAS_NOISE = re.compile(r"[@#]|/[^\s/]*/")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How often a page writes each word small, capitalised and as code, and the ordinary words of its language.

    Words are in small letters. A capital that begins a sentence does not count. `repeated` are the names that the page
    repeats in a script without spaces.
    """

    small: Mapping[str, int] = field(default_factory=dict)
    capital: Mapping[str, float] = field(default_factory=dict)
    code: Mapping[str, int] = field(default_factory=dict)
    ordinary: OrdinaryWords = field(default_factory=OrdinaryWords)
    capitalises_nouns: bool = False
    repeated: tuple[str, ...] = ()
    computed: dict[str, float] = field(default_factory=dict, compare=False, repr=False)  # nameness of each word

    def count_small(self, word: str) -> int:
        """Return how often the page and ordinary text write a word with a small first letter."""
        folded = word.lower()
        known = self.ordinary.capitals.get(folded)
        return self.small.get(folded, 0) + (0 if known is None else OCCURRENCES - known)

    def count_capital(self, word: str) -> float:
        """Return how often the page and ordinary text capitalise a word where a small word would be small."""
        folded = word.lower()
        return self.capital.get(folded, 0) + self.ordinary.capitals.get(folded, 0)

    def compute_nameness(self, word: str) -> float:
        """Return the share of a word's occurrences that are written as names are."""
        known = self.computed.get(word)
        if known is None:
            capital = self.count_capital(word)
            is_noun = self.capitalises_nouns and self.is_ordinary_noun(word)
            known = 0.0 if is_noun else capital / (capital + self.count_small(word) + DOUBT)
            self.computed[word] = known
        return known

    def is_name(self, word: str) -> bool:
        """Return whether a word is mostly written as a name."""
        return self.compute_nameness(word) >= LEAST_NAMENESS

    def is_unknown(self, word: str) -> bool:
        """Return whether neither the page nor ordinary text writes a word in lower case, in any inflection."""
        if self.count_small(word) or (self.capitalises_nouns and self.is_ordinary_noun(word)):
            return False
        return bool(self.ordinary.language) and not self.ordinary.is_inflected(word)

    def is_ordinary_noun(self, word: str) -> bool:
        """Return whether a word, or the end of it if it is a compound, is a noun or another ordinary word."""
        folded = word.lower().rpartition("-")[2]
        ends = (folded[start:] for start in range(3, len(folded) - MIN_COMPOUND_END + 1))
        return self.ordinary.is_ordinary(folded) or any(self.ordinary.is_ordinary(end) for end in ends)

    def is_code(self, word: str) -> bool:
        """Return whether the page writes a word as code at least as often as in prose."""
        return self.code.get(word.lower(), 0) >= max(self.small.get(word.lower(), 0), 1)


def count_spellings(sentences: Iterable[str], headings: Iterable[str] = (), code: Iterable[str] = ()) -> Spelling:
    """Count how sentences, headings and code of one page write each word."""
    text = "\n".join(sentences)
    words = count_words(text)
    small = {word: count for word, count in words.items() if word.islower()}
    capital: dict[str, float] = {}
    titles = "\n".join(headings)
    for weight, found in ((1.0, words), (HEADING_WEIGHT, count_words(titles) if titles else {})):
        for word, count in found.items():
            if word[0].isupper():
                capital[word.lower()] = capital.get(word.lower(), 0.0) + weight * count
    language = detect_language(small)
    if not language and len(small) <= MAX_UNDETECTED_WORDS and text.isascii():
        language = DEFAULT_LANGUAGE
    return Spelling(
        small,
        capital,
        Counter(map(str.lower, code)),
        load_words(language),
        _has_capital_nouns(language, sum(small.values()), sum(capital.values())),
        () if text.isascii() else find_repeated_runs(text),
    )


def count_words(lines: str) -> Counter[str]:
    """Count the words of sentences, one in a line, without capitalised words that begin a sentence."""
    text = _NOISE.sub(" ", lines) if _HAS_NOISE.search(lines) else lines
    words = Counter(WORD.findall(text))
    words.subtract(word for word in _INITIAL.findall(text) if not word[0].islower())
    return words


def find_words(sentence: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield the words of a sentence, each with whether it begins the sentence or a part of it."""
    beginnings = {match.start(1) for match in _INITIAL.finditer(sentence)}
    for word in WORD.finditer(sentence):
        yield word, word.start() in beginnings


def _has_capital_nouns(language: str, small: float, capital: float) -> bool:
    """Return whether a page capitalises nouns: it is German, or in an unknown language with many capitals."""
    if language:
        return bool(load_words(language).nouns)
    return small + capital >= MIN_WORDS_FOR_SHARE and capital > CAPITAL_NOUN_SHARE * (small + capital)
