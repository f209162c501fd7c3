"""A text as statements, each as the words that two statements must share to say the same.

Case, white space and punctuation do not count, nor do articles and contractions, nor what is written around a
text that is quoted: bullets, numbers of a list, quotation marks, citations, and the headings and the block that
`retrieval.context` writes. What bears on the meaning stays: numbers with their signs, units and symbols, the
order of the words, the question mark. It knows no grammar and compares nothing.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from waylore.text import units

FILLERS = frozenset(
    "a an the that also please indeed actually ein eine der das le la les un une el los las".split()
)
# Words that say of what follows that it was recalled, or acknowledge it. None denies, doubts, names or counts.
REPORTING = frozenset(
    """according memory memories notes note noted remember remembered recall recalled here search results result
    context told said mentioned stored saved reminder passages facts sources ok okay yes sure thanks thank
    understood got laut erinnerung erinnerungen weiß hier notiz notizen gesagt gemerkt danke
    selon sais voici dit rappel souviens merci según notas recuerdo sé aquí dijiste gracias
    """.split()
)
# Words that may stand beside those.
LEAD_IN = REPORTING | frozenset(
    """to my i you we me us is are what found know known this these following from earlier previously your
    relevant user assistant system human ai as and so it passage fact source meiner ich dass ist sind du hast
    mir mes je que ce tu as me mis que lo me está
    """.split()
)
_BLOCK = re.compile(
    r"^## Knowledge Graph Context\n"
    r"(?:(?:Query entities: |Related: |Description: |### |- .* \(strength: ).*(?:\n|\Z)|[ \t]*\n)*"
    r"|^### (?:USER CONTEXT|CONTEXT: .*)\n(?:- .*(?:\n|\Z))*"
    r"|^## (?:Passages|Sources)[ \t]*(?:\n|\Z)(?:(?:\[\d+\] )+\S+[ \t]*(?:\n|\Z))*",
    re.MULTILINE,
)
_QUOTATION = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_MARKER = re.compile(r"[ \t]*(?:(?:[-*+•‣◦–—]|#{1,6}|\[\d{1,3}\](?!\()|\(\d{1,3}\)|[a-z]\))(?:[ \t]+|$))+")
_NUMBER = re.compile(r"[ \t]*(\d{1,3})[.)][ \t]+")
_TITLED = re.compile(r"[ \t]*(?:#|\[\d)")
_CITATION = re.compile(r"(?<!\w)[ \t]?\[\d{1,3}(?:[ \t]*,[ \t]*\d{1,3})*\]")
_ENDS = re.compile(r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’»)\]*_]))\s+|(?<=[。！？])[」』”]?\s*")
_CONTRACTIONS = tuple(
    (re.compile(pattern), spelt_out)
    for pattern, spelt_out in (
        (r"\b(?:can't|cannot)\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"'m\b", " am"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"\b(it|he|she|that|there|what|who|here)'s\b", r"\1 is"),
    )
)
_MINUS = re.compile(r"(?<![\w)])[-−](?=[.,]?\d)")
_TOKEN = re.compile(r"\w+(?:\+\+|#)?|[^\w\s]")
_MEANT = frozenset("%@&/\\?؟？")
_UNMEANT = frozenset("`´|")
_SIGN = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, an item of a list or a heading; `words` are what counts of it."""

    text: str
    words: tuple[str, ...]


def statements(text: str) -> list[Statement]:
    """The statements of a text, in order; those without a word are left out."""
    found = (Statement(said, words(said)) for part in _parts(text) for said in _sentences(part))
    return [statement for statement in found if statement.words]


def words(statement: str) -> tuple[str, ...]:
    """What of a statement must be the same, for another to say the same."""
    folded = unicodedata.normalize("NFKC", statement.replace("’", "'")).casefold()
    for pattern, spelt_out in _CONTRACTIONS:
        folded = pattern.sub(spelt_out, folded)
    tokens = [t for t in _TOKEN.findall(_MINUS.sub(_SIGN, folded)) if _is_meant(t)]
    capitals = _capitals(statement)
    kept = [t for at, t in enumerate(tokens) if not _is_filler(t, at, len(tokens), capitals)]
    return tuple(unit.strip() for token in kept for unit in units(token))


def _is_meant(token: str) -> bool:
    if token[0].isalnum() or token[0] == "_" or token in _MEANT:
        return True
    return unicodedata.category(token)[0] in "SM" and token not in _UNMEANT


def _is_filler(token: str, at: int, count: int, capitals: int) -> bool:
    """An article: not the last word, nor a letter that is a name, as in vitamin A."""
    is_name = token == "a" and at > 0 and capitals > 0  # noqa: S105 # nosec B105
    return token in FILLERS and at + 1 < count and not is_name


def _capitals(statement: str) -> int:
    """How many letters A stand as words in a statement that is not all in capitals."""
    return 0 if statement.isupper() else len(re.findall(r"(?<=\S\s)A\b", statement))


def _sentences(part: str) -> Iterator[str]:
    cuts = [0, *(cut.end() for cut in _ENDS.finditer(part)), len(part)]
    yield from (part[start:end].strip() for start, end in pairwise(cuts))


def _parts(text: str) -> Iterator[str]:
    """Paragraphs, items of lists and headings, without their markers and citations."""
    plain = _BLOCK.sub("\n\n", _QUOTATION.sub("", text.replace("\r\n", "\n")))
    lines: list[str] = []
    is_closed = False
    for marker, line in _marked(plain.split("\n")):
        if (marker or is_closed or not line.strip()) and lines:
            yield "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(_CITATION.sub("", line))
        is_closed = bool(_TITLED.match(marker))
    if lines:
        yield "\n".join(lines)


def _marked(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each line as its marker and the rest; a number is one if it counts up from 1, for “5. Mai” is a day."""
    expected = 1
    for line in lines:
        marker = _MARKER.match(line)
        start = marker.end() if marker else 0
        number = _NUMBER.match(line, start)
        if number and int(number[1]) == expected:
            start, expected = number.end(), expected + 1
        yield line[:start], line[start:]
