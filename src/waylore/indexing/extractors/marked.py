"""Find the names that a sentence marks: by code, links and strong words, by their shape, and by quotes.

Code, links and strong words are names if they look like one. Identifiers, addresses and numbered standards are names by
their shape. Runs of capitalised words are read by `extractors.naming`.
"""

import re
from collections.abc import Iterator

from waylore.indexing.blocks import Mark
from waylore.indexing.extractors.markup import MarkedSentence
from waylore.indexing.extractors.spelling import Spelling, find_words
from waylore.indexing.extractors.unspaced import find_runs
from waylore.names import is_short, strip_number
from waylore.text import is_unspaced

MAX_NAME_WORDS = 8
MAX_STRONG_WORDS = 6
MAX_TERM_WORDS = 3
MAX_ANGLED_WORDS = 3
SHORT_FORMS = frozenset(["IT", "US", "WHO"])  # although their small twins are frequent words

_QUOTED = re.compile(
    r"``\s*(.{1,100}?)\s*''|“(.{1,100}?)”|\"(.{1,100}?)\"|«\s?(.{1,100}?)\s?»|„(.{1,100}?)“"
    r"|「(.{1,100}?)」|『(.{1,100}?)』|《(.{1,100}?)》"
)
_SHAPES = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"  # mail addresses
    r"|(?<![\w/@])[@#][A-Za-z][\w./-]{1,60}\w"  # handles and channels
    r"|\b(?:PEP|RFC|KEP|CVE|ISO|BCP|STD)[ -]?\d[\d.-]*\b"  # numbered standards
    r"|\b[A-Z]{2,10}-\d{1,6}\b"  # tickets
    r"|\bv\d{1,4}(?:\.\d{1,6}){1,4}\b"  # versions
    r"|\b(?:[a-z0-9-]{1,63}\.){1,5}(?:com|org|net|io|uk|gov|dev|app|eu|de)\b"  # hosts
    r"|(?P<code>\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b"  # environment variables
    r"|\b(?:c\.)?[A-Z]\w{1,60}(?:\.[a-z_]\w{1,60})+\b"  # Class.attribute
    r"|\b[A-Za-z]\w{0,60}(?:_\w{1,60})+"  # snake_case
    r"|\b[a-z]+[A-Z]\w*[a-z]\w*\b|\b[a-z]{1,6}[A-Z]{2,}\b"  # camelCase, macOS
    r"|\b[\w-]{1,60}\.(?:py|txt|md|rst|ya?ml|json|toml|cfg|ini|conf|sh|html|xml|csv)\b"  # files
    r"|\b[a-z]\w{0,50}(?:\.[a-z]\w{0,50}){1,6}(?=\(\))|\b\w+(?=\(\)))"  # calls
)
_HAS_SHAPE = re.compile(r"[@#_]|\(\)|[a-z][A-Z]|[a-z]\.[a-z]|[A-Zv][ -]?\d")
_HAS_QUOTE = re.compile(r"[\"“«„「『《]|``")
_IDENTIFIER = re.compile(r"(?=.*[^\W\d_])[^\s,;()\[\]{}<>\"'=%$|\\*]{2,60}(?:\(\))?")
_HAS_SIGN = re.compile(r"[_./:@#-]|[a-z][A-Z]|\d")
_SLUG = re.compile(r"[\W_]+")
_TERM_END = re.compile(r"\s+[-–—]\s")


def is_anchor(shown: str, target: str, spelling: Spelling) -> bool:
    """Return whether the text of a link names its target: by a name in it, by its shape, or by the address."""
    words = strip_number(shown).split()
    if not 0 < len(words) <= MAX_NAME_WORDS or "://" in shown:
        return False
    if len(words) < len(shown.split()):
        return True  # a numbered section
    slug = _SLUG.sub("-", shown.lower()).strip("-")
    is_plain = shown.islower() and len(words) == 1 and spelling.ordinary.is_ordinary(shown)
    if len(words) <= 4 and len(slug) > 2 and slug in _SLUG.sub("-", target.lower()) and not is_plain:
        return True
    if len(words) == 1 and _HAS_SIGN.search(shown):
        return True
    return _has_name(shown, spelling) and (len(words) <= 5 or shown[0].isupper())


def list_places(sentence: MarkedSentence, spelling: Spelling) -> Iterator[tuple[int, int, str]]:
    """Yield the places of marked names, shapes and quoted titles, the most certain first."""
    for mark in sentence.marks:
        if _is_marked_name(mark, sentence.text, spelling):
            yield *_find_marked_name(mark, sentence.text), "code" if mark.kind == "code" else ""
    if _HAS_SHAPE.search(sentence.text):
        for match in _SHAPES.finditer(sentence.text):
            yield match.start(), match.end(), "code" if match["code"] else ""
    if _HAS_QUOTE.search(sentence.text):
        for match in _QUOTED.finditer(sentence.text):
            start, end = match.span(match.lastindex or 0)
            if _is_title(sentence.text[start:end], spelling, is_angled=match[0][0] in "«„"):
                yield start, end, ""
    for start, end in find_runs(spelling.repeated, sentence.text):
        yield start, end, ""


def _is_marked_name(mark: Mark, text: str, spelling: Spelling) -> bool:
    shown = text[mark.start : mark.end]
    if mark.kind == "role":
        return len(shown.split()) <= MAX_NAME_WORDS
    if mark.kind == "code":
        return _is_identifier(shown, spelling)
    if mark.kind == "link" and mark.target.startswith("[["):
        return mark.target == f"[[{shown}]]"
    if mark.kind == "link":
        return is_anchor(shown, mark.target, spelling)
    is_first = mark.kind == "strong" and not text[: mark.start].strip() and len(shown.split()) <= MAX_STRONG_WORDS
    is_term = len(shown.split()) <= MAX_TERM_WORDS and _TERM_END.match(text, mark.end) is not None
    return is_first and (is_term or _has_name(shown, spelling))


def _find_marked_name(mark: Mark, text: str) -> tuple[int, int]:
    """Return the place of a marked name without the number of its section."""
    shown = text[mark.start : mark.end]
    name = strip_number(shown) if mark.kind == "link" else shown
    start = mark.start + shown.rfind(name)
    return start, start + len(name)


def _is_identifier(shown: str, spelling: Spelling) -> bool:
    """Return whether code looks like an identifier, or is a plain word that the page writes as code."""
    if not _IDENTIFIER.fullmatch(shown) or shown.startswith(("http", "/path", "~", "..", "./")):
        return False
    if shown.startswith("-") and not shown.startswith("--"):
        return False
    return bool(_HAS_SIGN.search(shown)) or shown[0].isupper() or spelling.is_code(shown)


def _has_name(text: str, spelling: Spelling) -> bool:
    """Return whether a text has a word that is written as a name."""
    words = (word[0] for word, _ in find_words(text) if word[0][0].isupper())
    return any(
        spelling.is_name(word) or (is_short(word) and spelling.is_unknown(word))
        for word in words
        if not is_shouted(word, spelling)
    )


def _is_title(quoted: str, spelling: Spelling, *, is_angled: bool) -> bool:
    """Return whether a quoted text is a title: short, with a capital for each word that does not join others.

    Languages with angled quotes («») capitalise only the first word.
    """
    if is_unspaced(quoted):
        return len(quoted) <= 4 * MAX_NAME_WORDS
    words = quoted.split()
    if not 0 < len(words) <= MAX_NAME_WORDS or quoted[-1] in ".,;:":
        return False
    if len(words) == 1:
        return spelling.is_name(quoted) or (quoted[0].isupper() and spelling.is_unknown(quoted))
    capitals = sum(word[0].isupper() for word in words)
    is_title = 2 * capitals > len(words) and capitals > 1
    return words[0][0].isupper() and (is_title or (is_angled and len(words) <= MAX_ANGLED_WORDS))


def list_numbered_links(sentence: MarkedSentence) -> list[tuple[int, int]]:
    """Return the places of links whose text begins with the number of a section."""
    links = ((mark.start, mark.end) for mark in sentence.marks if mark.kind == "link")
    return [(start, end) for start, end in links if strip_number(shown := sentence.text[start:end]) != shown]


def is_shouted(word: str, spelling: Spelling) -> bool:
    """Return whether a frequent word is written in capitals for emphasis, as MUST and NOT."""
    return word.isupper() and word.lower() in spelling.ordinary.frequent and word not in SHORT_FORMS
