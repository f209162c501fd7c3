"""Two names of one thing within a document, where the document itself says so.

"World Health Organization (WHO)", "WHO (World Health Organization)", "also known as", "formerly", and aliases
that an extractor gave. What is defined is one thing in this document: claims that use the short form get the
full name, the short form becomes an alias, and a `same_as` claim with the defining sentence joins other
documents that only say the short form. Initials are checked; a short form that is defined twice means nothing
here. Other documents are not looked at: they are joined when a question is asked (`retrieval/graph/same_as.py`).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from waylore.indexing.extractors.rules import sentences
from waylore.names import ELISION, LONGEST_FULL, is_short, is_short_for
from waylore.protocols import Extraction
from waylore.text import STOP_WORDS, is_unspaced, normalise, occurrences
from waylore.types.knowledge import SAME, Claim, Document, Passage

WEIGHT, CONFIDENCE = 8.0, 0.9
MOST_FOR_EACH = 3  # characters that one of a short form stands for, in scripts without spaces
_BRACKETS = re.compile(r"\s*[(（]([^()（）]{2,100})[)）]")
_QUOTES = " \t\"'“”‘’「」『』《》*_`"
_LEAD = re.compile(  # what may stand before a name in brackets
    r"^(?:or|abbreviated(?: as| to)?|abbr\.?|short|in short|hereafter|hereinafter|called|known as|"
    r"also known as|aka|a\.k\.a\.|formerly(?: known as)?|previously|née|kurz|abgekürzt|auch|ehemals|sigle|"
    r"anciennement|сокращённо|сокр\.|以下简称|简称|又称|又名|旧称|通称|略称|英语|英文)\s*[:：]?\s*(?:the\s+)?",
    re.IGNORECASE,
)
_MARKER = re.compile(
    r"[\s,，(（]*(?:(?:\b(?:is|was|are|were)\s+)?\b(?:also|formerly|previously|originally|better|commonly|sometimes|"
    r"otherwise)\s+(?:known\s+as|called|named)\b|\bknown\s+as\b|\ba\.?k\.?a\.?(?=\W)|\bformerly\b|\bnée\b|"
    r"\babbreviated\s+(?:as|to)\b|\bauch\s+bekannt\s+als\b|\bauch\s+genannt\b|\baussi\s+appelée?\b|"
    r"以下简称|简称|又称|又名|旧称|别名|通称|略称)\s*(?:the\s+)?",
    re.IGNORECASE,
)
# Every bracket and every marker has one of these: most texts have none, and are passed over quickly.
_BRACKET = re.compile(r"[(（]")
_HINT = re.compile(
    r"known|called|named|k\.?a|formerly|née|abbrev|genannt|bekannt|appel|[简又旧别通略]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A full name, another name for it, and the sentence that says so."""

    full: str
    short: str
    statement: str


def resolved(
    document: Document, passages: Sequence[Passage], extractions: Sequence[Extraction]
) -> list[Extraction]:
    """What each passage says, with the names that the document defines as one told as one."""
    found = [_defined(passage, said) for passage, said in zip(passages, extractions, strict=True)]
    whole = _unambiguous(definition for of_passage in found for definition in of_passage)
    if not whole:
        return list(extractions)
    return [
        _told(
            _as_one(said, whole), [d for d in of_passage if whole.get(normalise(d.short)) == d.full], document
        )
        for said, of_passage in zip(extractions, found, strict=True)
    ]


def definitions(text: str, names: Iterable[str] = ()) -> Iterator[Definition]:
    """What a text defines; `names` are what is known to be named in it."""
    known = sorted(set(names), key=lambda name: (-len(name), name))
    if not (_BRACKET.search(text) or _HINT.search(text)):
        return
    for sentence in sentences(text):
        for bracket in _BRACKETS.finditer(sentence):
            yield from _in_brackets(sentence, bracket, known)
        if _HINT.search(sentence):
            for marker in _MARKER.finditer(sentence):
                yield from _beside(sentence, marker, known)


def _in_brackets(sentence: str, bracket: re.Match[str], known: Sequence[str]) -> Iterator[Definition]:
    """A full name and its short form, one of them in brackets."""
    before = sentence[: bracket.start()].rstrip(_QUOTES)
    inside = _LEAD.sub("", re.split(r"[;；,，]", bracket[1])[0].strip(_QUOTES)).strip(_QUOTES)
    last = before.split()[-1].strip(_QUOTES) if before.split() else ""
    if full := _full_before(before, inside, known):
        yield Definition(full, inside, sentence)
    elif is_short_for(last, inside):
        yield Definition(inside, last, sentence)


def _full_before(before: str, short: str, known: Sequence[str]) -> str:
    """The name that ends a text and that a short form stands for; empty if none does."""
    if is_unspaced(before[-1:]):
        ending = next((name for name in known if before.endswith(name)), "")
        return ending if ending and is_short(short) else _spelled_by(short, before)
    words = before.split()
    for count in range(1, min(len(words), LONGEST_FULL) + 1):
        full = ELISION.sub("", " ".join(words[-count:]).strip(_QUOTES), count=1)
        if full[:1].isalnum() and is_short_for(short, full):
            return full
    return ""


def _spelled_by(short: str, before: str) -> str:
    """The shortest end of an unspaced text that begins as a short form does and has its characters in order."""
    if len(short) < 2 or not is_unspaced(short):
        return ""
    run = re.split(r"[\W_]", before)[-1]
    for start in range(len(run) - len(short) - 1, -1, -1):
        rest = iter(run[start:])
        is_within = len(run) - start <= MOST_FOR_EACH * len(short)
        if is_within and run[start] == short[0] and all(letter in rest for letter in short):
            return run[start:]
    return ""


def _beside(sentence: str, marker: re.Match[str], known: Sequence[str]) -> Iterator[Definition]:
    """Two known names on either side of words that say they are one."""
    before = sentence[: marker.start()].rstrip(_QUOTES + ",，")
    after = sentence[marker.end() :].lstrip(_QUOTES)
    full = next((name for name in known if before.endswith(name)), "")
    short = next((name for name in known if after.startswith(name)), "")
    if full and short and normalise(full) != normalise(short):
        yield Definition(full, short, sentence)


def _defined(passage: Passage, said: Extraction) -> list[Definition]:
    """What a passage defines, and what its extractor gave as aliases that are names and stand in the text."""
    text = normalise(passage.text)
    given = [(name, alias) for name, aliases in said.aliases.items() for alias in aliases]
    return [*definitions(passage.text, said.names)] + [
        Definition(name, alias, _sentence(passage.text, name, alias))
        for name, alias in given
        if _is_name(alias) and normalise(alias) != normalise(name) and occurrences(normalise(alias), text)
    ]


def _is_name(alias: str) -> bool:
    plain = normalise(alias)
    has_sign = any(c.isupper() or c.isdigit() for c in alias) or is_unspaced(alias)
    return len(plain) > 1 and plain not in STOP_WORDS and has_sign


def _sentence(text: str, name: str, alias: str) -> str:
    """The sentence that has both names, else that one is also called the other."""
    both = (s for s in sentences(text) if all(occurrences(normalise(n), normalise(s)) for n in (name, alias)))
    return next(both, f"{name} is also called {alias}.")


def _unambiguous(found: Iterable[Definition]) -> dict[str, str]:
    """The full name of each short form (normalised) that has only one, and is none itself."""
    fulls: dict[str, dict[str, str]] = defaultdict(dict)
    for definition in found:
        fulls[normalise(definition.short)].setdefault(normalise(definition.full), definition.full)
    named = {full for of_short in fulls.values() for full in of_short}
    return {
        short: next(iter(of_short.values()))
        for short, of_short in fulls.items()
        if len(of_short) == 1 and short not in named
    }


def _as_one(said: Extraction, whole: Mapping[str, str]) -> Extraction:
    """An extraction in which short forms are told by their full names."""

    def full(name: str) -> str:
        return whole.get(normalise(name), name)

    claims = [_renamed(claim, full(claim.subject), full(claim.object)) for claim in said.claims]
    types: dict[str, str] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    for name, type_ in said.names.items():
        types[full(name)] = types.get(full(name)) or type_
        own = (name,) if full(name) != name else ()
        aliases[full(name)] = (*aliases.get(full(name), ()), *said.aliases.get(name, ()), *own)
    return Extraction(
        tuple(c for c in claims if c.is_value or normalise(c.subject) != normalise(c.object)),
        types,
        {full(name): text for name, text in said.descriptions.items()},
        {name: tuple(dict.fromkeys(told)) for name, told in aliases.items() if told},
    )


def _renamed(claim: Claim, subject: str, object_: str) -> Claim:
    return replace(claim, subject=subject, object=claim.object if claim.is_value else object_)


def _told(said: Extraction, defined: Iterable[Definition], document: Document) -> Extraction:
    """The extraction of a passage with what it defines: names, aliases, and a claim for each."""
    names, aliases, claims = dict(said.names), dict(said.aliases), list(said.claims)
    for d in defined:
        names.setdefault(d.full, "")
        aliases[d.full] = tuple(dict.fromkeys((*aliases.get(d.full, ()), d.short)))
        claims.append(
            Claim(
                d.full,
                SAME,
                d.short,
                d.statement,
                weight=WEIGHT,
                confidence=CONFIDENCE,
                source=document.source,
                subject_type=names[d.full],
                object_type=names[d.full],
            )
        )
    return replace(said, claims=tuple(claims), names=names, aliases=aliases)
