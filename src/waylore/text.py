"""Normalise names, split text into the terms that BM25 counts, and estimate the number of tokens.

Every store and every stage uses `normalise` and `terms`, so the same text ranks the same on every engine. `terms`
stems Latin and Cyrillic words with Snowball and splits scripts without spaces into pairs of characters, as
Lucene's CJK analyser does. This module calls no language model, detects no language and finds no entities.
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
# Marks belong to the letter before them, which `\w` does not include; without them Hindi words break.
# They are written down as hexadecimal ranges, those of Unicode 14 as in Python 3.11, because reading the
# categories of 124,416 characters takes longer than the rest of the module. A test compares the two.
_MARK_RANGES = """
    300-36f 483-489 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4 6e7-6e8 6ea-6ed 711
    730-74a 7a6-7b0 7eb-7f3 7fd 816-819 81b-823 825-827 829-82d 859-85b 898-89f 8ca-8e1 8e3-903 93a-93c
    93e-94f 951-957 962-963 981-983 9bc 9be-9c4 9c7-9c8 9cb-9cd 9d7 9e2-9e3 9fe a01-a03 a3c a3e-a42 a47-a48
    a4b-a4d a51 a70-a71 a75 a81-a83 abc abe-ac5 ac7-ac9 acb-acd ae2-ae3 afa-aff b01-b03 b3c b3e-b44 b47-b48
    b4b-b4d b55-b57 b62-b63 b82 bbe-bc2 bc6-bc8 bca-bcd bd7 c00-c04 c3c c3e-c44 c46-c48 c4a-c4d c55-c56
    c62-c63 c81-c83 cbc cbe-cc4 cc6-cc8 cca-ccd cd5-cd6 ce2-ce3 d00-d03 d3b-d3c d3e-d44 d46-d48 d4a-d4d d57
    d62-d63 d81-d83 dca dcf-dd4 dd6 dd8-ddf df2-df3 e31 e34-e3a e47-e4e eb1 eb4-ebc ec8-ecd f18-f19 f35 f37
    f39 f3e-f3f f71-f84 f86-f87 f8d-f97 f99-fbc fc6 102b-103e 1056-1059 105e-1060 1062-1064 1067-106d
    1071-1074 1082-108d 108f 109a-109d 135d-135f 1712-1715 1732-1734 1752-1753 1772-1773 17b4-17d3 17dd
    180b-180d 180f 1885-1886 18a9 1920-192b 1930-193b 1a17-1a1b 1a55-1a5e 1a60-1a7c 1a7f 1ab0-1ace 1b00-1b04
    1b34-1b44 1b6b-1b73 1b80-1b82 1ba1-1bad 1be6-1bf3 1c24-1c37 1cd0-1cd2 1cd4-1ce8 1ced 1cf4 1cf7-1cf9
    1dc0-1dff 20d0-20f0 2cef-2cf1 2d7f 2de0-2dff 302a-302f 3099-309a a66f-a672 a674-a67d a69e-a69f a6f0-a6f1
    a802 a806 a80b a823-a827 a82c a880-a881 a8b4-a8c5 a8e0-a8f1 a8ff a926-a92d a947-a953 a980-a983 a9b3-a9c0
    a9e5 aa29-aa36 aa43 aa4c-aa4d aa7b-aa7d aab0 aab2-aab4 aab7-aab8 aabe-aabf aac1 aaeb-aaef aaf5-aaf6
    abe3-abea abec-abed fb1e fe00-fe0f fe20-fe2f 101fd 102e0 10376-1037a 10a01-10a03 10a05-10a06 10a0c-10a0f
    10a38-10a3a 10a3f 10ae5-10ae6 10d24-10d27 10eab-10eac 10f46-10f50 10f82-10f85 11000-11002 11038-11046
    11070 11073-11074 1107f-11082 110b0-110ba 110c2 11100-11102 11127-11134 11145-11146 11173 11180-11182
    111b3-111c0 111c9-111cc 111ce-111cf 1122c-11237 1123e 112df-112ea 11300-11303 1133b-1133c 1133e-11344
    11347-11348 1134b-1134d 11357 11362-11363 11366-1136c 11370-11374 11435-11446 1145e 114b0-114c3
    115af-115b5 115b8-115c0 115dc-115dd 11630-11640 116ab-116b7 1171d-1172b 1182c-1183a 11930-11935
    11937-11938 1193b-1193e 11940 11942-11943 119d1-119d7 119da-119e0 119e4 11a01-11a0a 11a33-11a39
    11a3b-11a3e 11a47 11a51-11a5b 11a8a-11a99 11c2f-11c36 11c38-11c3f 11c92-11ca7 11ca9-11cb6 11d31-11d36
    11d3a 11d3c-11d3d 11d3f-11d45 11d47 11d8a-11d8e 11d90-11d91 11d93-11d97 11ef3-11ef6 16af0-16af4
    16b30-16b36 16f4f 16f51-16f87 16f8f-16f92 16fe4 16ff0-16ff1 1bc9d-1bc9e 1cf00-1cf2d 1cf30-1cf46
    1d165-1d169 1d16d-1d172 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad 1d242-1d244 1da00-1da36 1da3b-1da6c 1da75
    1da84 1da9b-1da9f 1daa1-1daaf 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e130-1e136
    1e2ae 1e2ec-1e2ef 1e8d0-1e8d6
"""
_MARKS = "".join("-".join(chr(int(end, 16)) for end in ends.split("-")) for ends in _MARK_RANGES.split())
_WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*")
_MARK = re.compile(f"[{_MARKS}]")
_NOT_A_NAME = re.compile(rf"(?<![\w{_MARKS}+#])[+#]+|[^\w\s{_MARKS}+#]")
_TO_SPACES = {c: " " for c in range(128) if not (chr(c).isalnum() or chr(c).isspace())}  # the same for ASCII
_SPACES = re.compile(r"\s+")
_ASIDE = re.compile(r"\(.*?\)")
# Marks that may be left out in writing: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowels.
_OPTIONAL = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
_STEMMERS = {"latin": Stemmer.Stemmer("english"), "cyrillic": Stemmer.Stemmer("russian")}
_STEMMING = threading.Lock()  # a Snowball stemmer keeps state while it works
# Patterns of one token, and their cost in tokens: about the larger of cl100k and o200k.
# They are compiled on first use, because that takes half as long as loading the module.
_PIECES = (
    # The first two patterns cover ASCII; long words are rare.
    (r"(?<!\w)[a-z]{1,5}|[A-Z]?[a-z]{1,2}|[A-Z]{1,2}|[0-9]{1,2}", 1.0),
    (r"[^\S ]{1,8}| {2,32}|[^\sA-Za-z0-9\u0080-\U0010ffff]", 1.0),
    ("[\u0400-\u04ff]{1,2}", 1.0),  # Cyrillic
    # Western Europe, Greek, Hebrew, Arabic, Devanagari, Thai, signs; most have a separate space before them.
    ("[\u0080-\u00ff\u02b0-\u03ff\u0500-\u097f\u0e00-\u0e7f\u1e00-\u206f\u20a0-\u21ff\u2300-\u2e7f]", 1.0),
    (" (?=[\u0590-\uffff])", 1.0),
    ("[\u2e80-\uffff]", 1.5),  # Han, kana, Hangul
    ("[\u0100-\u02af\u0980-\u0dff\u0e80-\u1dff\u2070-\u209f\u2200-\u22ff]", 2.0),  # rarer scripts
    ("[\U00010000-\U0010ffff]", 3.0),  # emoji
)
_ASCII_PIECES = "|".join(pattern for pattern, _ in _PIECES[:2])
# Tokens of each part of a text, fitted to o200k: `python -m benchmarks.tokens` compares them.
_WORD_COST, _LONG_COST, _NAME_COST, _INNER_CAPITAL_COST = 0.88, 0.33, 0.6, 0.2
_LONG_LETTERS, _NAME_LETTERS = 8, 5  # letters after the eighth cost more, also names of more than five
_SIGN_COSTS = (
    ("[0-9]{1,3}", 1.0),
    (" (?=[0-9])", 1.5),
    ("[^\\sA-Za-z0-9\u0080-\U0010ffff]+", 1.15),
    ("\n+|\t+", 1.0),
)
_OTHER_COSTS = (
    ("[\u0080-\u036f\u1e00-\u1eff]", 0.6),  # letters with accents
    ("[\u0370-\u03ff]", 0.5),  # Greek
    ("[\u0400-\u04ff]", 0.35),  # Cyrillic
    ("[\u0590-\u10ff]", 0.5),  # Hebrew to Georgian
    ("[\u2e80-\ud7ff\uf900-\uffff]", 0.8),  # Han, kana, Hangul
    ("[\u0500-\u058f\u1100-\u1dff\u1f00-\u2e7f\ud800-\uf8ff]", 1.0),
    ("[\U00010000-\U0010ffff]", 2.5),  # emoji
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
    folded = _fold(name)
    cleaned = _SPACES.sub(" ", _NOT_A_NAME.sub(" ", folded.replace("_", " "))).strip()
    return cleaned or _SPACES.sub(" ", folded).strip()


def split_units(name: str) -> list[str]:
    """Split a normalised text into words, and into characters for scripts without spaces."""
    return _UNIT.findall(name)


def is_unspaced(text: str) -> bool:
    """Return whether a text has characters of a script that writes no spaces."""
    return _UNSPACED.search(text) is not None


def strip_parentheses(title: str) -> str:
    """Remove the parts of a title in parentheses: `Mercury (planet)` names Mercury."""
    return " ".join(_ASIDE.sub("", title).split())


def count_occurrences(name: str, text: str) -> int:
    """Count a name in a text, both normalised; as whole words if the script has words."""
    if is_unspaced(name):
        return text.count(name)
    return _widen_spaces(text).count(_widen_spaces(name))


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case, without punctuation."""
    if text.isascii():
        return text.lower().translate(_TO_SPACES).split()  # the same, nine times as fast
    folded = _fold(text)
    signs = "".join([sign for sign in set(folded) if not sign.isalnum()])
    if _MARK.search(signs):
        return _WORD.findall(folded)
    for sign in signs:  # the same without marks, twice as fast
        folded = folded.replace(sign, " ")
    return folded.split()


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, without stop words. Documents and questions use the same terms."""
    found: list[str] = []
    for word in split_words(text):
        if word.isascii():
            if word not in STOP_WORDS:
                found.append(_stem(word, "latin"))
        else:
            found.extend(_split_word(word))
    return found


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text without a tokenizer, within a tenth of what o200k counts in pages."""
    words = re.findall("[A-Za-z]+", text)
    capital = [len(word) for word in words if word < "a"]
    tokens = _WORD_COST * len(words) + _NAME_COST * sum(length > _NAME_LETTERS for length in capital)
    tokens += _LONG_COST * sum(len(word) - _LONG_LETTERS for word in words if len(word) > _LONG_LETTERS)
    tokens += _INNER_CAPITAL_COST * (len(re.findall("[A-Z]", text)) - len(capital))
    for pattern, cost in _SIGN_COSTS if text.isascii() else (*_SIGN_COSTS, *_OTHER_COSTS):
        tokens += cost * len(re.findall(pattern, text))
    return math.ceil(tokens)


def count_pieces(text: str) -> int:
    """Return an approximate maximum of the tokens of a text. Passages are cut by this measure."""
    if text.isascii():
        return len(re.findall(_ASCII_PIECES, text))
    return math.ceil(sum(cost * len(re.findall(pattern, text)) for pattern, cost in _PIECES))


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.replace("i\u0307", "i")  # case folding turns the Turkish capital into this


@lru_cache(maxsize=64)  # cached: one passage is searched for many names
def _widen_spaces(text: str) -> str:
    """Put two spaces between words, so that two names side by side are both counted."""
    return f" {text.replace(' ', '  ')} "


@lru_cache(maxsize=65_536)
def _split_word(word: str) -> tuple[str, ...]:
    found: list[str] = []
    start = 0
    for run in _UNSPACED.finditer(word):
        found.extend(_stem_spaced(word[start : run.start()]))
        found.extend(_split_pairs(run.group()))
        start = run.end()
    found.extend(_stem_spaced(word[start:]))
    return tuple(found)


def _split_pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _stem_spaced(word: str) -> list[str]:
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
