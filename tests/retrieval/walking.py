"""Random graphs of several users and labels, and a walk over all of their documents that shares no code with retrieval.

The walk reads an export, keeps what a caller may see by an own reading of the rules, and follows every fact.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from hypothesis import strategies as st

from retrieval.worlds import DAYS, NAMES
from waylore.indexing import pipeline
from waylore.types.identity import document_id, entity_id
from waylore.types.knowledge import SOURCES, Document, Entity, Fact, IndexedDocument, NewFact
from waylore.types.search import Filter

TYPES = ("", "service", "team")
PREDICATES = ("knows", "needs", "is needed by", "cites", "not needs")
ASKED: Mapping[str, Mapping[str, bool]] = {  # what a predicate finds, and whether as the inverse
    "depends on": {"needs": False, "is needed by": True},
    "is needed by": {"needs": True, "is needed by": False},
    "knows": {"knows": False},
    "juggles": {},
}

told = st.builds(
    NewFact,
    subject=st.sampled_from(NAMES),
    predicate=st.sampled_from(PREDICATES),
    object=st.sampled_from(NAMES),
    weight=st.integers(1, 10).map(float),
    confidence=st.sampled_from([1.0, 0.5]),
    source=st.sampled_from(SOURCES),
    status=st.sampled_from([*["confirmed"] * 8, "staged", "retracted"]),
    valid_from=st.sampled_from([*[None] * 5, DAYS[1]]),
    valid_to=st.sampled_from([*[None] * 5, DAYS[2]]),
    subject_type=st.sampled_from(TYPES),
    is_value=st.sampled_from([*[False] * 7, True]),
)
same = st.builds(NewFact, st.sampled_from(NAMES), st.just("same_as"), st.sampled_from(NAMES))
pairs = st.builds(
    lambda one, other: NewFact(one, "", other, f"{one} sails with {other}", is_pair=True),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
)


# Of ten facts, one is a pair, and one says that two names are one. More would make one thing of all.
kinds = st.integers(0, 9).flatmap(lambda number: {0: same, 1: pairs}.get(number, told))


@dataclass(frozen=True)
class DrawnPage:
    """A document that a test draws."""

    facts: tuple[NewFact, ...]
    labels: frozenset[str] = frozenset()
    user: str = ""
    lang: str = ""


pages = st.builds(
    DrawnPage,
    st.lists(kinds, min_size=2, max_size=5).map(tuple),
    st.sampled_from([*[frozenset()] * 4, frozenset({"red"}), frozenset({"blue"})]),
    st.sampled_from([*[""] * 4, "ann", "ben"]),
    st.sampled_from(["en", "en", ""]),
)
graphs = st.lists(pages, min_size=3, max_size=6).map(tuple)
callers = st.builds(
    Filter,
    labels=st.sampled_from([None, None, frozenset({"red"}), frozenset()]),
    user=st.sampled_from(["", "ann"]),
    metadata=st.sampled_from([{}, {}, {}, {"lang": "en"}]),
)


def index_pages(drawn: Sequence[DrawnPage]) -> list[IndexedDocument]:
    """Return pages as indexed documents without vectors. The text of a page has the statements of its pairs."""
    return [_index_page(page, number) for number, page in enumerate(drawn)]


def _index_page(page: DrawnPage, number: int) -> IndexedDocument:
    document = Document(
        document_id(uri=str(number)),
        uri=str(number),
        metadata={"lang": page.lang} if page.lang else {},
        labels=page.labels,
        user=page.user,
        recorded_at=DAYS[0],
    )
    text = ". ".join(["Notes", *(fact.statement for fact in page.facts if fact.is_pair)])
    return pipeline.index_text(document, text, page.facts)


# -- what a caller may see -----------------------------------------------------------------------------


def may_see(document: Document, caller: Filter) -> bool:
    """Return whether a caller may see a document and wants to."""
    is_allowed = caller.labels is None or not document.labels or bool(document.labels & caller.labels)
    lang = caller.metadata.get("lang")
    return is_allowed and document.user in ("", caller.user) and lang in (None, document.metadata.get("lang"))


@dataclass
class SeenGraph:
    """All facts, pairs and entities that a caller may see."""

    facts: dict[str, Fact] = field(default_factory=dict)
    pairs: list[Fact] = field(default_factory=list)
    entities: dict[str, list[Entity]] = field(default_factory=lambda: defaultdict(list))
    things: dict[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def neighbours(self) -> dict[frozenset[str], set[frozenset[str]]]:
        """The things that facts and pairs connect with each thing."""
        near: dict[frozenset[str], set[frozenset[str]]] = defaultdict(set)
        for fact in (*self.list_relations(), *self.pairs):
            if len(fact.ends) == 2:
                first, second = map(self.get_thing, fact.ends)
                near[first].add(second)
                near[second].add(first)
        return near

    def get_thing(self, entity: str) -> frozenset[str]:
        """Return all entities that are the same as one."""
        return self.things.get(entity, frozenset({entity}))

    def list_relations(self) -> list[Fact]:
        """Return the facts that relate two things or give a value."""
        stated = self.facts.values()
        return [f for f in stated if f.predicate != "same_as" and not f.predicate.startswith("not ")]


def see_graph(export: Iterable[IndexedDocument], caller: Filter, as_of: datetime | None = None) -> SeenGraph:
    """Return what a caller may see of an export: each fact as its most trusted assertion states it, if it is live."""
    seen = SeenGraph()
    stated: dict[str, list[Fact]] = defaultdict(list)
    for indexed in export:
        if may_see(indexed.document, caller):
            seen.pairs += indexed.pairs
            for entity in indexed.entities:
                seen.entities[entity.id].append(entity)
            for fact in indexed.facts:
                if as_of is None or _is_valid(fact, as_of):
                    stated[fact.id].append(fact)
    for id_, assertions in stated.items():
        best = min(assertions, key=lambda f: (SOURCES.index(f.source), -f.weight * f.confidence, f.passage_id))
        if best.status != "retracted":
            seen.facts[id_] = best
    seen.things = _join([f.ends for f in seen.facts.values() if f.predicate == "same_as"])
    return seen


def _is_valid(fact: Fact, as_of: datetime) -> bool:
    return (fact.valid_from is None or fact.valid_from <= as_of) and (fact.valid_to is None or fact.valid_to > as_of)


def _join(pairs: Iterable[tuple[str, ...]]) -> dict[str, frozenset[str]]:
    things: dict[str, frozenset[str]] = {}
    for pair in pairs:
        joined = frozenset[str]().union(*(things.get(each, frozenset({each})) for each in pair))
        things |= dict.fromkeys(joined, joined)
    return things


# -- walking -------------------------------------------------------------------------------------------


def walk(seen: SeenGraph, name: str, asked: str, direction: str, hops: int) -> dict[str, int]:
    """Return the ids of all facts around a name, each with its hop, by following every fact at every hop."""
    level = {seen.get_thing(entity_id(name))}
    known = set(level)
    found: dict[str, int] = {}
    for hop in range(1, hops + 1):
        reached = set()
        for fact in seen.list_relations():
            for near in fact.ends:
                if seen.get_thing(near) in level and _is_wanted(seen, fact, near, asked, direction):
                    found.setdefault(fact.id, hop)
                    reached |= {seen.get_thing(end) for end in fact.ends}
        level = reached - known
        known |= reached
    return found


def _is_wanted(seen: SeenGraph, fact: Fact, near: str, asked: str, direction: str) -> bool:
    if asked and fact.predicate not in ASKED[asked]:
        return False
    is_inside = len(fact.ends) == 2 and seen.get_thing(fact.ends[0]) == seen.get_thing(fact.ends[1])
    is_out = (near == fact.subject_id) != bool(asked and ASKED[asked][fact.predicate])
    return direction == "both" or is_inside or is_out == (direction == "out")


def measure_distance(seen: SeenGraph, one: str, other: str) -> int | None:
    """Return the number of steps between two entities over facts and pairs; None if there is no path."""
    start, end = seen.get_thing(one), seen.get_thing(other)
    distances = {start: 0}
    pending = deque([start])
    while pending and end not in distances:
        thing = pending.popleft()
        for beyond in seen.neighbours[thing] - distances.keys():
            distances[beyond] = distances[thing] + 1
            pending.append(beyond)
    return distances.get(end)
