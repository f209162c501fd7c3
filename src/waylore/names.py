"""What can be told from a name alone: the keys by which names that look alike meet, and what is short for what.

A key is a pure function of one name, so a store keeps it like an index and two names are compared only if they
share one. Three kinds: the words of a name, its initials, a person's last name with the first initial. Keys
find candidates; whether two names mean the same is judged elsewhere, with types and vectors beside them.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import combinations

from waylore.text import normalise, terms

HONORIFICS = frozenset(
    "mr mrs ms miss dr prof professor sir dame lord lady rev hon capt col gen lt sgt herr frau mme mlle".split()
)
LEGAL_FORMS = frozenset(
    """inc incorporated corp corporation co company ltd limited llc llp plc gmbh ag kg sa sas sarl spa srl bv nv
    ab oy oyj as aps pty kk""".split()
)
SMALL = frozenset(
    """a an and as at by for from in into of on or the to with & de la le les du des del della di da dos der die
    das den und et y e zu van von""".split()
)
IDLE = HONORIFICS | LEGAL_FORMS | frozenset(["the", "and", "&"])
MIRRORED = {"words": "words", "short": "initials", "initials": "short", "brief": "person", "person": "brief"}
LONGEST_SHORT, LONGEST_FULL = 10, 10  # letters of a short form, words of what it is short for
MOST_OF_A_WORD = 3  # letters that one word gives to a short form
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*", re.UNICODE)
_WORD = re.compile(r"[^\W_]+(?:['’.&][^\W_]+)*", re.UNICODE)
_INITIAL = re.compile(r"\b([^\W\d_])\.", re.UNICODE)
_ACCENTS = re.compile("[\u0300-\u036f]")
_ARTICLE = re.compile(r"^\s*(?:the|an?)\s+(?=\w)", re.IGNORECASE)
ELISION = re.compile(r"\b[dl]['’](?=\w)", re.IGNORECASE)
_SHORT = re.compile(r"(?:[^\W_]\.){2,10}|[^\W_][\w&/-]{1,9}", re.UNICODE)


@lru_cache(maxsize=65_536)
def keys(name: str) -> tuple[str, ...]:
    """The keys of a name: at most one of each kind, the kind before the colon."""
    found = {
        "words": " ".join(sorted(stems(name))),
        "short": letters(name) if is_short(name) else "",
        "initials": _initials_of_capitalised(name),
        **_person(name),
    }
    return tuple(f"{kind}:{key}" for kind, key in found.items() if key)


def mirrored(name: str) -> tuple[str, ...]:
    """The keys that a name's likes have: a short form asks for initials, and initials for a short form."""
    split = (key.split(":", 1) for key in keys(name))
    return tuple(f"{MIRRORED[kind]}:{key}" for kind, key in split)


def words_key(name: str) -> tuple[str, ...]:
    """The key of a name's words alone."""
    return tuple(key for key in keys(name) if key.startswith("words:"))


@lru_cache(maxsize=65_536)
def stems(name: str) -> tuple[str, ...]:
    """The words that tell a name from others, stemmed and in order, small words and all that is idle aside."""
    told = spelled(name)
    telling = [word for word in told if word not in SMALL or len(word) == 1] or told
    return tuple(stem for word in telling for stem in terms(word) or [word])


@lru_cache(maxsize=65_536)
def spelled(name: str) -> tuple[str, ...]:
    """The words of a name without accents, articles, titles and legal forms: `Byron, Ada` as `Ada Byron`."""
    words = normalise(_ARTICLE.sub("", _plain(_turned(name)))).split()
    initials = set(map(str.casefold, _INITIAL.findall(name)))  # the S. A. of a person is no legal form
    idle = IDLE - initials
    return tuple([word for word in words if word not in idle] or words)


def is_short(name: str) -> bool:
    """Whether a name looks like a short form: one word and mostly capitals, as `WHO`, `W.H.O.` or `PhD`."""
    if not _SHORT.fullmatch(name.strip()):
        return False
    capitals = sum(letter.isupper() for letter in name)
    small = sum(letter.islower() for letter in name)
    return capitals >= 2 and capitals > small


def letters(short: str) -> str:
    """The letters and digits of a short form, folded."""
    return "".join(filter(str.isalnum, normalise(short)))


def is_short_for(short: str, full: str) -> bool:
    """Whether a short form may stand for a name: it spells initials, small words used or passed over.

    Letters within words count where all the words are needed (`DNA`, deoxyribonucleic acid), and a plural `s`
    is no letter of it.
    """
    words = _words(full)
    wanted = letters(short)
    if not is_short(short) or not 1 <= len(words) <= LONGEST_FULL or letters(full) == wanted:
        return False
    tries = [wanted, wanted.removesuffix("s")] if short.endswith("s") else [wanted]
    fulls = [words, words[:-1]] if words[-1].casefold() in LEGAL_FORMS else [words]
    return any(_spells(each, full) for each in tries for full in fulls)


def _words(name: str) -> list[str]:
    return _WORD.findall(ELISION.sub("", name).replace("-", " "))


def _spells(wanted: str, words: list[str]) -> bool:
    if len(wanted) < 2:
        return False
    firsts = [normalise(word)[:1] for word in words]
    small = [place for place, word in enumerate(words) if word.casefold() in SMALL]
    for count in range(min(len(small), 4) + 1):
        for passed in combinations(small, count):
            if wanted == "".join(first for place, first in enumerate(firsts) if place not in passed):
                return True
    return _within(wanted, [normalise(w) for w in words if w.casefold() not in SMALL])


def _within(wanted: str, words: list[str]) -> bool:
    """Whether each word in turn gives its first letter and perhaps more, in order; none is left over."""
    if not words or not wanted:
        return not words and not wanted
    first, rest = words[0], words[1:]
    return wanted[0] == first[:1] and any(
        _is_in_order(wanted[1:taken], first[1:]) and _within(wanted[taken:], rest)
        for taken in range(1, min(len(wanted) - len(rest), MOST_OF_A_WORD) + 1)
    )


def _is_in_order(wanted: str, word: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in wanted)


def _initials_of_capitalised(name: str) -> str:
    """The initials of a name of several capitalised words, small words aside; empty if it is none such."""
    words = [word for word in _words(name) if word.casefold() not in SMALL]
    if not 2 <= len(words) <= LONGEST_FULL or not all(word[0].isupper() for word in words):
        return ""
    return normalise("".join(word[0] for word in words))


def _person(name: str) -> dict[str, str]:
    """The last name and the first initial, told apart by whether more than the initial is written."""
    words = spelled(name)
    written = [word for word in _LETTERS.findall(name) if word not in SMALL]
    if not 2 <= len(words) <= 4 or not all(word[0].isupper() for word in written) or not words[-1].isalpha():
        return {}
    is_named = len(words[-1]) > 1 and all(unicodedata.category(word[0]) == "Ll" for word in words)
    kind = "brief" if len(words[0]) == 1 else "person"
    return {kind: f"{words[0][0]} {words[-1]}"} if is_named else {}


def _turned(name: str) -> str:
    """`Byron, Ada` as `Ada Byron`; what follows the comma of `Acme, Inc.` stays there."""
    last, comma, first = name.partition(",")
    is_turned = comma and "," not in first and _LETTERS.search(last) and not _is_form(first)
    return f"{first.strip()} {last}" if is_turned else name


def _plain(name: str) -> str:
    """A name without the accents that may be left out in writing; in Cyrillic they make another letter."""
    composed = unicodedata.normalize("NFC", name)
    letters_ = (c if "\u0400" <= c <= "\u052f" else unicodedata.normalize("NFD", c) for c in composed)
    return "".join(_ACCENTS.sub("", letter) for letter in letters_)


def _is_form(text: str) -> bool:
    """Whether what follows a comma is a title or a legal form, as in `Acme, Inc.`, and no first name."""
    words = normalise(text).split()
    return not words or all(word in LEGAL_FORMS or word in HONORIFICS or word in {"jr", "sr"} for word in words)
