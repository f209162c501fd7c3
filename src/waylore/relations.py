"""The known relations of facts: which of them have one object at a time, and how questions ask for them.

The table is in `relations.toml`. A predicate that begins with "not" denies a relation: `not works_at` ends `works_at`.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from waylore.text import normalise, terms

DENIAL = "not "  # beginning of a predicate that denies another one
_DENYING = re.compile(r"(?:no longer|not any ?more|stopped|stops|quit|gave up|ceased to|ceased) ")
MAX_WORDS = 40  # words of a question that may spell a predicate
_ANY = " *"  # at the end of a name: stands for all predicates that begin with the name


@dataclass(frozen=True, slots=True)
class KnownRelation:
    """A relation by its normalised name. `asked` matches questions that ask for it; if None, only its name does."""

    name: str
    is_single: bool
    asked: re.Pattern[str] | None


@lru_cache(maxsize=4_096)
def find_relation(predicate: str) -> KnownRelation | None:
    """Return the relation that a predicate states or denies; None if it is not in the table."""
    exact, begun = _load_relations()
    name = get_relation_name(predicate)
    return exact.get(name) or next((known for start, known in begun.items() if name.startswith(start)), None)


@lru_cache(maxsize=4_096)  # cached: predicates are few, and periods compare all pairs
def get_relation_name(predicate: str) -> str:
    """Return the normalised predicate, without the word that denies it."""
    return normalise(predicate).removeprefix(DENIAL)


@lru_cache(maxsize=4_096)
def is_denial(predicate: str) -> bool:
    """Return whether a predicate denies a relation."""
    return normalise(predicate).startswith(DENIAL)


def to_denial(predicate: str) -> str:
    """Return the predicate in its denying form if its words deny a relation: `stopped_playing` is `not plays`."""
    found = _DENYING.match(normalise(predicate))
    if found is None:
        return predicate
    rest = normalise(predicate)[found.end() :]
    exact, _ = _load_relations()
    stem = terms(rest)
    return DENIAL + next((name for name in exact if terms(name) == stem), rest)


def is_single_valued(predicate: str, added: Collection[str] = ()) -> bool:
    """Return whether a subject has one object at a time, by the table or by the normalised names in `added`."""
    known = find_relation(predicate)
    return get_relation_name(predicate) in added or (known is not None and known.is_single)


def find_asked(question: str, predicates: Iterable[str]) -> frozenset[str]:
    """Return the names of the relations that a question asks for, among those of some predicates."""
    words = frozenset(terms(question))
    return frozenset(name for name in set(map(get_relation_name, predicates)) if _asks(question, words, name))


def list_asked(question: str) -> list[str]:
    """Return the names of relations that a question may ask for: from the table, and up to three of its words."""
    exact, _ = _load_relations()
    known = [name for name, relation in exact.items() if relation.asked and relation.asked.search(question)]
    words = normalise(question).split()[:MAX_WORDS]
    spelled = [" ".join(words[at : at + size]) for size in (1, 2, 3) for at in range(len(words) - size + 1)]
    return list(dict.fromkeys((*known, *spelled)))


def _asks(question: str, words: frozenset[str], name: str) -> bool:
    known = find_relation(name)
    if known is not None and known.asked is not None:
        return known.asked.search(question) is not None
    own = terms(name)
    return bool(own) and words.issuperset(own)


@cache
def _load_relations() -> tuple[Mapping[str, KnownRelation], Mapping[str, KnownRelation]]:
    """Return the relations by name, and the relations that mean all predicates with the same beginning."""
    table = tomllib.loads(files("waylore").joinpath("relations.toml").read_text("utf-8"))
    exact: dict[str, KnownRelation] = {}
    begun: dict[str, KnownRelation] = {}
    for row in table["relation"]:
        patterns = row.get("asked")
        asked = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None
        name = row["name"].removesuffix(_ANY)
        into = begun if row["name"].endswith(_ANY) else exact
        into[f"{name} " if into is begun else name] = KnownRelation(row["name"], row["single"], asked)
    return exact, begun
