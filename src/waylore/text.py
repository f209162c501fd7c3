"""How Waylore reads words: names made comparable, the terms that BM25 counts, and how many tokens a text takes.

Every store and every stage uses `normalise` and `terms`, which is why the same text ranks the same on
every engine. Nothing here knows a language model; `terms` stems Latin and Cyrillic words with
Snowball and cuts scripts that write no spaces into pairs of characters, as Lucene's CJK analyser does.
It does not detect languages, and it does not find entities.
"""

import math
import re
import threading
import unicodedata
from functools import lru_cache

import Stemmer

# Scripts written without spaces: Han, kana, Hangul, Thai, Lao, Myanmar, Khmer.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_UNIT = re.compile(rf"{_UNSPACED.pattern[:-1]} ?|(?:(?!{_UNSPACED.pattern[:-1]})\S)+ ?")
# Marks belong to the letter before them, which `\w` does not know: without them Hindi falls to pieces.
_MARKS = "".join(c for c in map(chr, range(0x0300, 0x1E900)) if unicodedata.category(c)[0] == "M")
_WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*")
_NOT_A_NAME = re.compile(rf"(?<![\w{_MARKS}+#])[+#]+|[^\w\s{_MARKS}+#]")
_TO_SPACES = {c: " " for c in range(128) if not (chr(c).isalnum() or chr(c).isspace())}  # the same for ASCII
_SPACES = re.compile(r"\s+")
_ASIDE = re.compile(r"\(.*?\)")
# Marks that may be left out in writing: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowels.
_OPTIONAL = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
_STEMMERS = {"latin": Stemmer.Stemmer("english"), "cyrillic": Stemmer.Stemmer("russian")}
_STEMMING = threading.Lock()  # a Snowball stemmer keeps state while it works
# What takes one piece of a tokenizer's, and how many pieces it takes: the most of cl100k and o200k, about.
_PIECES = tuple(
    (re.compile(pattern), cost)
    for pattern, cost in (
        # The first two are all there is of ASCII; a long word is a rare one.
        (r"(?<!\w)[a-z]{1,5}|[A-Z]?[a-z]{1,2}|[A-Z]{1,2}|[0-9]{1,2}", 1.0),
        (r"[^\S ]{1,8}| {2,32}|[^\sA-Za-z0-9\u0080-\U0010ffff]", 1.0),
        ("[\u0400-\u04ff]{1,2}", 1.0),  # Cyrillic
        # Western Europe, Greek, Hebrew, Arabic, Devanagari, Thai, signs; a space is apart before most of them.
        ("[\u0080-\u00ff\u02b0-\u03ff\u0500-\u097f\u0e00-\u0e7f\u1e00-\u206f\u20a0-\u21ff\u2300-\u2e7f]", 1.0),
        (" (?=[\u0590-\uffff])", 1.0),
        ("[\u2e80-\uffff]", 1.5),  # Han, kana, Hangul
        ("[\u0100-\u02af\u0980-\u0dff\u0e80-\u1dff\u2070-\u209f\u2200-\u22ff]", 2.0),  # what is rarer
        ("[\U00010000-\U0010ffff]", 3.0),  # emoji
    )
)

STOP_WORDS = frozenset(
    """a an and are as at be been being but by can could did do does for from had has have he her his how i if
    in into is it its me my no not of on or our she so such than that the their them then there these they this
    to too very was we were what when where which who whom whose why will with would you your
    """.split()
)


@lru_cache(maxsize=4_096)
def normalise(name: str) -> str:
    """Make a name comparable: NFKC, case-folded, punctuation to spaces; `C++` and `C#` keep their marks."""
    if name.isascii() and "+" not in name and "#" not in name:
        return " ".join(name.lower().translate(_TO_SPACES).split()) or " ".join(name.split())
    folded = _folded(name)
    cleaned = _SPACES.sub(" ", _NOT_A_NAME.sub(" ", folded.replace("_", " "))).strip()
    return cleaned or _SPACES.sub(" ", folded).strip()


def units(name: str) -> list[str]:
    """What a normalised text is joined from: words, and characters of scripts without spaces."""
    return _UNIT.findall(name)


def is_unspaced(text: str) -> bool:
    """Whether a text has characters of a script that writes no spaces."""
    return _UNSPACED.search(text) is not None


def without_aside(title: str) -> str:
    """What a title names, less what it says in brackets: `Mercury (planet)` names Mercury."""
    return _ASIDE.sub("", title).strip()


def occurrences(name: str, text: str) -> int:
    """How often a text has a name, both normalised: as whole words, where the script has words."""
    if is_unspaced(name):
        return text.count(name)
    return _apart(text).count(_apart(name))


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, stop words left out; used for indexing and for questions alike."""
    found: list[str] = []
    for word in _WORD.findall(_folded(text)):
        if word.isascii():
            if word not in STOP_WORDS:
                found.append(_stem(word, "latin"))
        else:
            found.extend(_terms_of_word(word))
    return found


def pieces(text: str) -> int:
    """How many tokens a text takes, about and rather too many than too few; for want of a tokenizer."""
    patterns = _PIECES[:2] if text.isascii() else _PIECES
    return math.ceil(sum(cost * len(pattern.findall(text)) for pattern, cost in patterns))


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.replace("i\u0307", "i")  # what case folding makes of the Turkish capital


@lru_cache(maxsize=64)  # a passage is asked for one name after another
def _apart(text: str) -> str:
    """Words between spaces of their own, so that names next to each other are both counted."""
    return f" {text.replace(' ', '  ')} "


@lru_cache(maxsize=65_536)
def _terms_of_word(word: str) -> tuple[str, ...]:
    found: list[str] = []
    start = 0
    for run in _UNSPACED.finditer(word):
        found.extend(_spaced(word[start : run.start()]))
        found.extend(_pairs(run.group()))
        start = run.end()
    found.extend(_spaced(word[start:]))
    return tuple(found)


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _spaced(word: str) -> list[str]:
    if not word or word in STOP_WORDS:
        return []
    if "\u0400" <= word[0] <= "\u052f":
        return [_stem(word.replace("ё", "е"), "cyrillic")]
    plain = _OPTIONAL.sub("", unicodedata.normalize("NFD", word))
    return [_stem(unicodedata.normalize("NFC", plain), "latin")] if plain else []


@lru_cache(maxsize=65_536)
def _stem(word: str, script: str) -> str:
    with _STEMMING:
        return str(_STEMMERS[script].stemWord(word))
