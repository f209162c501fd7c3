"""Mark passages whose statements were superseded, and put what holds instead directly above them.

Of the facts that a passage states, the one that fits the question best counts. If another assertion ended it
(`graph.validity`), the passage of that assertion is moved above it, or inserted. If the question asks for no relation,
a passage whose facts are all superseded is moved below the others instead. Only facts whose time is known count.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from waylore.config import LinkingConfig
from waylore.recipes import Recipe
from waylore.relations import get_relation_name, is_single_valued, list_asked
from waylore.retrieval.asked import ABOUT, RELATION, read_question
from waylore.retrieval.fusion import FusedCandidate
from waylore.retrieval.graph.linking import link_entities
from waylore.retrieval.graph.state import GraphQuery, Loaded, load_passages
from waylore.retrieval.graph.validity import (
    MAX_ASSERTIONS,
    Period,
    compute_periods,
    get_key,
    group_assertions,
    make_order_key,
    may_end,
    read_assertions,
)
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import normalise
from waylore.types.knowledge import Fact, Passage
from waylore.types.search import EndKind, Hit, Placement, Query, Superseder

FACTS_PER_PASSAGE = 16
MAX_SUBJECTS, MAX_STATING = 8, 20  # entities that are looked up, and passages that state what holds of them
LINKING = LinkingConfig(ways=("names",))
STATING_WEIGHT = 6.0  # of a turn that says what holds of the relation that the question asks for, beside its features


@dataclass(frozen=True, slots=True)
class Ending:
    """What ended a fact: the assertion that holds instead, how it ended it, and when."""

    fact: Fact
    kind: EndKind
    since: datetime

    def describe(self, passage: Passage) -> Superseder:
        """Return the mark of a hit, given the passage of the assertion."""
        return Superseder(passage.id, passage.text, passage.at, self.kind, self.since)


@dataclass(slots=True)
class Superseding:
    """Passages that were superseded, by id.

    `superseders` has the passages that stand directly above others, by the ids of those. Passages in `sunk` stand below
    all others. Those in `planned` say what begins later. Those in `stating` say what holds of a relation that the
    question asks for, with a measure from 0 to 1 of how well they fit.
    """

    endings: dict[str, Ending] = field(default_factory=dict)
    superseders: dict[str, str] = field(default_factory=dict)
    sunk: set[str] = field(default_factory=set)
    planned: set[str] = field(default_factory=set)
    stating: dict[str, float] = field(default_factory=dict)

    def answers(self, hit: Hit) -> bool:
        """Return whether a hit says what holds of the relation and of the subject that the question asks for."""
        return self.stating.get(hit.id, 0.0) >= ABOUT + RELATION

    def reorder(self, candidates: Sequence[FusedCandidate], turns: Collection[str]) -> tuple[FusedCandidate, ...]:
        """Return the candidates, each below what ended it; a passage that was no candidate is inserted.

        `turns` are those that were ranked by their features. If they say what holds of a relation that the question
        asks for, they come earlier, at places of turns.
        """
        return tuple(self._put_below(self._raise_turns(candidates, turns) if turns else candidates))

    def _raise_turns(self, candidates: Sequence[FusedCandidate], turns: Collection[str]) -> Iterator[FusedCandidate]:
        own = [_raise_score(each, self.stating.get(each.id, 0.0)) for each in candidates if each.id in turns]
        raised = iter(sorted(own, key=lambda each: -each.score))
        yield from (next(raised) if each.id in turns else each for each in candidates)

    def _put_below(self, candidates: Iterable[FusedCandidate]) -> Iterator[FusedCandidate]:
        known = {candidate.id: candidate for candidate in candidates}
        placed, sunk = set[str](), list[FusedCandidate]()
        for candidate in known.values():
            if candidate.id in self.sunk:
                sunk.append(candidate)
                continue
            for id_ in (self.superseders.get(candidate.id), candidate.id):
                if id_ is not None and id_ not in placed:
                    placed.add(id_)
                    yield known.get(id_) or _insert(id_, candidate)
        yield from (candidate for candidate in sunk if candidate.id not in placed)

    def add_fitting(self, fact: Fact, fit: float, ending: Ending | None, moment: datetime) -> None:
        """Add the passage of a fact that fits the question."""
        if ending is not None:
            self.superseders[fact.passage_id] = ending.fact.passage_id
        if fact.began > moment:
            self.planned.add(fact.passage_id)
        elif ending is None:
            self.stating[fact.passage_id] = fit
        else:
            self.endings[fact.passage_id] = ending


def find_superseded(
    query: Query, passages: Sequence[str], now: datetime, single_valued: Sequence[str]
) -> Reads[Superseding]:
    """Return which of some passages were superseded at `as_of`, or now."""
    if not (yield from read(Store.has_facts, where=query.where)):
        return Superseding()
    told = yield from read(Store.facts_of_passages, passages, per_passage=FACTS_PER_PASSAGE, where=query.where)
    places = [place for place in range(told.size) if told.is_dated[place] and told.is_typed[place]]
    facts: dict[str, list[Fact]] = {}
    for fact in map(told.make, places):
        facts.setdefault(fact.passage_id, []).append(fact)
    if not facts:
        return Superseding()
    moment = query.as_of or now
    endings = yield from _find_endings(query, [f for of_one in facts.values() for f in of_one], moment, single_valued)
    return _judge_passages(query, facts, endings, moment)


def mark_superseded(
    query: Query,
    hits: tuple[Hit, ...],
    found: Superseding,
    loaded: Loaded,
) -> Reads[tuple[Hit, ...]]:
    """Return the hits with what holds instead of them, and whether they say what begins later."""
    endings = {hit.id: found.endings[hit.id] for hit in hits if hit.id in found.endings}
    missing = {ending.fact.passage_id for ending in endings.values()} - loaded.keys()
    known = {**loaded, **(yield from load_passages(query, sorted(missing)))}
    marks = {
        id_: ending.describe(known[ending.fact.passage_id][0])
        for id_, ending in endings.items()
        if ending.fact.passage_id in known
    }
    return tuple(replace(hit, superseded_by=marks.get(hit.id), is_planned=hit.id in found.planned) for hit in hits)


def find_stating(question: GraphQuery, recipe: Recipe) -> Reads[list[str]]:
    """Return passages that say what holds of an entity that the question names, of a relation that it asks for."""
    query = question.query
    if not (yield from read(Store.has_facts, where=query.where)):
        return []
    links = question.links if recipe.graph else (yield from link_entities(query, LINKING))
    subjects = [link.entity.id for link in links[:MAX_SUBJECTS]]
    predicates = list_asked(query.text)
    if not subjects or not predicates:
        return []
    told = yield from read_assertions(query, subjects, predicates, MAX_ASSERTIONS)
    periods = _compute_all_periods([f for of_one in told.values() for f in of_one], recipe.walk.single_valued)
    held = [period for _, of_one in periods for period in of_one if period.holds_at(query.as_of or question.now)]
    return [period.assertions[0].passage_id for period in held][:MAX_STATING]


def _raise_score(candidate: FusedCandidate, fit: float) -> FusedCandidate:
    if not fit:
        return candidate
    share = round(STATING_WEIGHT * fit, 6)
    placement = Placement("states", None, fit, share, note="says what holds of the relation that the question asks for")
    return candidate._replace(score=candidate.score + share, placements=(*candidate.placements, placement))


def _insert(id_: str, below: FusedCandidate) -> FusedCandidate:
    note = "says what holds instead of what the next hit says"
    return below._replace(id=id_, placements=(Placement("superseding", None, below.score, below.score, note=note),))


# -- what ended a fact -----------------------------------------------------------------------------------


def _find_endings(
    query: Query, facts: Sequence[Fact], moment: datetime, single_valued: Sequence[str]
) -> Reads[Mapping[tuple[str, str], Ending]]:
    """Return what ended facts, by the ids of fact and passage.

    A relation that is not in the table can only end if one of the facts denies it.
    """
    named = frozenset(map(normalise, single_valued))
    denied = {get_relation_name(fact.predicate) for fact in facts if fact.is_denial}
    ending = [fact for fact in facts if get_relation_name(fact.predicate) in denied or may_end(fact, named)]
    if not ending:
        return {}
    subjects = sorted({fact.subject_id for fact in ending})
    predicates = sorted({get_relation_name(fact.predicate) for fact in ending})
    told = yield from read_assertions(query, subjects, predicates, MAX_ASSERTIONS)
    known = [*ending, *(fact for of_one in told.values() for fact in of_one)]
    endings: dict[tuple[str, str], Ending] = {}
    for is_single, periods in _compute_all_periods(known, single_valued):
        endings |= _compute_endings(periods, moment, is_single)
    return endings


def _compute_all_periods(facts: Iterable[Fact], single_valued: Sequence[str]) -> Iterator[tuple[bool, list[Period]]]:
    """Yield the periods of each subject and relation, with whether the relation is single-valued."""
    named = frozenset(map(normalise, single_valued))
    for (_, relation), of_one in group_assertions(facts).items():
        is_single = is_single_valued(relation, named)
        yield is_single, compute_periods(of_one, is_single=is_single)


def _compute_endings(
    periods: Sequence[Period], moment: datetime, is_single: bool
) -> Iterator[tuple[tuple[str, str], Ending]]:
    """Yield what ended the facts of one subject and relation before a moment."""
    for period in periods:
        if period.holds_at(moment):
            continue
        others = [other for other in periods if _replaces(other, period, moment, is_single)]
        if not others:
            continue
        holding = max(others, key=lambda other: (other.holds_at(moment), not other.is_denial, other.start))
        kind: EndKind = "ended" if holding.is_denial else "corrected" if period.start == period.end else "changed"
        for fact in period.assertions:
            yield get_key(fact), Ending(holding.assertions[0], kind, max(holding.start, period.start))


def _replaces(other: Period, period: Period, moment: datetime, is_single: bool) -> bool:
    """Return whether a period says something else of the same, later, or now if the other one begins later."""
    one, was = other.assertions[0], period.assertions[0]
    if other is period or other.start > moment:
        return False
    is_same = normalise(one.object) == normalise(was.object)
    if not is_single and not (is_same and one.is_denial != was.is_denial):
        return False
    return other.holds_at(moment) if period.start > moment else make_order_key(one) > make_order_key(was)


# -- which passages ---------------------------------------------------------------------------------------


def _judge_passages(
    query: Query,
    facts: Mapping[str, Sequence[Fact]],
    endings: Mapping[tuple[str, str], Ending],
    moment: datetime,
) -> Superseding:
    """Decide for each passage whether the fact that fits the question best was superseded."""
    question = read_question(query, (fact for of_one in facts.values() for fact in of_one))
    found = Superseding()
    for id_, of_one in facts.items():
        fits = {place: question.measure_fit(fact) for place, fact in enumerate(of_one)}
        best = max(fits, key=lambda place: fits[place])
        if fits[best]:
            found.add_fitting(of_one[best], fits[best], _get_ending(of_one[best], endings), moment)
            continue
        ended = [_get_ending(fact, endings) for fact in of_one]
        if ended[0] is not None and all(ended):
            found.endings[id_] = ended[0]
            if not question.relations:
                found.sunk.add(id_)
    return found


def _get_ending(fact: Fact, endings: Mapping[tuple[str, str], Ending]) -> Ending | None:
    """Return what ended a fact, unless the same passage says it."""
    ending = endings.get(get_key(fact))
    return ending if ending and ending.fact.passage_id != fact.passage_id else None
