"""Compute the keys that find similar names, and match acronyms with their full names.

A key is a pure function of one name, so a store can index it, and two names are compared only if they share one.
There are three kinds: the words of a name, its initials, and a person's last name with the first initial. Keys find
candidates. `retrieval/graph/same_as.py` decides whether two names mean the same, by types and vectors.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import combinations

from waylore.text import normalise, strip_parentheses, terms

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
IGNORED = HONORIFICS | LEGAL_FORMS | frozenset(["the", "and", "&"])
MIRRORED = {"words": "words", "short": "initials", "initials": "short", "brief": "person", "person": "brief"}
MAX_WORDS = 10  # maximum words of a name that has a short form
MAX_LETTERS_PER_WORD = 3  # letters that one word contributes to a short form
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*", re.UNICODE)
_WORD = re.compile(r"[^\W_]+(?:['’.&][^\W_]+)*", re.UNICODE)
_INITIAL = re.compile(r"\b([^\W\d_])\.", re.UNICODE)
_ACCENTS = re.compile("[\u0300-\u036f]")
_ARTICLE = re.compile(r"^\s*(?:the|an?)\s+(?=\w)", re.IGNORECASE)
ELISION = re.compile(r"\b[dl]['’](?=\w)", re.IGNORECASE)
_PART = (
    r"(?i:chapter|section|appendix|part|annex|chapitre|annexe|partie|kapitel|abschnitt|anhang|teil|capítulo|sección"
    r"|apéndice|capitolo|sezione|appendice|глава|раздел|приложение)"
)
_PART_NUMBER = r"\s(?:\d{1,3}|[A-Z]|[IVXL]{2,6})(?:\.\d{1,3})*"
# `9.8. Quotas`, `Chapter 2. Boats`, `Section 9.2, “Remote login”`; a single number may belong to a name.
_SECTION = re.compile(rf"(?:{_PART}{_PART_NUMBER}(?:[.,:]|\s[–—-])|(?:\d{{1,3}}|[A-Z])(?:\.\d{{1,3}})+\.)\s+(?=\S)")
_ONLY_SECTION = re.compile(rf"{_PART}(?:{_PART_NUMBER})?|[A-Z](?:\.\d{{1,2}})+")
_NUMBERED = re.compile(r"([A-Z]{2,10}[ -]\d{1,6}): ")
_SHORT = re.compile(r"(?:[^\W_]\.){2,10}|[^\W_][\w&/-]{1,9}", re.UNICODE)


@lru_cache(maxsize=65_536)
def keys(name: str) -> tuple[str, ...]:
    """Return the keys of a name, at most one of each kind; the kind stands before the colon."""
    found = {
        "words": " ".join(sorted(stems(name))),
        "short": get_letters(name) if is_short(name) else "",
        "initials": _read_initials(name),
        **_person(name),
    }
    return tuple(f"{kind}:{key}" for kind, key in found.items() if key)


def get_subject(title: str) -> str:
    """Return what a title names: `Mercury (planet)` names Mercury, `PEP 8: Style Guide` PEP 8, `A.8. Tails` Tails."""
    if numbered := _NUMBERED.match(title):
        return numbered[1]
    return strip_parentheses(strip_number(title)) or title.strip()


def strip_number(heading: str) -> str:
    """Return a heading without the number of its section; also `Section 9.2, “Remote login”` as Remote login."""
    number = _SECTION.match(heading)
    return heading[number.end() :].strip(' “”«»"') if number else heading


def is_section(name: str) -> bool:
    """Return whether a name is only the number of a section, as in Chapter 2 or B.1.5."""
    return _ONLY_SECTION.fullmatch(name) is not None


def list_matching_keys(name: str) -> tuple[str, ...]:
    """Return the keys of similar names: a short form matches initials, and initials match a short form."""
    split = (key.split(":", 1) for key in keys(name))
    return tuple(f"{MIRRORED[kind]}:{key}" for kind, key in split)


def list_word_keys(name: str) -> tuple[str, ...]:
    """Return only the keys of words."""
    return tuple(key for key in keys(name) if key.startswith("words:"))


@lru_cache(maxsize=65_536)
def stems(name: str) -> tuple[str, ...]:
    """Return the significant words of a name, stemmed and in order, without small words."""
    words = split_significant_words(name)
    kept = [word for word in words if word not in SMALL or len(word) == 1] or words
    return tuple(stem for word in kept for stem in terms(word) or [word])


@lru_cache(maxsize=65_536)
def split_significant_words(name: str) -> tuple[str, ...]:
    """Return the words of a name without accents, articles, titles and legal forms; `Byron, Ada` as `Ada Byron`."""
    words = normalise(_ARTICLE.sub("", _strip_accents(_put_first_name_first(name)))).split()
    initials = set(map(str.casefold, _INITIAL.findall(name)))  # in the name of a person, S. A. is not a legal form
    ignored = IGNORED - initials
    return tuple([word for word in words if word not in ignored] or words)


def is_short(name: str) -> bool:
    """Return whether a name looks like a short form: one word, mostly capitals, as `WHO`, `W.H.O.` or `PhD`."""
    if not _SHORT.fullmatch(name.strip()):
        return False
    capitals = sum(letter.isupper() for letter in name)
    small = sum(letter.islower() for letter in name)
    return capitals >= 2 and capitals > small


def get_letters(short: str) -> str:
    """Return the letters and digits of a short form, case-folded."""
    return "".join(filter(str.isalnum, normalise(short)))


def is_short_for(short: str, full: str) -> bool:
    """Return whether a short form may mean a name: it spells the initials, with or without small words.

    Letters within words count if every word contributes one (`DNA`, deoxyribonucleic acid). A plural `s` is
    ignored.
    """
    if not is_short(short):
        return False
    words = _words(full)
    wanted = get_letters(short)
    if not 1 <= len(words) <= MAX_WORDS or get_letters(full) == wanted:
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
    return _spells_within(wanted, [normalise(w) for w in words if w.casefold() not in SMALL])


def _spells_within(wanted: str, words: list[str]) -> bool:
    """Return whether the words in turn contribute their first letter, and perhaps more, to all of the letters."""
    if not words or not wanted:
        return not words and not wanted
    first, rest = words[0], words[1:]
    return wanted[0] == first[:1] and any(
        _is_in_order(wanted[1:taken], first[1:]) and _spells_within(wanted[taken:], rest)
        for taken in range(1, min(len(wanted) - len(rest), MAX_LETTERS_PER_WORD) + 1)
    )


def _is_in_order(wanted: str, word: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in wanted)


def _read_initials(name: str) -> str:
    """Return the initials of a name of several capitalised words, without small words; empty for others."""
    words = [word for word in _words(name) if word.casefold() not in SMALL]
    if not 2 <= len(words) <= MAX_WORDS or not all(word[0].isupper() for word in words):
        return ""
    return normalise("".join(word[0] for word in words))


def _person(name: str) -> dict[str, str]:
    """Return the key of last name and first initial; the kind depends on whether the first name is written out."""
    words = split_significant_words(name)
    written = [word for word in _LETTERS.findall(name) if word not in SMALL]
    if not 2 <= len(words) <= 4 or not all(word[0].isupper() for word in written) or not words[-1].isalpha():
        return {}
    is_named = len(words[-1]) > 1 and all(unicodedata.category(word[0]) == "Ll" for word in words)
    kind = "brief" if len(words[0]) == 1 else "person"
    return {kind: f"{words[0][0]} {words[-1]}"} if is_named else {}


def _put_first_name_first(name: str) -> str:
    """Return `Byron, Ada` as `Ada Byron`; `Acme, Inc.` stays as it is."""
    last, comma, first = name.partition(",")
    is_reversed = comma and "," not in first and _LETTERS.search(last) and not _is_form(first)
    return f"{first.strip()} {last}" if is_reversed else name


def _strip_accents(name: str) -> str:
    """Return a name without optional accents; in Cyrillic an accented letter is another letter and stays."""
    if name.isascii():
        return name
    composed = unicodedata.normalize("NFC", name)
    letters_ = (c if "\u0400" <= c <= "\u052f" else unicodedata.normalize("NFD", c) for c in composed)
    return "".join(_ACCENTS.sub("", letter) for letter in letters_)


def _is_form(text: str) -> bool:
    """Return whether the text after a comma is a title or a legal form, as in `Acme, Inc.`."""
    words = normalise(text).split()
    return not words or all(word in LEGAL_FORMS or word in HONORIFICS or word in {"jr", "sr"} for word in words)
