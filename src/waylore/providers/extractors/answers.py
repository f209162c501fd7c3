"""Turn a model's answer about a passage into entities and facts.

An answer of the wrong shape raises `MalformedAnswer`, with an error to show to the model. In an answer of the right
shape, each entity and fact is judged alone: invalid ones are dropped and the others stay. This also applies to an
answer that was cut off (small models repeat themselves until the limit). Models invent, so names and aliases must occur
in the passage or its titles. A fact whose subject does not occur is dropped. An object that does not occur becomes a
plain value, connects nothing, and halves the confidence. If it is in another script than the passage, it is a
translation, and its fact is dropped. This module calls no model and does not check the truth of facts.
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

from waylore.indexing.extractors.facts import MAX_FACTS, MAX_STATEMENT_CHARACTERS
from waylore.protocols import Extraction
from waylore.text import count_occurrences, normalise, strip_parentheses, terms
from waylore.types.knowledge import NewFact, Passage

MAX_NAME_CHARACTERS = 120
UNSEEN_OBJECT_CONFIDENCE = 0.5  # factor for a fact whose object is not in the passage
MAX_REPAIR_POSITIONS = 4  # positions at which closing a truncated answer is tried
MIN_SCRIPT_SHARE = 0.2  # minimum share of the letters of a text that is written in a script
PRONOUNS = frozenset("he she it they we you him her them us this that these those who which".split())
INVALID, INVENTED, TRANSLATED, TOO_MANY = "invalid", "not in the passage", "translated", "too many"

_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_ARTICLE = re.compile(r"^(?:the|a|an) (?=\S)")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?(?![\d-])")


class MalformedAnswer(Exception):
    """The answer has the wrong shape; the message describes the error for the model."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The parts of a model's answer that have the right shape."""

    entities: Sequence[Mapping[str, Any]]
    facts: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class _EntityNames:
    """The entities of an answer: the chosen name for each spelling, with type, description and aliases."""

    by_any: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def resolve(self, written: str) -> str:
        """Return the name of the entity with this spelling."""
        name = _ARTICLE.sub("", written)
        return self.by_any.get(normalise(written)) or self.by_any.get(normalise(name), name)


def parse_answer(content: str) -> ModelAnswer:
    """Parse an answer as JSON, without thoughts before it and fences around it."""
    text = _THOUGHTS.sub("", content)
    start = text.find("{")
    if start < 0:
        raise MalformedAnswer("it holds no JSON object")
    parsed = _decode_object(text[start:])
    entities, facts = parsed.get("entities"), parsed.get("facts")
    if not (isinstance(entities, list) and isinstance(facts, list)):
        raise MalformedAnswer('the object needs two lists, "entities" and "facts"')
    objects = [fact for fact in facts if isinstance(fact, dict)]
    if facts and not any(all(_read_triple(fact)) for fact in objects):
        raise MalformedAnswer("no fact is an object with subject, predicate and object")
    return ModelAnswer([e for e in entities if isinstance(e, dict)], [*objects, *([{}] * (len(facts) - len(objects)))])


def _decode_object(text: str) -> dict[str, Any]:
    """Return the JSON object at the start of a text. If it was cut off in the facts, return the complete facts."""
    try:
        return dict(json.JSONDecoder().raw_decode(text)[0])
    except (ValueError, RecursionError) as error:
        end = len(text)
        for _ in range(MAX_REPAIR_POSITIONS):
            end = text.rfind("}", 0, end)
            with suppress(ValueError, RecursionError):
                return dict(json.loads(text[: end + 1] + "]}"))
        raise MalformedAnswer(f"it is not valid JSON: {error}") from error


def build_extraction(answer: ModelAnswer, passage: Passage) -> tuple[Extraction, Counter[str]]:
    """Return the facts and names of a passage from an answer, and the number of dropped facts by reason."""
    text = _PassageText(passage)
    known = _collect_names(answer.entities, text)
    facts: dict[tuple[str, ...], NewFact] = {}
    dropped: Counter[str] = Counter()
    for fact in answer.facts:
        built = _build_fact(fact, known, text)
        if isinstance(built, str):
            dropped[built] += 1
        else:
            facts.setdefault(_make_key(built), built)
    chosen = list(facts.values())[:MAX_FACTS]
    if len(facts) > len(chosen):
        dropped[TOO_MANY] += len(facts) - len(chosen)
    names = _list_names(chosen, known, passage)
    descriptions = {name: value for name, value in known.descriptions.items() if name in names}
    aliases = {name: value for name, value in known.aliases.items() if name in names}
    return Extraction(tuple(chosen), names, descriptions, aliases), dropped


class _PassageText:
    """A passage with its titles, prepared to look up names."""

    def __init__(self, passage: Passage) -> None:
        text = "\n".join((passage.title, *passage.headings, passage.text))
        self._normal = normalise(text)
        self._terms = frozenset(terms(text))
        scripts = Counter(_list_scripts(text))
        self._scripts = {s for s, n in scripts.items() if n >= MIN_SCRIPT_SHARE * scripts.total()}

    def has_exactly(self, name: str) -> bool:
        """Return whether the text contains the name letter by letter, except for case and punctuation."""
        return bool(name) and count_occurrences(normalise(name), self._normal) > 0

    def has(self, name: str) -> bool:
        """Return whether the text contains the name, or half of its words in any form."""
        parts = terms(name)
        return self.has_exactly(name) or 0 < len(parts) <= 2 * sum(part in self._terms for part in parts)

    def is_foreign(self, name: str) -> bool:
        """Return whether a name is written in scripts that the passage does not use."""
        scripts = set(_list_scripts(name))
        return bool(scripts) and scripts.isdisjoint(self._scripts)


def _list_scripts(text: str) -> Iterator[str]:
    """Return the script of each letter: LATIN, CYRILLIC, CJK and so on."""
    return (unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha())


def _collect_names(entities: Sequence[Mapping[str, Any]], text: _PassageText) -> _EntityNames:
    """Return the entities that occur in the passage, under the names that it uses."""
    known = _EntityNames()
    own = {normalise(_clean_text(e.get("name"))) for e in entities}
    for entity in entities:
        written = _ARTICLE.sub("", _clean_text(entity.get("name")))
        aliases = [alias for alias in _clean_texts(entity.get("aliases")) if text.has_exactly(alias)]
        name = written if text.has(written) else next(iter(aliases), "")
        if not name or len(name) > MAX_NAME_CHARACTERS or normalise(name) in known.by_any:
            continue
        others = {a: None for a in aliases if normalise(a) not in own and normalise(a) not in known.by_any}
        others.pop(name, None)
        known.by_any |= {normalise(called): name for called in (name, written, *others)}
        known.types[name] = _clean_type(entity.get("type"))
        if description := _clean_text(entity.get("description")):
            known.descriptions[name] = description[:MAX_STATEMENT_CHARACTERS]
        if others:
            known.aliases[name] = tuple(others)
    return known


def _build_fact(fact: Mapping[str, Any], known: _EntityNames, text: _PassageText) -> NewFact | str:
    """Return the fact, or the reason why it is dropped."""
    subject, predicate, object_ = _read_triple(fact)
    subject, object_ = known.resolve(subject), known.resolve(object_)
    is_object_in_text = text.has(object_)
    is_value = (fact.get("object_is_value") is True and object_ not in known.types) or not is_object_in_text
    max_object_characters = MAX_STATEMENT_CHARACTERS if is_value else MAX_NAME_CHARACTERS
    if max(len(subject), len(predicate)) > MAX_NAME_CHARACTERS or len(object_) > max_object_characters:
        return INVALID
    if reason := _find_objection(subject, object_, text):
        return reason
    try:
        return NewFact(
            subject,
            predicate,
            object_,
            statement=_clean_text(fact.get("statement"))[:MAX_STATEMENT_CHARACTERS],
            weight=_clean_number(fact.get("weight"), 1.0, 10.0, default=5.0),
            confidence=_clean_number(fact.get("confidence"), 0.0, 1.0, default=1.0)
            * (1.0 if is_object_in_text else UNSEEN_OBJECT_CONFIDENCE),
            valid_from=_parse_start(_clean_text(fact.get("valid_from"))),
            valid_to=_parse_end(_clean_text(fact.get("valid_to"))),
            subject_type=known.types.get(subject, ""),
            object_type=known.types.get(object_, ""),
            is_value=is_value,
        )
    except ValueError:
        return INVALID


def _find_objection(subject: str, object_: str, text: _PassageText) -> str:
    """Return the reason why two names cannot be the ends of a fact of this passage; empty if they can."""
    if any(end.lower() in PRONOUNS and not end.isupper() for end in (subject, object_)):
        return INVALID
    if normalise(subject) == normalise(object_):
        return INVALID
    if subject and not text.has(subject):
        return INVENTED
    return TRANSLATED if not text.has(object_) and text.is_foreign(object_) else ""


def _make_key(fact: NewFact) -> tuple[str, ...]:
    return (normalise(fact.subject), normalise(fact.predicate), normalise(fact.object))


def _list_names(facts: Sequence[NewFact], known: _EntityNames, passage: Passage) -> dict[str, str]:
    """Return the subject of the passage, the entities it names, and the ends of its facts, with types."""
    about = strip_parentheses(passage.title) or passage.title.strip()
    names = {known.resolve(about): known.types.get(known.resolve(about), "")} if about else {}
    ends = [end for fact in facts for end in ((fact.subject,) if fact.is_value else (fact.subject, fact.object))]
    return {**names, **known.types, **{end: known.types.get(end, "") for end in ends}}


def _read_triple(fact: Mapping[str, Any]) -> tuple[str, str, str]:
    return _clean_text(fact.get("subject")), _clean_text(fact.get("predicate")), _clean_text(fact.get("object"))


def _clean_text(written: object) -> str:
    """Return a text on one line that can be stored. JSON may contain halves of characters, and NUL."""
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return ""
    return " ".join(str(written).encode("utf-8", "ignore").decode().replace("\0", "").split())


def _clean_texts(written: object) -> list[str]:
    return [text for one in written if (text := _clean_text(one))] if isinstance(written, list) else []


def _clean_type(written: object) -> str:
    type_ = _clean_text(written).lower()
    return "" if type_ in {"other", "unknown", "none"} or len(type_) > MAX_NAME_CHARACTERS else type_


def _clean_number(written: object, minimum: float, maximum: float, *, default: float) -> float:
    """Return a number within bounds, or `default` if it is not a number."""
    try:
        number = float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return default
    return default if math.isnan(number) else min(max(number, minimum), maximum)


def _parse_start(written: str) -> datetime | None:
    """Return the first moment of a year, a month or a day."""
    if not (found := _DATE.match(written)):
        return None
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _parse_end(written: str) -> datetime | None:
    """Return the end of a year, a month or a day: the first moment after it."""
    if not (found := _DATE.match(written)) or not (begin := _parse_start(written)):
        return None
    try:
        if found[3]:
            return begin + timedelta(days=1)
        if found[2]:
            return (begin + timedelta(days=31)).replace(day=1)
        return begin.replace(year=begin.year + 1)
    except (ValueError, OverflowError):
        return None
