"""Match predicates in the words of their authors: `depends on` also finds `needs`, `relies on` and `is built on`.

Predicates are compared by the stems of their words and by a table of synonyms (`synonyms.toml`). If neither knows them,
their vectors decide: a predicate matches if it is clearly nearer to the one asked for than both are to the other
relations of the table. Vectors hold apart opposites badly, so the margin is wide, and what misses it is listed instead.
"""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, TypeAlias

from waylore.protocols import Vectors
from waylore.relations import is_denial
from waylore.text import normalise, terms
from waylore.types.knowledge import Fact
from waylore.types.relations import PredicateCount

MARGIN = 0.07  # of the cosine of two predicates above that of each with any other relation
MAX_UNMATCHED = 10  # predicates that are listed although they do not match
PASSIVE = "by"  # the last word of a predicate that leads from object to subject
SMALL = frozenset(
    """a an the is are was were be been being has have had do does did its their will can also now still currently
    directly indirectly mainly mostly heavily strongly partly usually primarily info details metadata spec""".split()
)
PREPOSITIONS = frozenset("on in at to of for from with into as".split())
NEGATING = ("dis", "un", "non", "in")
Match = Literal["same", "inverse"]
Embed: TypeAlias = Callable[[Sequence[str]], Vectors]
Form: TypeAlias = tuple[tuple[str, ...], bool]  # the stems of a predicate, and whether it is a passive


class PredicateMatcher:
    """Decides which predicates state the relations that a caller asks for; without any, all do."""

    def __init__(self, asked: Sequence[str], embed: Embed | None) -> None:
        self._asked = [name_predicate(predicate) for predicate in asked]
        self._spelled = [normalise(predicate) for predicate in asked]
        self._embed = embed
        self._known: dict[str, Match | None] = {}
        self._cosines: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._spellings: dict[str, dict[str, None]] = defaultdict(dict)

    @property
    def is_asked(self) -> bool:
        """Whether the caller asks for predicates."""
        return bool(self._asked)

    @property
    def spellings(self) -> list[str]:
        """The predicates that match, as facts spell them, and those that were asked for."""
        matching = [name for name, match in self._known.items() if match]
        return [*self._spelled, *(each for name in matching for each in self._spellings[name])]

    def learn(self, facts: Iterable[Fact]) -> None:
        """Classify the predicates of facts that are new, and count the facts."""
        fresh: dict[str, None] = {}
        for fact in facts:
            if fact.id not in self._seen:
                self._seen.add(fact.id)
                name = name_relation(fact)
                self._counts[name] += 1
                self._spellings[name].setdefault(fact.predicate)
                fresh |= {} if name in self._known else {name: None}
        self._known |= {name: self._compare(name) for name in fresh}
        undecided = [name for name in fresh if self._asked and not self._known[name] and not is_denial(name)]
        if self._embed and undecided:
            self._compare_vectors(self._embed, undecided)

    def find(self, fact: Fact) -> Match | None:
        """Return how a fact whose predicate was learned states the relation; None if it does not."""
        return self._known[name_relation(fact)]

    def count(self, found: Iterable[Fact]) -> tuple[PredicateCount, ...]:
        """Return the predicates of facts that were found, the most frequent first."""
        return self._sort(Counter(map(name_relation, found))) if self._asked else ()

    def count_matched(self) -> tuple[PredicateCount, ...]:
        """Return the predicates that match, the most frequent first."""
        matched = Counter({name: number for name, number in self._counts.items() if self._known[name]})
        return self._sort(matched) if self._asked else ()

    def _sort(self, counts: Counter[str]) -> tuple[PredicateCount, ...]:
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple(self._make_count(name, number) for name, number in ordered)

    def count_unmatched(self) -> tuple[PredicateCount, ...]:
        """Return the predicates that do not match, the nearest first."""
        others = [name for name, match in self._known.items() if not match]
        nearest = sorted(others, key=lambda name: (-self._cosines.get(name, -1.0), -self._counts[name], name))
        return tuple(self._make_count(name, self._counts[name]) for name in nearest[:MAX_UNMATCHED])

    def _make_count(self, name: str, number: int) -> PredicateCount:
        return PredicateCount(next(iter(self._spellings[name])), number, self._known[name] == "inverse")

    def _compare(self, name: str) -> Match | None:
        if is_denial(name):
            return None
        if name in self._spelled:
            return "same"  # a caller who asks for the column `Chairs` means the key `chairs` too
        matches = [compare_predicates(asked, name) for asked in self._asked]
        return next(filter(None, matches), None) if self._asked else "same"

    def _compare_vectors(self, embed: Embed, names: Sequence[str]) -> None:
        """Compare predicates by their vectors, those that the table does not hold apart."""
        references = [name for name in _load_references() if name not in self._asked]
        vectors = embed([*self._asked, *references, *names])
        asked, others, own = _split(vectors, len(self._asked), len(references))
        near = own @ asked.T
        floors = (others @ asked.T).max(axis=0), (own @ others.T).max(axis=1)
        for place, name in enumerate(names):
            best = int(near[place].argmax())
            cosine = float(near[place, best])
            self._cosines[name] = cosine
            is_near = cosine - MARGIN >= max(float(floors[0][best]), float(floors[1][place]))
            if is_near and not _are_apart(self._asked[best], name):
                self._known[name] = "same"


def _split(vectors: Vectors, *sizes: int) -> tuple[Vectors, Vectors, Vectors]:
    first, second = sizes
    return vectors[:first], vectors[first : first + second], vectors[first + second :]


def name_relation(fact: Fact) -> str:
    """Return the normalised predicate of a fact, without the name of its subject: `Search is built on` has one."""
    return name_predicate(fact.predicate).removeprefix(f"{normalise(fact.subject)} ")


def name_predicate(predicate: str) -> str:
    """Return a normalised predicate, whether a fact has it or a caller asks for it.

    A single word with a capital is a heading or a column, so `Chairs` is the plural of chair and not the verb.
    """
    name = normalise(predicate)
    noun = name.removesuffix("s")
    return noun if predicate[:1].isupper() and noun in _load_groups()[0] else name


# -- the words -----------------------------------------------------------------------------------------


@lru_cache(maxsize=16_384)
def compare_predicates(asked: str, name: str) -> Match | None:
    """Return whether a predicate states the same relation as another one, or its inverse; both are normalised."""
    one, other = _get_form(asked), _get_form(name)
    groups, others = _find_groups(asked), _find_groups(name)
    shared = sorted(groups.keys() & others.keys())
    if asked == name or shared:
        return "same" if asked == name or groups[shared[0]] == others[shared[0]] else "inverse"
    if one == other or (not groups and not one[1] and one[0] == other[0][:-1] and other[0][-1] in PREPOSITIONS):
        return "same"
    return "inverse" if one[0] == other[0] else None


def is_in_table(predicate: str) -> bool:
    """Return whether the table has a predicate, by its stems."""
    return bool(_find_groups(normalise(predicate)))


def _are_apart(asked: str, name: str) -> bool:
    """Return whether the table knows both predicates, or one is the other with a prefix that negates it."""
    if _find_groups(asked) and _find_groups(name):
        return True
    one, other = _get_form(asked), _get_form(name)
    return any(f"{prefix}{a}" == b or a == f"{prefix}{b}" for prefix in NEGATING for a in one[0] for b in other[0])


@lru_cache(maxsize=16_384)
def _get_form(name: str) -> Form:
    """Return the stems of a normalised predicate with its prepositions, and whether it is a passive."""
    kept = _drop_small_words(name)
    is_passive = len(kept) > 1 and kept[-1] == PASSIVE
    stems = [stem for word in kept[: len(kept) - is_passive] for stem in terms(word) or [word]]
    return tuple(stems), is_passive


def _drop_small_words(name: str) -> list[str]:
    words = name.replace(" upon", " on").split()
    return [word for word in words if word not in SMALL] or words


def _find_groups(name: str) -> Mapping[int, bool]:
    """Return the numbers of the relations of a predicate in the table, and whether it states the inverse of each.

    `owner` and `owns` have one stem, so a predicate that the table spells out counts as it stands there.
    """
    spelled, formed = _load_groups()
    kept = _drop_small_words(name)
    if len(kept) > _count_words():
        return {}
    return spelled.get(" ".join(kept)) or formed.get(_get_form(name), {})


@cache
def _count_words() -> int:
    """Return how many words a predicate of the table has at most; a form has a stem or more for each but the last."""
    spelled, formed = _load_groups()
    return max(*(len(phrase.split()) for phrase in spelled), *(len(stems) + 1 for stems, _ in formed))


@cache
def _load_groups() -> tuple[Mapping[str, Mapping[int, bool]], Mapping[Form, Mapping[int, bool]]]:
    """Return the relations of the table by phrase and by the form of a phrase."""
    spelled: dict[str, dict[int, bool]] = {}
    formed: dict[Form, dict[int, bool]] = {}
    for number, row in enumerate(_load_table()):
        for is_inverse, phrases in enumerate((row["phrases"], row.get("inverse", ()))):
            for name in map(normalise, phrases):
                spelled.setdefault(" ".join(_drop_small_words(name)), {})[number] = bool(is_inverse)
                formed.setdefault(_get_form(name), {}).setdefault(number, bool(is_inverse))
    return spelled, formed


@cache
def _load_references() -> tuple[str, ...]:
    """Return one phrase of each relation of the table."""
    return tuple(normalise(row["phrases"][0]) for row in _load_table())


@cache
def _load_table() -> Sequence[Mapping[str, Sequence[str]]]:
    table = tomllib.loads(files("waylore.retrieval.relations").joinpath("synonyms.toml").read_text("utf-8"))
    rows: Sequence[Mapping[str, Sequence[str]]] = table["relation"]
    return rows
