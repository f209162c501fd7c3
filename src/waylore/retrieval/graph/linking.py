"""Find the entities that a question names, by looking up its n-grams. No model is called.

Every run of up to `max_name_words` words is looked up in one read; the longest match wins and no word is used
twice. An ordinary word (`waylore.words`) does not link alone, unless the question writes it as a name or a caller
stored an entity of that spelling; entities that rules read as code or as a plain term do not count. Only if no name is
found, the entities with the nearest names are used. The facts most similar to the question link too: their ends
become seeds of the walk. This module does not decide whether the graph is used; the gate does.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from waylore.config import LinkingConfig, ResolutionConfig
from waylore.names import is_short, list_matching_keys
from waylore.retrieval.graph.same_as import find_merges
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import STOP_WORDS, count_occurrences, is_unspaced, normalise, split_units
from waylore.types.columns import FactColumns
from waylore.types.knowledge import SOURCES, USER_NAME, Entity, Fact
from waylore.types.search import Query
from waylore.words import DEFAULT_LANGUAGE, OrdinaryWords, detect_language, load_words

_WORDS = re.compile(r"\w+")
_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|„([^“]+)“")
FIRST_PERSON = frozenset("i me my mine myself".split())


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """An entity that the question names.

    `words` is the number of words that name it, 0 if its name is only near the question. If the question names
    another entity that is the same, `same_as` is the fact that says so.
    """

    entity: Entity
    words: int
    same_as: Fact | None = None


@dataclass(frozen=True, slots=True)
class SameEntities:
    """The links that stay, and the entities that are the same as one of them.

    `same_as` has, by id of such an entity, the fact that says so and the number of words of the link.
    """

    links: tuple[LinkedEntity, ...]
    same_as: Mapping[str, tuple[Fact, int]]


def link_entities(query: Query, config: LinkingConfig) -> Reads[tuple[LinkedEntity, ...]]:
    """Return the entities that a question names (S2), else the nearest by name (S3), as configured."""
    ways = {"names": _find_named, "nearest": _find_nearest}
    for way in config.ways:
        if links := (yield from ways[way](query, config)):
            return links
    return ()


def _find_named(query: Query, config: LinkingConfig) -> Reads[tuple[LinkedEntity, ...]]:
    """Return entities, longest names first.

    The user means the user entity of memories, and so does the first person if no name is found.
    """
    words = split_units(normalise(query.text))
    ordinary = load_words(detect_language(Counter(word.strip() for word in words)) or DEFAULT_LANGUAGE)
    written = find_written_names(query.text, ordinary)
    spans = dict(_list_spans(words, config.max_name_words, written, ordinary))
    doubtful = {name for name in spans.values() if ordinary.is_ordinary(name)} - written
    person = query.where.user or USER_NAME
    names = [*dict.fromkeys(spans.values()), person]
    by_name = yield from read(Store.entities_by_names, names, where=query.where)
    links: list[LinkedEntity] = []
    used: set[int] = set()
    for (start, length), name in spans.items():
        positions = range(start, start + length)
        entities = [entity for entity in by_name.get(name, ()) if name not in doubtful or _is_meant(entity, name)]
        if entities and used.isdisjoint(positions):
            used.update(positions)
            most_frequent = sorted(entities, key=lambda entity: (-entity.passages, entity.id))
            links += [LinkedEntity(entity, length) for entity in most_frequent[: config.max_entities_per_name]]
    said = {word.strip() for word in words}
    if USER_NAME in said or (not links and said & FIRST_PERSON):
        users = by_name.get(person, ())[: config.max_entities_per_name]
        links += [link for link in (yield from _link_user(query, users, config)) if link not in links]
    return tuple(links)


def _link_user(query: Query, users: Sequence[Entity], config: LinkingConfig) -> Reads[tuple[LinkedEntity, ...]]:
    """Return links to the entities that memories are about: they have a type, or a fact that no file states.

    A page that explains the class `User` does not speak of the person who asks.
    """
    if not users:
        return ()
    ids = [user.id for user in users]
    facts = yield from read(
        Store.facts_of_entities, ids, per_entity=config.facts_per_entity, as_of=query.as_of, where=query.where
    )
    remembered = {
        facts.of[place] for place, source in enumerate(facts.sources.tolist()) if SOURCES[int(source)] != "file"
    }
    is_known = {user.id: user.id in remembered or user.type not in {"", "code"} for user in users}
    return tuple(LinkedEntity(user, 1) for user in users if is_known[user.id])


def add_merged_entities(
    query: Query, links: Sequence[LinkedEntity], config: ResolutionConfig
) -> Reads[tuple[LinkedEntity, ...]]:
    """Return the links and the entities that are the same as one of them.

    A link by an alias that was retracted is dropped.
    """
    same = yield from find_same_entities(query, links, config)
    return (*same.links, *(yield from load_merged_entities(query, same)))


def find_same_entities(query: Query, links: Sequence[LinkedEntity], config: ResolutionConfig) -> Reads[SameEntities]:
    """Find the entities that are the same as one of the links."""
    text = normalise(query.text)
    named = [link for link in links if count_occurrences(normalise(link.entity.name), text)] or links
    keys = {link.entity.id: list_matching_keys(link.entity.name) for link in named[: config.max_linked]}
    merges = yield from find_merges(query, keys, config)
    known = {link.entity.id for link in named}
    same_as: dict[str, tuple[Fact, int]] = {}
    for link in named:
        for id_, fact in merges.find_same(link.entity.id).items():
            if id_ not in known:
                same_as.setdefault(id_, (fact, link.words))
    others = [link for link in links if link.entity.id not in known and link.entity.id not in same_as]
    remaining = [o for o in others if not any(merges.are_distinct(id_, o.entity.id) for id_ in known)]
    return SameEntities((*named, *remaining), same_as)


def load_merged_entities(query: Query, same: SameEntities) -> Reads[tuple[LinkedEntity, ...]]:
    """Return links to the entities that are the same."""
    if not same.same_as:
        return ()
    entities = yield from read(Store.entities, list(same.same_as), where=query.where)
    links = [LinkedEntity(entity, same.same_as[id_][1], same.same_as[id_][0]) for id_, entity in entities.items()]
    return tuple(sorted(links, key=lambda link: link.entity.id))


def weigh_seeds(
    query: Query, links: Sequence[LinkedEntity], facts: FactColumns, config: LinkingConfig
) -> dict[str, float]:
    """Return the weights of the entities where the walk starts: links and the ends of the best facts."""
    cosines = facts.compute_cosines(query).tolist()
    best = sorted(range(facts.size), key=lambda place: (-cosines[place], facts.ids[place]))[: config.max_facts]
    end_cosines: dict[str, list[float]] = defaultdict(list)
    for place in best:
        for end in filter(None, (facts.subjects[place], facts.objects[place])):
            end_cosines[end].append(cosines[place])
    weights = {end: max(sum(values) / len(values), 0.0) for end, values in end_cosines.items()}
    for link in links:
        weights[link.entity.id] = weights.get(link.entity.id, 0.0) + max(link.words, 1)
    return weights


def _list_spans(
    words: list[str], longest: int, written: Collection[str], ordinary: OrdinaryWords
) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield runs of words that may be names, longest first: start and length of the run, and its text.

    Words that the question writes as names are names, although they are also frequent words (WHO, IT, Fly).
    """
    for length in range(min(longest, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            name = "".join(words[start : start + length]).strip()
            is_frequent = length == 1 < len(words) and name in ordinary.frequent
            if name in written or (_is_possible_name(name) and not is_frequent):
                yield (start, length), name


def _is_meant(entity: Entity, word: str) -> bool:
    """Return whether an ordinary word means an entity: it is spelled so, and not only read as code or as a term."""
    return entity.name == word and entity.type not in {"code", "term", "module"}


def find_written_names(question: str, ordinary: OrdinaryWords) -> set[str]:
    """Return the words that a question writes as names, normalised: short forms, quoted and capitalised words.

    The first word of a sentence does not count, a noun of a language that capitalises nouns does not, and capitals
    do not if most words have one.
    """
    found = {normalise(quoted) for match in _QUOTED.finditer(question) for quoted in filter(None, match.groups())}
    words = list(_WORDS.finditer(question))
    capital = [word for word in words if word[0][0].isupper()]
    found |= {normalise(word[0]) for word in words if is_short(word[0])}
    if 2 * len(capital) <= len(words):
        inside = {normalise(word[0]) for word in capital if not _is_first(question, word.start())}
        found |= inside - STOP_WORDS - ordinary.nouns
    return found


def _is_first(question: str, place: int) -> bool:
    """Return whether a word at a place begins a sentence."""
    before = question[:place].rstrip(" \t\n\"'“‘«„([")
    return not before or before[-1] in ".!?:"


def _is_possible_name(name: str) -> bool:
    words = name.split()
    if STOP_WORDS.issuperset(words):
        return False
    return len(words) > 1 or len(name) > 2 or not name.isalpha() or (len(name) == 2 and is_unspaced(name))


def _find_nearest(query: Query, config: LinkingConfig) -> Reads[tuple[LinkedEntity, ...]]:
    if query.vector is None:
        return ()
    ranking = yield from read(Store.nearest_entities, query.vector, top_k=config.nearest_limit, where=query.where)
    near = [scored.id for scored in ranking if scored.score >= config.nearest_threshold]
    entities = yield from read(Store.entities, near, where=query.where)
    return tuple(LinkedEntity(entities[id_], 0) for id_ in near if id_ in entities)
