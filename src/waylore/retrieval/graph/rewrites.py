"""Write a question again for what a passage leaves open, and compute the features that such rewrites give candidates.

A rewrite is the question, with the words that a good candidate covers replaced by the name of an entity that the
candidate leads to: "When did the Admiral Twin open in the city where the Philbrook Museum is located?" becomes "When
did the Admiral Twin open in the city Tulsa". A rewrite has only words of the caller and one name, as a passage that the
caller may see writes it: no alias, description or display name. This module calls no model and reads no store.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from waylore.config import DeepConfig
from waylore.protocols import Vectors
from waylore.retrieval.graph.coverage import find_best_at
from waylore.retrieval.graph.features import Columns, Pool, invert_ranks
from waylore.text import terms
from waylore.types.columns import Numbers
from waylore.types.search import Query

REWRITE_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "rewrite_cosine": "rewrite",  # the best cosine of a rewrite and the candidate, without rewrites that it gave
        "rewrite_gain": "rewrite",  # minus its cosine to the question
        "rewrite_named": "rewrite",  # the best cosine of a rewrite whose entity the candidate mentions; 0 if none
        "rewrite_named_gain": "rewrite",  # minus its cosine to the question; -0.2 if none
        "rewrite_own": "rewrite",  # the best cosine of a rewrite whose entity the candidate is about; 0 if none
        "rewrite_rank": "rewrite",  # 1 / rank by `rewrite_cosine`
        "rewrite_best_rank": "rewrite",  # the best 1 / rank by one rewrite
        "rewrite_vote": "rewrite",  # the mean of 1 / rank by all rewrites, weighted by their choice
        "rewrite_fact": "rewrite",  # the best cosine of a rewrite and a fact that the candidate states
        "rewrite_source_odds": "rewrite",  # the log-odds of the candidate that gave the best rewrite
        "rewrite_choice": "rewrite",  # the log-odds of the choice of that rewrite
        "is_rewritten": "rewrite",  # whether only a rewrite found the candidate
    }
)
CHOICE_FEATURES = (
    "odds",  # the log-odds of the source
    "best_fact",  # the best cosine of the question and a fact of the source about the entity
    "fact_coverage",  # the best coverage of such a fact
    "candidates",  # the logarithm of the number of candidates that mention the entity
    "is_own",  # whether the source is about the entity
    "named_share",  # the share of the entity's terms that the question has
    "has_digit",
    "terms",  # the number of the entity's terms, at most 6
    "activation",  # the logarithm of the entity's activation in the walk
    "facts",  # the logarithm of 1 + the number of the source's facts about the entity
    "leads_on",  # whether another candidate is about the entity
    "capitals",  # the share of the name's words that begin with a capital; 1 in scripts without capitals
)
UNNAMED_GAIN = -0.2
BEFORE_NAMES = frozenset("the a an where which that who whose".split())
MAX_GAP = 2  # stop words between covered words that are replaced together
_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten question, the candidate and the entity that it comes from, and the log-odds of its choice."""

    text: str
    source: int
    entity: str
    name: str
    choice: float


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sources with entities that they lead to, by their names in the source, and the features of their choice."""

    sources: tuple[int, ...]
    entities: tuple[str, ...]
    names: tuple[str, ...]
    columns: Columns


# -- choosing ------------------------------------------------------------------------------------------


def find_pairs(
    question: str, pool: Pool, odds: Numbers, cosines: Numbers, active: Mapping[str, float], config: DeepConfig
) -> Pairs:
    """Return the entities that the best candidates state facts about, with the features of their choice.

    `cosines` are those of the question and the facts, `active` has the activation of entities in the walk.
    """
    asked, mentioned, own = {*terms(question)}, Counter(pool.mentions.entities), _map_own(pool)
    covered = pool.coverage.facts @ pool.coverage.weights
    rows: list[list[float]] = []
    found: list[tuple[int, str, str]] = []
    for source in np.argsort(-odds, kind="stable")[: config.sources].tolist():
        for entity, (name, facts) in _list_entities(pool, source, config.facts_per_source).items():
            of_name = terms(name)
            if not of_name:
                continue
            about = own.get(entity, set())
            words = [word for word in _WORD.findall(name) if word.lower() != word.upper()]
            found.append((source, entity, name))
            rows.append(
                [
                    float(odds[source]),
                    max(float(cosines[fact]) for fact in facts),
                    max(float(covered[fact]) for fact in facts),
                    float(np.log1p(mentioned[entity])),
                    float(source in about),
                    sum(term in asked for term in of_name) / len(of_name),
                    float(any(letter.isdigit() for letter in name)),
                    float(min(len(of_name), 6)),
                    float(np.log(active.get(entity, 0.0) + 1e-5)),
                    float(np.log1p(len(facts))),
                    float(bool(about - {source})),
                    sum(word[0].isupper() for word in words) / len(words) if words else 1.0,
                ]
            )
    table = np.array(rows, np.float64).reshape(len(rows), len(CHOICE_FEATURES))
    sources, entities, names = zip(*found, strict=True) if found else ((), (), ())
    return Pairs(sources, entities, names, dict(zip(CHOICE_FEATURES, table.T, strict=True)))


def _map_own(pool: Pool) -> dict[str, set[int]]:
    """Return the candidates that are about each entity."""
    own: dict[str, set[int]] = {}
    for row in np.flatnonzero(pool.mentions.is_own).tolist():
        own.setdefault(pool.mentions.entities[row], set()).add(int(pool.mentioning[row]))
    return own


def _list_entities(pool: Pool, source: int, limit: int) -> dict[str, tuple[str, list[int]]]:
    """Return the ends of the facts that a candidate states: the name in the first fact, and the places of facts."""
    found: dict[str, tuple[str, list[int]]] = {}
    for fact in np.flatnonzero(pool.stating == source)[:limit].tolist():
        subject, _, object_ = pool.facts.get_words(fact)
        ends = {pool.facts.subjects[fact]: subject, pool.facts.objects[fact]: object_}
        for entity, name in ends.items():
            if entity:
                found.setdefault(entity, (name, []))[1].append(fact)
    return found


def choose_rewrites(question: str, pool: Pool, pairs: Pairs, scores: Numbers, config: DeepConfig) -> list[Rewrite]:
    """Return the rewrites of the pairs with the best scores, each text once; ties in the order of the pairs."""
    counts: Counter[int] = Counter()
    chosen: dict[str, Rewrite] = {}
    for row in np.argsort(-scores, kind="stable").tolist():
        source, name = pairs.sources[row], pairs.names[row]
        if counts[source] < config.per_source:
            text = write_rewrite(question, _list_covered(pool, source), name, config.max_words)
            if text.casefold() not in chosen:
                chosen[text.casefold()] = Rewrite(text, source, pairs.entities[row], name, float(scores[row]))
                counts[source] += 1
        if len(chosen) == config.rewrites:
            break
    return list(chosen.values())


def write_all(question: str, pool: Pool, pairs: Pairs, config: DeepConfig) -> list[str]:
    """Return the rewrite of every pair, to fit the choice."""
    rows = zip(pairs.sources, pairs.names, strict=True)
    return [write_rewrite(question, _list_covered(pool, source), name, config.max_words) for source, name in rows]


def _list_covered(pool: Pool, source: int) -> set[str]:
    return {term for term, has in zip(pool.coverage.terms, pool.coverage.texts[source], strict=True) if has}


# -- writing -------------------------------------------------------------------------------------------


def write_rewrite(question: str, covered: Collection[str], name: str, max_words: int) -> str:
    """Replace the longest run of covered words in a question by a name; without one, append the name."""
    words = list(_WORD.finditer(question))
    stems = [terms(word.group()) for word in words]
    is_covered = [bool(of_one) and all(stem in covered for stem in of_one) for of_one in stems]
    runs = _find_runs(is_covered, [not of_one for of_one in stems])
    if not runs:
        text = f"{question.rstrip('? ')} {name}"
    else:
        first, last = max(runs, key=lambda run: (sum(is_covered[run[0] : run[1] + 1]), run))
        first -= sum(1 for _ in takewhile(lambda word: word.group().lower() in BEFORE_NAMES, reversed(words[:first])))
        text = f"{question[: words[first].start()]}{name} {question[words[last].end() :]}"
    return " ".join(text.split()[:max_words]).strip(" ?")


def _find_runs(is_covered: Sequence[bool], is_stop: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the first and the last word of each run of covered words, joined over a few stop words."""
    runs: list[tuple[int, int]] = []
    for place in (place for place, covered in enumerate(is_covered) if covered):
        if runs and place - runs[-1][1] <= MAX_GAP + 1 and all(is_stop[runs[-1][1] + 1 : place]):
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


# -- judging -------------------------------------------------------------------------------------------


def compute_rewrite_features(
    pool: Pool,
    cosine: Numbers,
    odds: Numbers,
    rewrites: Sequence[Rewrite],
    vectors: Vectors,
    known: int,
    query: Query,
) -> tuple[dict[str, Numbers], npt.NDArray[np.int64]]:
    """Return the features of candidates that rewrites give, and the number of the best rewrite of each.

    `cosine` and `odds` are those of the candidates and the question. Only rewrites found the candidates after `known`.
    """
    size, sources = len(pool.ids), np.array([rewrite.source for rewrite in rewrites])
    choices = np.array([rewrite.choice for rewrite in rewrites])
    near = query.map_cosines(np.einsum("ij,kj->ik", vectors, pool.vectors).astype(np.float64))
    near[np.arange(len(rewrites)), sources] = -1.0  # a rewrite says nothing about its own source
    named, own = _mark_mentions(pool, rewrites)
    best, of_named = near.max(axis=0), np.where(named, near, 0.0).max(axis=0)
    ranks = 1.0 + np.argsort(np.argsort(-near, axis=1, kind="stable"), axis=1)
    belief = 1.0 / (1.0 + np.exp(-choices))
    number = near.argmax(axis=0)
    columns = {
        "rewrite_cosine": best,
        "rewrite_gain": best - cosine,
        "rewrite_named": of_named,
        "rewrite_named_gain": np.where(of_named > 0, of_named - cosine, UNNAMED_GAIN),
        "rewrite_own": np.where(own, near, 0.0).max(axis=0),
        "rewrite_rank": invert_ranks(best),
        "rewrite_best_rank": (1.0 / ranks).max(axis=0),
        "rewrite_vote": (belief[:, None] / ranks).sum(axis=0) / (belief.sum() + 1e-9),
        "rewrite_fact": _find_best_facts(pool, sources, vectors, query),
        "rewrite_source_odds": odds[sources][number],
        "rewrite_choice": choices[number],
        "is_rewritten": (np.arange(size) >= known).astype(np.float64),
    }
    return columns, number


def _mark_mentions(pool: Pool, rewrites: Sequence[Rewrite]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return, for each rewrite, which candidates mention its entity, and which are about it."""
    named, own = np.zeros((2, len(rewrites), len(pool.ids)), np.bool_)
    for number, rewrite in enumerate(rewrites):
        at = [row for row, entity in enumerate(pool.mentions.entities) if entity == rewrite.entity]
        named[number, pool.mentioning[at]] = True
        own[number, pool.mentioning[at]] = pool.mentions.is_own[at]
    return named, own


def _find_best_facts(pool: Pool, sources: npt.NDArray[np.int64], vectors: Vectors, query: Query) -> Numbers:
    """Return the best cosine of a fact that each candidate states and a rewrite of another candidate."""
    rows = np.flatnonzero(pool.facts.has_vector)
    if not len(rows):
        return np.zeros(len(pool.ids))
    near = query.map_cosines(np.einsum("ij,kj->ik", vectors, pool.facts.take_vectors(rows)).astype(np.float64))
    stating = pool.stating[rows]
    near[sources[:, None] == stating[None, :]] = 0.0
    return find_best_at(stating, near.max(axis=0), len(pool.ids))
