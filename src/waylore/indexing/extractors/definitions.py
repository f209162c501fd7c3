"""Find names that a document itself defines as names of one thing.

Examples are "World Health Organization (WHO)", "WHO (World Health Organization)", "also known as", "formerly",
and aliases from an extractor. Within the document, facts that use the short form get the full name, and the
short form becomes an alias. A `same_as` fact with the defining sentence connects other documents that have
only the short form. Initials are checked, and a short form with two definitions is ignored. Other documents
are not read here: `retrieval/graph/same_as.py` joins them during a search.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from waylore.deadline import check_each
from waylore.indexing.extractors.markup import split_sentences
from waylore.names import ELISION, MAX_WORDS, is_short, is_short_for
from waylore.protocols import Extraction
from waylore.text import STOP_WORDS, count_occurrences, is_unspaced, normalise
from waylore.types.knowledge import SAME, Document, NewFact, Passage

WEIGHT, CONFIDENCE = 8.0, 0.9
MAX_CHARACTERS_EACH = 3  # of a full name for each character of the short form, in scripts without spaces
_BRACKETS = re.compile(r"\s*[(（]([^()（）]{2,100})[)）]")
_LINK_EDGE = re.compile(r"[\[\]]")  # of Markdown, as in "the [World Health Organization (WHO)](https://www.who.int)"
_QUOTES = " \t\"'“”‘’「」『』《》*_`"
_LEAD = re.compile(  # words that may precede a name in brackets
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
# Every definition has one of these. Most texts have none, so they are skipped quickly.
_BRACKET = re.compile(r"[(（]")
_HINT = re.compile(r"known|called|named|k\.?a|formerly|née|abbrev|genannt|bekannt|appel|[简又旧别通略]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Definition:
    """A full name, another name for it, and the sentence that defines it."""

    full: str
    short: str
    statement: str


def apply_definitions(
    document: Document, passages: Sequence[Passage], extractions: Sequence[Extraction]
) -> list[Extraction]:
    """Return the extractions with defined short forms replaced by their full names."""
    pairs = check_each(zip(passages, extractions, strict=True))
    found = [_define(passage, extraction) for passage, extraction in pairs]
    fulls = _drop_ambiguous(definition for of_passage in found for definition in of_passage)
    if not fulls:
        return list(extractions)
    return [
        _add_definitions(
            _use_full_names(extraction, fulls),
            [d for d in of_passage if fulls.get(normalise(d.short)) == d.full],
            document,
        )
        for extraction, of_passage in zip(extractions, found, strict=True)
    ]


def find_definitions(text: str, names: Iterable[str] = ()) -> Iterator[Definition]:
    """Yield the definitions in a text; `names` are the names that are known to occur in it."""
    known = sorted(set(names), key=lambda name: (-len(name), name))
    if not (_BRACKET.search(text) or _HINT.search(text)):
        return
    for sentence in split_sentences(text):
        for bracket in _BRACKETS.finditer(sentence):
            yield from _read_brackets(sentence, bracket, known)
        if _HINT.search(sentence):
            for marker in _MARKER.finditer(sentence):
                yield from _read_marker(sentence, marker, known)


def _read_brackets(sentence: str, bracket: re.Match[str], known: Sequence[str]) -> Iterator[Definition]:
    """Yield the definition by a bracket: a full name and its short form, one of them in brackets."""
    before = sentence[: bracket.start()].rstrip(_QUOTES)
    inside = _LEAD.sub("", re.split(r"[;；,，]", bracket[1])[0].strip(_QUOTES)).strip(_QUOTES)
    last = before.split()[-1].strip(_QUOTES) if before.split() else ""
    if full := _find_full_before(before, inside, known):
        yield Definition(full, inside, sentence)
    elif is_short_for(last, inside):
        yield Definition(inside, last, sentence)


def _find_full_before(before: str, short: str, known: Sequence[str]) -> str:
    """Return the long form of a short form at the end of a text, or an empty string."""
    if is_unspaced(before[-1:]):
        ending = next((name for name in known if before.endswith(name)), "")
        return ending if ending and is_short(short) else _find_unspaced_full(short, before)
    words = _LINK_EDGE.split(before)[-1].split()
    for count in range(1, min(len(words), MAX_WORDS) + 1):
        full = ELISION.sub("", " ".join(words[-count:]).strip(_QUOTES), count=1)
        if full[:1].isalnum() and is_short_for(short, full):
            return full
    return ""


def _find_unspaced_full(short: str, before: str) -> str:
    """Return the shortest end of an unspaced text that has the characters of a short form in order.

    It must begin with the first character of the short form; without such an end, return an empty string.
    """
    if len(short) < 2 or not is_unspaced(short):
        return ""
    run = re.split(r"[\W_]", before)[-1]
    for start in range(len(run) - len(short) - 1, -1, -1):
        rest = iter(run[start:])
        is_within = len(run) - start <= MAX_CHARACTERS_EACH * len(short)
        if is_within and run[start] == short[0] and all(letter in rest for letter in short):
            return run[start:]
    return ""


def _read_marker(sentence: str, marker: re.Match[str], known: Sequence[str]) -> Iterator[Definition]:
    """Yield the definition by a marker: two known names with words like "also known as" between them."""
    before = sentence[: marker.start()].rstrip(_QUOTES + ",，")
    after = sentence[marker.end() :].lstrip(_QUOTES)
    full = next((name for name in known if before.endswith(name)), "")
    short = next((name for name in known if after.startswith(name)), "")
    if full and short and normalise(full) != normalise(short):
        yield Definition(full, short, sentence)


def _define(passage: Passage, extraction: Extraction) -> list[Definition]:
    """Return the definitions in a passage, and the aliases of its extraction that are names in the text."""
    text = normalise(passage.text)
    given = [(name, alias) for name, aliases in extraction.aliases.items() for alias in aliases]
    return [*find_definitions(passage.text, extraction.names)] + [
        Definition(name, alias, _find_sentence(passage.text, name, alias))
        for name, alias in given
        if _is_name(alias) and normalise(alias) != normalise(name) and count_occurrences(normalise(alias), text)
    ]


def _is_name(alias: str) -> bool:
    plain = normalise(alias)
    has_sign = any(c.isupper() or c.isdigit() for c in alias) or is_unspaced(alias)
    return len(plain) > 1 and plain not in STOP_WORDS and has_sign


def _find_sentence(text: str, name: str, alias: str) -> str:
    """Return the sentence that has both names, else one that says so."""
    both = (
        s for s in split_sentences(text) if all(count_occurrences(normalise(n), normalise(s)) for n in (name, alias))
    )
    return next(both, f"{name} is also called {alias}.")


def _drop_ambiguous(definitions: Iterable[Definition]) -> dict[str, str]:
    """Return the full name of each normalised short form that has only one and is no full name itself."""
    fulls: dict[str, dict[str, str]] = defaultdict(dict)
    for definition in definitions:
        fulls[normalise(definition.short)].setdefault(normalise(definition.full), definition.full)
    named = {full for of_short in fulls.values() for full in of_short}
    return {
        short: next(iter(of_short.values()))
        for short, of_short in fulls.items()
        if len(of_short) == 1 and short not in named
    }


def _use_full_names(extraction: Extraction, fulls: Mapping[str, str]) -> Extraction:
    """Return an extraction in which short forms are replaced by their full names."""

    def full(name: str) -> str:
        return fulls.get(normalise(name), name)

    facts = [_rename(fact, full(fact.subject), full(fact.object)) for fact in extraction.facts]
    types: dict[str, str] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    for name, type_ in extraction.names.items():
        types[full(name)] = types.get(full(name)) or type_
        own = (name,) if full(name) != name else ()
        aliases[full(name)] = (*aliases.get(full(name), ()), *extraction.aliases.get(name, ()), *own)
    return Extraction(
        tuple(c for c in facts if c.is_value or normalise(c.subject) != normalise(c.object)),
        types,
        {full(name): text for name, text in extraction.descriptions.items()},
        {name: tuple(dict.fromkeys(others)) for name, others in aliases.items() if others},
    )


def _rename(fact: NewFact, subject: str, object_: str) -> NewFact:
    return replace(fact, subject=subject, object=fact.object if fact.is_value else object_)


def _add_definitions(extraction: Extraction, defined: Iterable[Definition], document: Document) -> Extraction:
    """Add the definitions of a passage to its extraction: names, aliases, and a fact for each."""
    names, aliases, facts = dict(extraction.names), dict(extraction.aliases), list(extraction.facts)
    for d in defined:
        names.setdefault(d.full, "")
        aliases[d.full] = tuple(dict.fromkeys((*aliases.get(d.full, ()), d.short)))
        facts.append(
            NewFact(
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
    return replace(extraction, facts=tuple(facts), names=names, aliases=aliases)
