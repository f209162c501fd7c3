"""Find facts that people state about themselves and others in a turn: homes, work, acquaintances, and their ends.

The patterns are data (`statements.toml`). "I" and "my" are the speaker's. A relative gets a separate name: "my sister
Anna" is `Anna (sister of mara)`, so two people with one name stay apart. Questions, wishes and temporary states give no
facts. A sentence that denies a relation gives a fact whose predicate begins with "not". No model is called.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from waylore.protocols import Extraction
from waylore.relations import DENIAL
from waylore.spans import find_spans
from waylore.types.knowledge import NewFact

CONFIDENCE = 0.8
MAX_CHARACTERS = 4_000  # maximum length of a turn; a longer one is pasted text
_SENTENCE = re.compile(r"(?<=[.!?;])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)\s+|\n+")
_CLAUSE = re.compile(r",? (?:and|but|so) (?=(?:I|we|my|our|he|she)\b)|: |, (?=(?:and |but )?(?:I|we|my|our)\b)")
_TITLE = r"(?:(?:Dr|Prof|Mr|Mrs|Ms)\.? )?"
_CAPITAL = r"(?!I\b)[A-ZÀ-Ý][\w&'’-]*"
_NAME = rf"(?-i:{_TITLE}{_CAPITAL}(?: (?:(?:of|the|de|van|von|&) )?{_CAPITAL}){{0,3}})"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?: of)? [a-z]+(?: \d{4})?|[a-z]+ \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?"
_WORDS = r"[\w&'’.+#-]+(?: [\w&'’.+#-]+){0,4}?"
_END = r"(?=[.,;!?]|$| now\b| because\b| and\b| but\b| instead\b| these days\b)"
_CONTRACTION = re.compile(r"\b(I|we|he|she|they|you)['’](m|re|ve|s|ll)\b", re.IGNORECASE)
_VERBS = {"m": "am", "re": "are", "ve": "have", "s": "is", "ll": "will"}
_SPEAKER = frozenset("i we".split())
_LAST = frozenset("he she they".split())
_NOT_NAMES = frozenset(
    "I We He She They It This That The My Our Yes No Today Yesterday Everybody Someone Nobody".split()
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A pattern that states a relation, with the relation's name, denial, swap of the ends, and object."""

    relation: str
    denies: bool
    swaps: bool
    object: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The patterns of a language: statements, and words that deny, correct, limit or doubt a sentence.

    A clause without a word of `hint` states nothing.
    """

    statements: tuple[Statement, ...]
    kin: re.Pattern[str]
    hint: re.Pattern[str]
    denial: re.Pattern[str]
    correction: re.Pattern[str]
    temporary: re.Pattern[str]
    doubtful: re.Pattern[str]


def find_statements(text: str, speaker: str, said: datetime) -> Extraction:
    """Return the facts that a turn of a speaker states, with the bare names of people as aliases."""
    facts: dict[tuple[str, str, str], NewFact] = {}
    last = ""
    for sentence in _SENTENCE.split(_write_out(text[:MAX_CHARACTERS])):
        for clause in _CLAUSE.split(sentence):
            for fact in _read_clause(clause, sentence, Frame(speaker, said, last)):
                facts.setdefault((fact.subject, fact.predicate, fact.object), fact)
                last = fact.subject if fact.subject != speaker else last
    aliases = {name: (name.partition(" (")[0],) for fact in facts.values() for name in [fact.subject] if " (" in name}
    return Extraction(tuple(facts.values()), dict.fromkeys(aliases, "person"), aliases=aliases)


def _write_out(text: str) -> str:
    """Return a text with contractions of verbs written out: "I'm" as "I am"."""
    return _CONTRACTION.sub(lambda found: f"{found[1]} {_VERBS[found[2].lower()]}", text)


def corrects(text: str) -> bool:
    """Return whether a turn corrects an earlier statement."""
    return load_grammar().correction.search(text) is not None


@dataclass(frozen=True, slots=True)
class Frame:
    """The speaker and the time, and the person of the last statement."""

    speaker: str
    said: datetime
    last: str


def _read_clause(clause: str, sentence: str, frame: Frame) -> Iterator[NewFact]:
    grammar = load_grammar()
    if not grammar.hint.search(clause) or grammar.doubtful.search(clause):
        return
    yield from _name_relatives(clause, grammar, frame)
    if grammar.temporary.search(sentence):
        return
    is_denied = grammar.denial.search(clause) is not None
    for statement in grammar.statements:
        for found in statement.pattern.finditer(clause):
            denies = statement.denies or (is_denied and not statement.object)
            fact = _make_fact(statement, found, sentence, frame, denies=denies)
            if fact is not None:
                yield fact


def _make_fact(
    statement: Statement, found: re.Match[str], sentence: str, frame: Frame, *, denies: bool
) -> NewFact | None:
    parts = {name: value for name, value in found.groupdict().items() if value}
    subject, object_ = _resolve(parts.get("who", "I"), frame), parts.get("o", "").strip(" '’\".,")
    if not subject or not object_ or object_ in _NOT_NAMES:
        return None
    if statement.swaps:
        subject, object_ = object_, parts["who"]
    object_ = statement.object.format(object_) or object_
    relation = statement.relation.format_map({"kind": parts.get("kind", "").lower()})
    since = _find_beginning(sentence, frame.said)
    return NewFact(
        subject,
        DENIAL + relation if denies else relation,
        object_,
        statement=sentence.strip(),
        confidence=CONFIDENCE,
        source="conversation",
        valid_from=since,
        subject_type="" if statement.swaps else "person",
    )


def _find_beginning(sentence: str, said: datetime) -> datetime | None:
    """Return the first day of the expression of time after "since", "from" or "as of"."""
    found = re.search(r"\b(?:since|as of|from|starting)\b", sentence, re.IGNORECASE)
    spans = find_spans(sentence[found.start() :], said) if found else ()
    return datetime(spans[0].first.year, spans[0].first.month, spans[0].first.day, tzinfo=UTC) if spans else None


def _resolve(who: str, frame: Frame) -> str:
    """Return the name of a subject: of the speaker, of a relative of somebody, or the name itself."""
    words = who.replace("’", "'").removesuffix("'s").split()
    if words[0].lower() in _SPEAKER or who.lower() in {"my", "our"}:
        return frame.speaker
    if who.lower() in _LAST:
        return frame.last
    found = load_grammar().kin.fullmatch(who.replace("’", "'").removesuffix("'s"))
    if found:
        return _name_relative(found, frame)
    return "" if words[0] in _NOT_NAMES else " ".join(words)


def _name_relative(found: re.Match[str], frame: Frame) -> str:
    """Return the name of a relative, such as `Anna (sister of mara)`, or `sister of mara` if no name was said."""
    owner = frame.speaker if found["owner"].lower() in {"my", "our"} else found["owner"].replace("'s", "")
    kin = f"{found['kin'].lower()} of {owner}"
    named = (found["named"] or "").removesuffix("'s")
    return f"{named} ({kin})" if named else kin


def _name_relatives(clause: str, grammar: Grammar, frame: Frame) -> Iterator[NewFact]:
    """Yield a fact for each person who is named as a relative."""
    for found in grammar.kin.finditer(clause.replace("’", "'")):
        if found["named"]:
            subject, owner = _name_relative(found, frame), found["owner"]
            object_ = frame.speaker if owner.lower() in {"my", "our"} else owner.replace("'s", "")
            predicate = f"{found['kin'].lower()} of"
            yield NewFact(
                subject,
                predicate,
                object_,
                found[0],
                confidence=CONFIDENCE,
                source="conversation",
                subject_type="person",
            )


@cache
def load_grammar() -> Grammar:
    """Load the patterns."""
    table = tomllib.loads(files("waylore.indexing.memory").joinpath("statements.toml").read_text("utf-8"))
    kin = "|".join(sorted(table["kin"], key=len, reverse=True))
    named = rf"(?: {_NAME}|, {_NAME}(?=,))?"
    relative = rf"(?:(?:my|our)|(?-i:[A-ZÀ-Ý][\w-]*)'s) (?:\w+ )?(?:{kin}){named}"
    who = rf"(?P<who>{relative}|I|we|he|she|{_NAME})"
    parts = {
        "who": rf"(?<![\w'’]){who}",
        "whose": rf"(?<![\w'’])(?P<who>my|our|{_NAME}['’]s)",
        "kinship": rf"(?<![\w'’])(?P<who>{relative})",
        "name": rf"(?P<o>{_NAME})",
        "_name": _NAME,
        "name_": rf"(?P<who>{_NAME})",
        "thing": rf"(?P<who>(?:the )?{_WORDS})",
        "of": rf"(?P<who>{_WORDS})",
        "what": rf"(?P<o>{_WORDS})",
        "words": rf"(?P<o>{_WORDS}){_END}",
        "number": r"(?P<o>\+?\d[\d ()-]{4,18}\d)",
        "mail": r"(?P<o>[\w.+-]+@[\w-]+\.[\w.-]*\w)",
        "day": rf"(?P<o>{_DAY})(?![\w])",
        "kind": "{kind}",
    }
    statements = [
        Statement(row["relation"], "denies" in row, "swaps" in row, row.get("object", ""), _compile(pattern, parts))
        for row in table["statement"]
        for pattern in row["patterns"]
    ]
    owned = r"(?<!\w)(?P<owner>my|our|(?-i:[A-ZÀ-Ý][\w-]*)'s) (?:\w+ )?"
    kinship = rf"{owned}(?P<kin>{kin})\b(?:(?P<comma>,)? (?P<named>{_NAME})(?(comma)(?=,)))?"
    names = ("hint", "denial", "correction", "temporary", "doubtful")
    words = [re.compile(table[name], re.IGNORECASE) for name in names]
    return Grammar(tuple(statements), re.compile(kinship, re.IGNORECASE), *words)


def _compile(pattern: str, parts: dict[str, str]) -> re.Pattern[str]:
    filled = re.sub(r"\{(\w+)\}", lambda found: parts.get(found[1], found[0]), pattern)
    return re.compile(filled, re.IGNORECASE)
