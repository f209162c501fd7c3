"""Which entities does the question name? A lookup of its n-grams, and no model.

Every run of up to `longest_name` words is looked up in one call; the longest match wins and no word is used
twice. Words that name a kind of thing ("film", "city") do not link alone. Only where no name is found are the
nearest names asked for. Facts near the question link too: the few that bear on it most lend their ends to the
walk. This stage says what is named, not whether that is worth following: the gate does.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from waylore.config import Linking, Resolution
from waylore.names import is_short, mirrored
from waylore.retrieval.graph.same_as import joins
from waylore.retrieval.graph.similarity import cosines
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import STOP_WORDS, is_unspaced, normalise, occurrences, units
from waylore.types.knowledge import Entity, Fact
from waylore.types.search import Query

KINDS_OF_THINGS = frozenset(
    """born both city country date died film first last more movie name people person place
    same song year""".split()
)
ASKER = "user"  # the entity that the first person stands for, if there is one (S13)
_WORDS = re.compile(r"\w+")
FIRST_PERSON = frozenset("i me my mine myself".split())


@dataclass(frozen=True, slots=True)
class Link:
    """An entity that the question names with so many of its words; with none where its name is only near.

    `over` is the fact by which it is the same as one that is named, where it is not named itself.
    """

    entity: Entity
    words: int
    over: Fact | None = None


@dataclass(frozen=True, slots=True)
class Same:
    """Links that stay, and what is the same as one of them: over which fact, named with how many words."""

    links: tuple[Link, ...]
    over: Mapping[str, tuple[Fact, int]]


def link(query: Query, config: Linking) -> Reads[tuple[Link, ...]]:
    """The entities that a question names (S2), else the nearest by name (S3); in the order configured."""
    ways = {"names": _named, "nearest": _nearest}
    for way in config.ways:
        if found := (yield from ways[way](query, config)):
            return found
    return ()


def _named(query: Query, config: Linking) -> Reads[tuple[Link, ...]]:
    """Entities by the longest names first; who asks, in the first person, if nothing else is named."""
    words = units(normalise(query.text))
    short = {normalise(word) for word in _WORDS.findall(query.text) if is_short(word)}
    spans = dict(_spans(words, config.longest_name, short))
    names = [*dict.fromkeys(spans.values()), ASKER]
    found = yield from read(Store.entities_by_names, names, where=query.where)
    links: list[Link] = []
    used: set[int] = set()
    for (start, length), name in spans.items():
        taken = range(start, start + length)
        if name in found and used.isdisjoint(taken):
            used.update(taken)
            foremost = sorted(found[name], key=lambda entity: (-entity.passages, entity.id))
            links += [Link(entity, length) for entity in foremost[: config.namesakes]]
    if not links and not FIRST_PERSON.isdisjoint(word.strip() for word in words):
        links = [Link(entity, 1) for entity in found.get(ASKER, ())[: config.namesakes]]
    return tuple(links)


def with_same(query: Query, links: Sequence[Link], config: Resolution) -> Reads[tuple[Link, ...]]:
    """The links, and what is the same as one of them; less what is linked by an alias that was retracted."""
    found = yield from same(query, links, config)
    return (*found.links, *(yield from merged(query, found)))


def same(query: Query, links: Sequence[Link], config: Resolution) -> Reads[Same]:
    """What is the same as one of the links."""
    asked = normalise(query.text)
    named = [found for found in links if occurrences(normalise(found.entity.name), asked)] or links
    keys = {found.entity.id: mirrored(found.entity.name) for found in named[: config.links]}
    joined = yield from joins(query, keys, config)
    known = {found.entity.id for found in named}
    over: dict[str, tuple[Fact, int]] = {}
    for found in named:
        for id_, fact in joined.same(found.entity.id).items():
            if id_ not in known:
                over.setdefault(id_, (fact, found.words))
    others = [found for found in links if found.entity.id not in known and found.entity.id not in over]
    kept = [o for o in others if not any(joined.are_parted(id_, o.entity.id) for id_ in known)]
    return Same((*named, *kept), over)


def merged(query: Query, found: Same) -> Reads[tuple[Link, ...]]:
    """Links to what is the same."""
    if not found.over:
        return ()
    entities = yield from read(Store.entities, list(found.over), where=query.where)
    links = [Link(entity, found.over[id_][1], found.over[id_][0]) for id_, entity in entities.items()]
    return tuple(sorted(links, key=lambda link: link.entity.id))


def seeds(query: Query, links: Sequence[Link], facts: Mapping[str, Fact], config: Linking) -> dict[str, float]:
    """Where the walk begins: linked entities and the ends of the best facts."""
    bearing = cosines(query.vector, facts.values())
    best = sorted(facts.values(), key=lambda f: (-bearing[f.id], f.id))[: config.facts]
    lent: dict[str, list[float]] = defaultdict(list)
    for fact in best:
        for end in fact.ends:
            lent[end].append(bearing[fact.id])
    weights = {end: max(sum(given) / len(given), 0.0) for end, given in lent.items()}
    for found in links:
        weights[found.entity.id] = weights.get(found.entity.id, 0.0) + max(found.words, 1)
    return weights


def _spans(words: list[str], longest: int, short: Collection[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """Runs of words that may be names, the longest first: where each begins, how long it is, what it says.

    A word that the question writes as a short form (WHO, IT) is a name, though it is written like a small word.
    """
    for length in range(min(longest, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            name = "".join(words[start : start + length]).strip()
            if name in short or _may_be_a_name(name):
                yield (start, length), name


def _may_be_a_name(name: str) -> bool:
    words = name.split()
    if all(word in STOP_WORDS or word in KINDS_OF_THINGS for word in words):
        return False
    shortest = 2 if is_unspaced(name) else 3
    return len(words) > 1 or len(name) >= shortest or not name.isalpha()


def _nearest(query: Query, config: Linking) -> Reads[tuple[Link, ...]]:
    if query.vector is None:
        return ()
    ranking = yield from read(
        Store.nearest_entities, query.vector, top_k=config.nearest_limit, where=query.where
    )
    near = [scored.id for scored in ranking if scored.score >= config.nearest_threshold]
    entities = yield from read(Store.entities, near, where=query.where)
    return tuple(Link(entities[id_], 0) for id_ in near if id_ in entities)
