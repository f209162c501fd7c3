"""Build facts from the sentences of a page and the names in them.

A sentence that names something else becomes a fact about the subject of the page, with the sentence as its
statement. The predicate is the author's words between both names if they are few, or MENTIONS. The module reads no
grammar and finds no names.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from waylore.indexing.extractors.structure import Structure
from waylore.protocols import Extraction
from waylore.text import count_occurrences, is_unspaced, normalise, strip_parentheses
from waylore.types.knowledge import MENTIONS, NewFact

MAX_FACTS = 24  # in one passage
MAX_PREDICATE_WORDS = 4
MAX_STATEMENT_CHARACTERS = 600  # a table or a block of code may have no end of a sentence
WEIGHT, CONFIDENCE = 4.0, 0.6
_PRONOUN = re.compile(r"^(he|she|it|they|(his|her|its|their)) (?=\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the names in it, in order, with their types."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)


def build_extraction(title: str, sentences: Sequence[Sentence], declared: Structure | None = None) -> Extraction:
    """Return the names and facts in the sentences of a page, and its declared ones."""
    subject = strip_parentheses(title) or title.strip()
    whole = _find_whole_names([subject, *(name for sentence in sentences for name in sentence.names)])
    facts: dict[tuple[str, str], NewFact] = {}
    names: dict[str, str] = {subject: ""} if subject else {}
    for sentence in sentences:
        named = {whole.get(name, name): type_ for name, type_ in sentence.names.items()}
        names |= {name: type_ or names.get(name, "") for name, type_ in named.items()}
        for fact in build_facts(subject, sentence.text, named):
            facts.setdefault((normalise(fact.subject), normalise(fact.object)), fact)
    stated = [*(declared.facts if declared else ()), *facts.values()][:MAX_FACTS]
    return Extraction(tuple(stated), {**names, **(declared.names if declared else {})})


def build_facts(about: str, sentence: str, names: Mapping[str, str]) -> Iterator[NewFact]:
    """Yield a fact about the page's subject, or else about the first name, for each other name."""
    others = {normalise(name): name for name in names if normalise(name) != normalise(about)}
    subject = about or next(iter(others.values()), "")
    statement = _make_statement(about, sentence)
    for normal, name in others.items():
        if normal != normalise(subject):
            yield NewFact(
                subject,
                _find_predicate(subject, name, statement),
                name,
                statement,
                weight=WEIGHT,
                confidence=CONFIDENCE,
                object_type=names[name],
            )


def _find_predicate(subject: str, name: str, statement: str) -> str:
    """Return the few plain words between a subject and a name, or MENTIONS."""
    end = find_name(subject, statement) + len(subject)
    start = find_name(name, statement, end)
    words = statement[end:start].split() if end >= len(subject) and start >= 0 else []
    while words and words[-1] in {"a", "an", "the"}:
        words.pop()
    is_plain = all(word.isalpha() and word.islower() for word in words)
    return " ".join(words) if is_plain and 0 < len(words) <= MAX_PREDICATE_WORDS else MENTIONS


def find_name(name: str, text: str, start: int = 0) -> int:
    """Return the offset of a name in a text as a whole word, or -1."""
    place = text.find(name, start)
    while place >= 0 and not _is_whole(name, text, place):
        place = text.find(name, place + 1)
    return place


def _is_whole(name: str, text: str, place: int) -> bool:
    """Return whether no letter or digit touches a name at its place; scripts without spaces have no such border."""
    if is_unspaced(name):
        return True
    around = text[max(place - 1, 0) : place] + text[place + len(name) : place + len(name) + 1]
    return not any(map(str.isalnum, around))


def _make_statement(about: str, sentence: str) -> str:
    """Return the sentence with its subject: in place of the pronoun that begins it, or before it."""
    text = sentence[:MAX_STATEMENT_CHARACTERS]
    if not about or count_occurrences(normalise(about), normalise(text)):
        return text
    if pronoun := _PRONOUN.match(text):
        whose = "'s" if pronoun[2] else ""
        return f"{about}{whose} {text[pronoun.end() :]}"
    return f"{about}: {text}"


def _find_whole_names(names: Sequence[str]) -> dict[str, str]:
    """Map the last word of each name of two or three words to that name, if only one name ends so.

    As with persons, all words of the name are capitalised, and it comes before its last word alone.
    """
    wholes: dict[str, set[str]] = {}
    alone: set[str] = set()
    for name in names:
        words = name.split()
        if len(words) == 1:
            alone |= {name} - wholes.keys()
        elif len(words) in {2, 3} and all(word[0].isupper() for word in words) and words[-1] not in alone:
            wholes.setdefault(words[-1], set()).add(name)
    return {last: next(iter(found)) for last, found in wholes.items() if len(found) == 1}
