"""Read what a question asks for: relations, and the people and things that it names; and measure how well facts fit.

Pure functions over words: this module reads neither the store nor a model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from waylore.relations import find_asked, get_relation_name
from waylore.spans import asks_when, find_spans
from waylore.text import normalise, split_words, strip_parentheses, terms
from waylore.types.knowledge import USER_NAME, Fact
from waylore.types.search import Query

ABOUT, RELATION, WORDS = 0.5, 0.25, 0.25  # shares of a fit: the subject, the relation, and words of the question
PERSONAL = frozenset("i me myself mine we us ourselves ours".split())
POSSESSIVE = frozenset("my our".split())  # "my aunt Clara" is about Clara
# Questions whether or since when something is so: they name the object of a fact.
_CONFIRMING = re.compile(
    r"^\W*(?:am|are|is|was|were|do|does|did|have|has|had|can|could|should|will|would)\b"
    r"|\b(?:still|no longer|any ?more|since when)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What a question asks for: relations by name, its words, and the subjects that it names, normalised.

    `is_confirming` if it asks whether a fact holds, and names the object: "Do I still play handball?".
    """

    relations: frozenset[str]
    words: frozenset[str]
    subjects: frozenset[str]
    person: str  # whom the first person means; empty if the question does not use it
    is_confirming: bool
    asks_when: bool

    def measure_fit(self, fact: Fact) -> float:
        """Return how well a fact fits the question, from 0 (it asks for something else) to 1."""
        relation, object_ = get_relation_name(fact.predicate), terms(fact.object)
        subject = normalise(fact.subject)
        is_asked = self._names(object_) if self.is_confirming else relation in self.relations
        if not is_asked and not self._dates(fact, subject):
            return 0.0
        is_about = subject in self.subjects or subject == self.person
        own = {*terms(fact.subject), *terms(relation), *object_, *terms(fact.statement)}
        return ABOUT * is_about + RELATION + WORDS * len(self.words & own) / max(len(self.words), 1)

    def _names(self, object_: Sequence[str]) -> bool:
        return bool(object_) and self.words.issuperset(object_)

    def _dates(self, fact: Fact, subject: str) -> bool:
        """Return whether the question asks for a time, and the object of the fact is one."""
        return self.asks_when and subject in self.subjects and bool(find_spans(fact.object, fact.began))


def read_question(query: Query, facts: Iterable[Fact]) -> AskedFor:
    """Return what a question asks for, among the relations and subjects of some facts."""
    facts = list(facts)
    words = frozenset(terms(query.text))
    person = normalise(query.where.user or USER_NAME)
    named = {*_find_named(words, {fact.subject for fact in facts}), *_find_relatives(words, facts, person)}
    first_person = PERSONAL if named else PERSONAL | POSSESSIVE
    is_used = not first_person.isdisjoint(split_words(query.text))
    return AskedFor(
        find_asked(query.text, (fact.predicate for fact in facts)),
        words,
        frozenset(named),
        person if is_used else "",
        _CONFIRMING.search(query.text) is not None and any(words.issuperset(terms(fact.object)) for fact in facts),
        asks_when(query.text),
    )


def _find_named(words: frozenset[str], subjects: Iterable[str]) -> list[str]:
    """Return the subjects that a question names; of two with one name the one that it describes, as in "aunt Clara"."""
    by_name: dict[tuple[str, ...], list[str]] = {}
    for subject in subjects:
        by_name.setdefault(tuple(terms(strip_parentheses(subject))), []).append(subject)
    named = [of_one for name, of_one in by_name.items() if name and words.issuperset(name)]
    return [normalise(subject) for of_one in named for subject in _choose_described(words, of_one)]


def _choose_described(words: frozenset[str], subjects: Sequence[str]) -> list[str]:
    """Return those of some subjects with one name that share most words with the question."""
    shared: Mapping[str, int] = {subject: len(words.intersection(terms(subject))) for subject in subjects}
    most = max(shared.values())
    return [subject for subject in subjects if shared[subject] == most]


def _find_relatives(words: frozenset[str], facts: Iterable[Fact], person: str) -> list[str]:
    """Return those whom a question names by what they are to the person who asks: "my sister"."""
    found = []
    for fact in facts:
        ends = [normalise(fact.subject), normalise(fact.object)]
        if person in ends and words.intersection(terms(get_relation_name(fact.predicate))):
            found += [end for end in ends if end != person]
    return found
