"""Recognise questions that ask for a set or a connection, and answer them from the graph.

"What depends on Quarry?", "which repositories does the Logistics team own?", "how are Harbor and Vault connected?" and
"what happens if we change Vault?" are read by rules over English words. Rules alone would guess, so an answer needs
more: the question must name one thing that the caller may see, and facts must state the relation.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from waylore.fence import to_line
from waylore.retrieval.relations.connect import ConnectOptions, read_connection
from waylore.retrieval.relations.predicates import PredicateMatcher, is_in_table
from waylore.retrieval.relations.related import RelatedOptions, read_related
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import normalise
from waylore.types.relations import Connection, Direction, Related, RelatedFact
from waylore.types.search import Query, SetAnswer

MAX_WORDS = 24  # of a question; longer ones say more than one thing
MAX_PREDICATE, MAX_NAME = 4, 8  # words
IMPACT, IMPACT_HOPS = "depends on", 3  # what a change of a thing reaches
DETERMINERS = frozenset("the a an our my your their this that these those".split())
KINDS = frozenset("service services team project repository repo package module library system component".split())
RELATIVES = frozenset("that which who".split())
_LINKED = "(?:connected|related|linked|associated)"
_FAILS = "(?:changes|breaks|fails|disappears|goes down|goes away|is (?:changed|removed|replaced|down|gone|unavailable))"
_HAPPENS = "what (?:else |would |will |could )*(?:happens?|breaks?|fails?|(?:is |are |be )?(?:affected|impacted))"
_CONNECT = [
    rf"how (?:are|is|were|was) (?P<a>.+?) (?:and|to|with) (?P<b>.+) {_LINKED}(?: to each other)?",
    rf"how (?:are|is|were|was) (?P<a>.+?) {_LINKED} (?:to|with) (?P<b>.+)",
    r"how (?:do|does|did) (?P<a>.+?) (?:relate|connect) to (?P<b>.+)",
    r"what (?:connects|links|relates) (?P<a>.+?) (?:and|to|with) (?P<b>.+)",
    r"(?:(?:what (?:is|are)|show|show me|find|is there) )?(?:the |a |any )?"
    r"(?:connections?|paths?|links?|relationships?) (?:between|from) (?P<a>.+?) (?:and|to) (?P<b>.+)",
]
_IMPACT = [
    rf"{_HAPPENS} (?:if|when) (?P<name>.+) {_FAILS}",
    rf"{_HAPPENS} (?:if|when) (?:we|i|you|they|someone|somebody) \w+ (?P<name>.+)",
    rf"{_HAPPENS} by (?:(?:a|the) (?:change|loss|failure) (?:to|of|in) |changing |changes to |removing )?(?P<name>.+)",
    r"(?:(?:what is|show|show me) )?the (?:blast radius|impact) of (?:a change to |changing |removing )?(?P<name>.+)",
]
_DOES = r"(?:what|which|who|whom|how many)(?P<kind>(?: [\w-]+)*?) (?:does|do|did) (?P<rest>.+)"
_NOUN = (
    r"(?:.*\b(?:is|are|was|were|list|show|name|all|many) )?(?:me )?(?:all )?(?:the )?"
    r"(?P<noun>[\w-]+(?: [\w-]+)?) of (?P<name>.+)"
)
_THAT = (
    r"(?:what|which|who|how many|list|show|show me|find|name|count|all|every|everything|everyone)"
    r"(?: all| every)?(?: the)? (?P<rest>.+)"
)
_PATTERNS = {
    name: [re.compile(pattern, re.IGNORECASE) for pattern in some]
    for name, some in {
        "connect": _CONNECT,
        "impact": _IMPACT,
        "does": [_DOES],
        "noun": [_NOUN],
        "that": [_THAT],
    }.items()
}


@dataclass(frozen=True, slots=True)
class AskedRelation:
    """One way to read a question: a thing, the relation that it asks for, and from which end."""

    name: str
    predicate: str
    direction: Direction
    hops: int = 1

    def __str__(self) -> str:
        relation = f"“{self.predicate}”"
        within = f" within {self.hops} hops" if self.hops > 1 else ""
        return f"{relation} {self.name}{within}" if self.direction == "in" else f"{self.name} {relation}{within}"


def answer_set_question(query: Query, single_valued: Sequence[str]) -> Reads[SetAnswer | None]:
    """Return the set or the connection that a question asks for; None if it asks for none that the graph states."""
    if pair := find_pair(query.text):
        return (yield from _answer_connection(query, pair, single_valued))
    asked = list_asked(query.text)
    names = list(dict.fromkeys(each.name for each in asked))
    known = (yield from read(Store.entities_by_names, names, where=query.where)) if names else {}
    best = choose_reading(asked, [name for name in names if known.get(name)])
    if best is None:
        return None
    options = RelatedOptions(
        PredicateMatcher([best.predicate], None), best.direction, best.hops, single_valued=single_valued
    )
    related = yield from read_related(replace(query, text=best.name), options)
    return _describe_related(best, related) if related.total else None


def find_pair(text: str) -> tuple[str, str] | None:
    """Return the two names whose connection a question asks for."""
    found = _match("connect", _to_words(text))
    return (_strip_determiners(found["a"]), _strip_determiners(found["b"])) if found else None


def list_asked(text: str) -> list[AskedRelation]:
    """Return the ways to read a question as one for a set. Which of them holds depends on the names that are known."""
    words = _to_words(text)
    if len(words.split()) > MAX_WORDS:
        return []
    if found := _match("impact", words):
        return [AskedRelation(name, IMPACT, "in", IMPACT_HOPS) for name in _list_names(found["name"].split())]
    asked: list[AskedRelation] = []
    if found := _match("does", words):
        asked += _read_does(found["kind"].split(), found["rest"].split())
    if found := _match("noun", words):
        asked += [AskedRelation(name, found["noun"], "out") for name in _list_names(found["name"].split())]
    if found := _match("that", words):
        asked += _read_that(found["rest"].split())
    return asked


def choose_reading(asked: Iterable[AskedRelation], known: Collection[str]) -> AskedRelation | None:
    """Return the reading with the longest known name, then with a predicate of the table, then with the shortest."""
    return max((each for each in asked if each.name in known), key=_rate, default=None)


def _to_words(text: str) -> str:
    return " ".join(text.split()).strip("?!. ")


def _match(kind: str, text: str) -> re.Match[str] | None:
    return next(filter(None, (pattern.fullmatch(text) for pattern in _PATTERNS[kind])), None)


def _read_does(kind: Sequence[str], rest: Sequence[str]) -> Iterator[AskedRelation]:
    """Yield readings of "which services does Harbor depend on" and "how many members does Harbor have"."""
    for end in range(1, len(rest)):
        verb = " ".join(rest[end:])
        predicate = " ".join(kind) if verb == "have" else verb
        if predicate and len(rest) - end <= MAX_PREDICATE:
            yield from (AskedRelation(name, predicate, "out") for name in _list_names(rest[:end], exact=True))


def _read_that(words: Sequence[str]) -> Iterator[AskedRelation]:
    """Yield readings of "services that depend on Quarry", with the name last, and "everything Harbor uses"."""
    for start in range(1, len(words)):
        predicate = _find_predicate(words[:start])
        if predicate:
            yield from (AskedRelation(name, predicate, "in") for name in _list_names(words[start:], exact=True))
        if is_in_table(verb := " ".join(words[start:])):
            yield from (AskedRelation(name, verb, "out") for name in _list_names(words[:start]))


def _find_predicate(words: Sequence[str]) -> str:
    """Return the predicate at the end of words: one of the table, else all words after the kind of things."""
    for start in range(max(0, len(words) - MAX_PREDICATE), len(words)):
        if is_in_table(predicate := " ".join(words[start:])):
            return predicate
    relative = next((place for place, word in enumerate(words) if word.lower() in RELATIVES), 0)
    rest = words[relative + 1 :] if len(words) > 1 else words
    return " ".join(rest) if len(rest) < MAX_PREDICATE and words[-1].lower() not in DETERMINERS else ""


def _list_names(words: Sequence[str], *, exact: bool = False) -> Iterator[str]:
    """Yield the names that words may be, without determiners and kinds; if not `exact`, also their last words."""
    for start in range(1 if exact else len(words)):
        name = _strip_determiners(" ".join(words[start:]))
        if name and len(name.split()) <= MAX_NAME:
            yield name
            head, _, kind = name.rpartition(" ")
            if head and kind.lower() in KINDS:
                yield head


def _strip_determiners(name: str) -> str:
    words = name.strip(" ,;:\"'“”‘’`").split()
    while words and words[0].lower() in DETERMINERS:
        words = words[1:]
    return " ".join(words)


def _rate(asked: AskedRelation) -> tuple[int, bool, int]:
    return len(normalise(asked.name)), is_in_table(asked.predicate), -len(asked.predicate)


def _answer_connection(query: Query, pair: tuple[str, str], single_valued: Sequence[str]) -> Reads[SetAnswer | None]:
    options = ConnectOptions(single_valued=single_valued)
    found = yield from read_connection(query, pair, options)
    return None if found.unknown or found.candidates else _describe_connection(found)


# -- the answer as lines -------------------------------------------------------------------------------


def _describe_related(asked: AskedRelation, related: Related) -> SetAnswer:
    things = {(fact.entity.id if fact.entity else fact.assertion.fact.object) for fact in related}
    counted = "1 fact" if related.complete and related.total == 1 else f"{related.extent} facts"
    of_things = f" about {len(things)} things" if related.complete and 1 < len(things) < related.total else ""
    summary = to_line(f"{counted}{of_things}: {asked}")
    return SetAnswer(summary, tuple(_list_facts(related.facts)), is_complete=related.complete)


def _describe_connection(found: Connection) -> SetAnswer:
    paths = tuple(f"- {to_line(str(path))}" for path in found.paths)
    names = " and ".join(found.names)
    return SetAnswer(to_line(f"{names}: {found}"), paths, is_complete=found.exhaustive)


def _list_facts(facts: Sequence[RelatedFact], depth: int = 0) -> Iterator[str]:
    for fact in facts:
        yield f"{'  ' * depth}- {to_line(f'{fact.assertion.fact}{_describe_source(fact)}')}"
        yield from _list_facts(fact.branches, depth + 1)


def _describe_source(fact: RelatedFact) -> str:
    notes = "; ".join(filter(None, (*fact.period, fact.assertion.document.title)))
    return f" ({notes})" if notes else ""
