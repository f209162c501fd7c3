"""From what a model wrote about a passage to what the passage says.

An answer of the wrong shape is `Malformed`, with an error that the model can be shown. In one of the right
shape each entity and fact stands for itself: what is invalid is dropped, the rest is kept, also of an answer
that was cut off (small models repeat themselves until they are). Models invent, so names and aliases are what
the passage or its titles call things. A fact whose subject is not there is dropped; an object that is not there
is a plain value, joins nothing, and halves the confidence; one in another script than the passage's is a
translation, and its fact is dropped. It asks nobody, and does not know what is true.
"""

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from waylore.indexing.extractors.rules import LONGEST_STATEMENT, MOST_CLAIMS
from waylore.protocols import Extraction
from waylore.text import normalise, occurrences, terms, without_aside
from waylore.types.knowledge import Claim, Passage

LONGEST_NAME = 120  # characters
DOUBT = 0.5  # what is left of the confidence in a fact whose object is not in the passage
MOST_ENDS = 4  # places at which an answer may have been whole before it was cut off
MAIN_SCRIPT = 0.2  # of a text's letters that a script must have to be one that it is written in
PRONOUNS = frozenset("he she it they we you him her them us this that these those who which".split())
INVALID, INVENTED, TRANSLATED, TOO_MANY = "invalid", "not in the passage", "translated", "too many"

_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_ARTICLE = re.compile(r"^(?:the|a|an) (?=\S)")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?(?![\d-])")


class Malformed(Exception):
    """The answer has not the shape that was asked for; the message tells the model what is wrong."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote, as far as it has the right shape."""

    entities: Sequence[Mapping[str, Any]]
    facts: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class _Named:
    """What an answer calls things: the name of each by all that it may be called, and what is known of it."""

    by_any: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, written: str) -> str:
        name = _ARTICLE.sub("", written)
        return self.by_any.get(normalise(written)) or self.by_any.get(normalise(name), name)


def parsed(content: str) -> Answer:
    """The answer as JSON, without thoughts before it and fences around it."""
    said = _THOUGHTS.sub("", content)
    start = said.find("{")
    if start < 0:
        raise Malformed("it holds no JSON object")
    found = _decoded(said[start:])
    entities, facts = found.get("entities"), found.get("facts")
    if not (isinstance(entities, list) and isinstance(facts, list)):
        raise Malformed('the object needs two lists, "entities" and "facts"')
    objects = [fact for fact in facts if isinstance(fact, dict)]
    if facts and not any(all(_ends(fact)) for fact in objects):
        raise Malformed("no fact is an object with subject, predicate and object")
    return Answer(
        [e for e in entities if isinstance(e, dict)], [*objects, *([{}] * (len(facts) - len(objects)))]
    )


def _decoded(said: str) -> dict[str, Any]:
    """The object that a text begins with; one that was cut off in a list of facts, as far as it goes."""
    try:
        return dict(json.JSONDecoder().raw_decode(said)[0])
    except (ValueError, RecursionError) as error:
        end = len(said)
        for _ in range(MOST_ENDS):
            end = said.rfind("}", 0, end)
            with suppress(ValueError, RecursionError):
                return dict(json.loads(said[: end + 1] + "]}"))
        raise Malformed(f"it is not valid JSON: {error}") from error


def extraction(answer: Answer, passage: Passage) -> tuple[Extraction, Counter[str]]:
    """What a passage says by an answer, and how many of the answer's facts were dropped, by reason."""
    read = _Read(passage)
    named = _named(answer.entities, read)
    claims: dict[tuple[str, ...], Claim] = {}
    dropped: Counter[str] = Counter()
    for fact in answer.facts:
        claim = _claim(fact, named, read)
        if isinstance(claim, str):
            dropped[claim] += 1
        else:
            claims.setdefault(_key(claim), claim)
    kept = list(claims.values())[:MOST_CLAIMS]
    if len(claims) > len(kept):
        dropped[TOO_MANY] += len(claims) - len(kept)
    names = _names(kept, named, passage)
    descriptions = {name: told for name, told in named.descriptions.items() if name in names}
    aliases = {name: told for name, told in named.aliases.items() if name in names}
    return Extraction(tuple(kept), names, descriptions, aliases), dropped


class _Read:
    """A passage with its titles, read for whether it has a name."""

    def __init__(self, passage: Passage) -> None:
        said = "\n".join((passage.title, *passage.headings, passage.text))
        self._normal = normalise(said)
        self._terms = frozenset(terms(said))
        scripts = Counter(_scripts(said))
        self._scripts = {s for s, n in scripts.items() if n >= MAIN_SCRIPT * scripts.total()}

    def says(self, name: str) -> bool:
        """Whether it has the name letter by letter, but for case and punctuation."""
        return bool(name) and occurrences(normalise(name), self._normal) > 0

    def has(self, name: str) -> bool:
        """Whether it has the name, or half of its words in whatever form."""
        parts = terms(name)
        return self.says(name) or 0 < len(parts) <= 2 * sum(part in self._terms for part in parts)

    def is_foreign(self, name: str) -> bool:
        """Whether a name is written in scripts that the passage is not written in."""
        scripts = set(_scripts(name))
        return bool(scripts) and scripts.isdisjoint(self._scripts)


def _scripts(text: str) -> Iterator[str]:
    """The script of each letter: LATIN, CYRILLIC, CJK and so on."""
    return (unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha())


def _named(entities: Sequence[Mapping[str, Any]], read: _Read) -> _Named:
    """The entities that the passage has, under the names that it calls them."""
    named = _Named()
    own = {normalise(_text(e.get("name"))) for e in entities}
    for entity in entities:
        written = _ARTICLE.sub("", _text(entity.get("name")))
        aliases = [alias for alias in _texts(entity.get("aliases")) if read.says(alias)]
        name = written if read.has(written) else next(iter(aliases), "")
        if not name or len(name) > LONGEST_NAME or normalise(name) in named.by_any:
            continue
        others = {a: None for a in aliases if normalise(a) not in own and normalise(a) not in named.by_any}
        others.pop(name, None)
        named.by_any |= {normalise(called): name for called in (name, written, *others)}
        named.types[name] = _type(entity.get("type"))
        if description := _text(entity.get("description")):
            named.descriptions[name] = description[:LONGEST_STATEMENT]
        if others:
            named.aliases[name] = tuple(others)
    return named


def _claim(fact: Mapping[str, Any], named: _Named, read: _Read) -> Claim | str:
    """The fact as a claim, or why there is none."""
    subject, predicate, object_ = _ends(fact)
    subject, object_ = named.of(subject), named.of(object_)
    is_there = read.has(object_)
    is_value = (fact.get("object_is_value") is True and object_ not in named.types) or not is_there
    longest = LONGEST_STATEMENT if is_value else LONGEST_NAME
    if max(len(subject), len(predicate)) > LONGEST_NAME or len(object_) > longest:
        return INVALID
    if reason := _objection(subject, object_, read):
        return reason
    try:
        return Claim(
            subject,
            predicate,
            object_,
            statement=_text(fact.get("statement"))[:LONGEST_STATEMENT],
            weight=_number(fact.get("weight"), 1.0, 10.0, otherwise=5.0),
            confidence=_number(fact.get("confidence"), 0.0, 1.0, otherwise=1.0) * (1.0 if is_there else DOUBT),
            valid_from=_begin(_text(fact.get("valid_from"))),
            valid_to=_end(_text(fact.get("valid_to"))),
            subject_type=named.types.get(subject, ""),
            object_type=named.types.get(object_, ""),
            is_value=is_value,
        )
    except ValueError:
        return INVALID


def _objection(subject: str, object_: str, read: _Read) -> str:
    """Why two ends cannot be those of a fact of this passage; nothing if they can."""
    if any(end.lower() in PRONOUNS and not end.isupper() for end in (subject, object_)):
        return INVALID
    if normalise(subject) == normalise(object_):
        return INVALID
    if subject and not read.has(subject):
        return INVENTED
    return TRANSLATED if not read.has(object_) and read.is_foreign(object_) else ""


def _key(claim: Claim) -> tuple[str, ...]:
    return (normalise(claim.subject), normalise(claim.predicate), normalise(claim.object))


def _names(claims: Sequence[Claim], named: _Named, passage: Passage) -> dict[str, str]:
    """What the passage is about, what it names, and the ends of its claims; with types."""
    about = without_aside(passage.title) or passage.title.strip()
    names = {named.of(about): named.types.get(named.of(about), "")} if about else {}
    ends = [end for c in claims for end in ((c.subject,) if c.is_value else (c.subject, c.object))]
    return {**names, **named.types, **{end: named.types.get(end, "") for end in ends}}


def _ends(fact: Mapping[str, Any]) -> tuple[str, str, str]:
    return _text(fact.get("subject")), _text(fact.get("predicate")), _text(fact.get("object"))


def _text(written: object) -> str:
    """A text on one line that can be stored: JSON may hold halves of characters, and NUL."""
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return ""
    return " ".join(str(written).encode("utf-8", "ignore").decode().replace("\0", "").split())


def _texts(written: object) -> list[str]:
    return [text for one in written if (text := _text(one))] if isinstance(written, list) else []


def _type(written: object) -> str:
    type_ = _text(written).lower()
    return "" if type_ in {"other", "unknown", "none"} or len(type_) > LONGEST_NAME else type_


def _number(written: object, least: float, most: float, *, otherwise: float) -> float:
    """A number within bounds."""
    try:
        number = float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return otherwise if math.isnan(number) else min(max(number, least), most)


def _begin(written: str) -> datetime | None:
    """The first instant of a year, a month or a day."""
    if not (found := _DATE.match(written)):
        return None
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _end(written: str) -> datetime | None:
    """The instant at which a year, a month or a day is over; it holds no longer from then on."""
    if not (found := _DATE.match(written)) or not (begin := _begin(written)):
        return None
    try:
        if found[3]:
            return begin + timedelta(days=1)
        if found[2]:
            return (begin + timedelta(days=31)).replace(day=1)
        return begin.replace(year=begin.year + 1)
    except (ValueError, OverflowError):
        return None
