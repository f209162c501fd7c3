"""Split a text into wordings: sentences, list items and headings with the words that count in a comparison.

Case, white space, punctuation, articles and contractions are ignored, and also the decoration of quoted text: bullets,
list numbers, quotation marks, citations, fences, and the headings and block that `retrieval.context` writes. Parts that
change the meaning are compared: numbers with their signs, units and symbols, the order of the words, the question mark.
The module knows no grammar and compares nothing; `memory.repeats` does.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from waylore.fence import remove_fences
from waylore.text import split_units

FILLERS = frozenset("a an the that also please indeed actually ein eine der das le la les un une el los las".split())
# Words that mark the following text as recalled, or acknowledge it. No word here denies, doubts, names or counts.
REPORTING = frozenset(
    """according memory memories notes note noted remember remembered recall recalled here search results result
    context told said mentioned stored saved reminder passages facts sources ok okay yes sure thanks thank
    understood got laut erinnerung erinnerungen weiß hier notiz notizen gesagt gemerkt danke
    selon sais voici dit rappel souviens merci según notas recuerdo sé aquí dijiste gracias
    """.split()
)
# Words that may occur next to the reporting words.
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
_MEANINGFUL = frozenset("%@&/\\?؟？")
_MEANINGLESS = frozenset("`´|")
_SIGN = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence, list item or heading; `words` are the parts that count in a comparison."""

    text: str
    words: tuple[str, ...]


def split_wordings(text: str) -> list[Wording]:
    """Return the wordings of a text in order, without empty ones."""
    sentences = (sentence for part in _split_parts(text) for sentence in _split_sentences(part))
    wordings = (Wording(sentence, get_words(sentence)) for sentence in sentences)
    return [wording for wording in wordings if wording.words]


def get_words(statement: str) -> tuple[str, ...]:
    """Return the words of a statement that an equivalent statement must share."""
    folded = unicodedata.normalize("NFKC", statement.replace("’", "'")).casefold()
    for pattern, spelt_out in _CONTRACTIONS:
        folded = pattern.sub(spelt_out, folded)
    tokens = [t for t in _TOKEN.findall(_MINUS.sub(_SIGN, folded)) if _is_meaningful(t)]
    capitals = _count_capital_a(statement)
    counted = [t for at, t in enumerate(tokens) if not _is_filler(t, at, len(tokens), capitals)]
    return tuple(unit.strip() for token in counted for unit in split_units(token))


def _is_meaningful(token: str) -> bool:
    if token[0].isalnum() or token[0] == "_" or token in _MEANINGFUL:
        return True
    return unicodedata.category(token)[0] in "SM" and token not in _MEANINGLESS


def _is_filler(token: str, at: int, count: int, capitals: int) -> bool:
    """Return whether a token is an article. The last word, and a letter as a name (vitamin A), are not articles."""
    is_name = token == "a" and at > 0 and capitals > 0  # noqa: S105 # nosec B105
    return token in FILLERS and at + 1 < count and not is_name


def _count_capital_a(statement: str) -> int:
    """Return how many words of a statement are the letter A, or 0 if all of it is in capitals."""
    return 0 if statement.isupper() else len(re.findall(r"(?<=\S\s)A\b", statement))


def _split_sentences(part: str) -> Iterator[str]:
    cuts = [0, *(cut.end() for cut in _ENDS.finditer(part)), len(part)]
    yield from (part[start:end].strip() for start, end in pairwise(cuts))


def _split_parts(text: str) -> Iterator[str]:
    """Yield paragraphs, list items and headings without their markers and citations."""
    plain = _BLOCK.sub("\n\n", remove_fences(_QUOTATION.sub("", text.replace("\r\n", "\n"))))
    lines: list[str] = []
    is_closed = False
    for marker, line in _split_markers(plain.split("\n")):
        if (marker or is_closed or not line.strip()) and lines:
            yield "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(_CITATION.sub("", line))
        is_closed = bool(_TITLED.match(marker))
    if lines:
        yield "\n".join(lines)


def _split_markers(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each line as its marker and the rest.

    A number is a marker only if it counts up from 1, because “5. Mai” is a date.
    """
    expected = 1
    for line in lines:
        marker = _MARKER.match(line)
        start = marker.end() if marker else 0
        number = _NUMBER.match(line, start)
        if number and int(number[1]) == expected:
            start, expected = number.end(), expected + 1
        yield line[:start], line[start:]
