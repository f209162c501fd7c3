"""Compare turns of a conversation with a question: their words and vectors with those of the turns around them.

A short answer such as "On the first of March." is about what the turns before it say. So the words and vectors of
neighbours are added to those of a turn before it is scored; the longer a turn, the less they count. Scores by words and
vectors are in standard deviations from the mean of the candidates. Pure arithmetic over columns: this module reads
neither the store nor a model, and makes no object for a turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from waylore.spans import Span, asks_when
from waylore.text import split_words, terms
from waylore.types.columns import NO_TIME, Counts, Flags, Numbers, TurnColumns
from waylore.types.knowledge import EPOCH, Vector

# Terms of a question that do not say what is asked for, beside the stop words of `waylore.text`.
ASKING_TERMS = frozenset(terms("should may might much many any some ever since about him s"))
K1 = 0.6  # of BM25, which does not divide by the length of a turn
BRIEF_WORDS = 30  # a longer turn takes less from its neighbours
BEST_OF_SESSION = 3  # turns whose mean score is that of the session
LAST_PLACE = 5  # later places in a session are the same
MIN_ALIKE = 0.7  # cosine of two turns that say much the same
MIN_COVERED = 0.6  # of the words of the question that the older one has
MAX_FARTHER = 0.1  # by which the cosine of the newer one with the question may be lower
NEAR_DAYS = 5.0  # distance in days at which `near` falls to 1/e
MICROSECONDS_OF_DAY = 86_400_000_000
# Weights of the turns at these distances; a negative distance is before the turn.
BEFORE: Mapping[int, float] = MappingProxyType({-1: 0.5, -2: 0.25})
AROUND: Mapping[int, float] = MappingProxyType({-1: 0.5, -2: 0.25, 1: 0.3, 2: 0.15})
WIDE: Mapping[int, float] = MappingProxyType(
    {-1: 0.4, -2: 0.25, -3: 0.2, -4: 0.15, -5: 0.1, -6: 0.1, 1: 0.3, 2: 0.2, 3: 0.1, 4: 0.1}
)
VECTORS: Mapping[int, float] = MappingProxyType({-1: 0.5, -2: 0.25, 1: 0.5, 2: 0.25})

Places: TypeAlias = npt.NDArray[np.intp]
Matrix: TypeAlias = npt.NDArray[np.float64]
Features: TypeAlias = dict[str, Numbers]


@dataclass(frozen=True)
class TurnCandidates:
    """Some of the turns that were read, by their places among them; the others are their neighbours."""

    turns: TurnColumns
    places: Places

    @cached_property
    def starts(self) -> Places:
        """The first turn of the same session and role, for every turn."""
        roles = np.array(self.turns.roles, dtype=np.str_)
        sessions = self.turns.sessions
        is_first = np.ones(len(sessions), np.bool_)
        is_first[1:] = (sessions[1:] != sessions[:-1]) | (roles[1:] != roles[:-1])
        return np.maximum.accumulate(np.where(is_first, np.arange(len(sessions)), 0))

    @cached_property
    def words(self) -> Counts:
        """The length of each candidate in words."""
        return np.array([len(self.turns.texts[place].split()) for place in self.places], np.int64)

    @cached_property
    def brevity(self) -> Numbers:
        """How much the neighbours of each candidate count."""
        return np.minimum(1.0, BRIEF_WORDS / np.maximum(self.words, 1))

    @cached_property
    def neighbours(self) -> Mapping[int, tuple[Places, Flags]]:
        """The turns at each distance of a context, and which of the candidates have one."""
        return {distance: self.find_neighbours(distance) for distance in WIDE}

    def find_neighbours(self, distance: int) -> tuple[Places, Flags]:
        """Return the turns at a distance from the candidates, and which of the candidates have one."""
        at = self.places + distance
        inside = at.clip(0, len(self.starts) - 1)
        return inside, (inside == at) & (self.starts[inside] == self.starts[self.places])

    def add_context(self, table: Matrix, weights: Mapping[int, float]) -> Matrix:
        """Return the rows of the candidates, with the rows of their neighbours added by weight and brevity."""
        context = np.zeros((len(self.places), table.shape[1]), table.dtype)
        for distance, weight in weights.items():
            at, is_there = self.neighbours[distance]
            context += table[at] * (weight * is_there)[:, None].astype(table.dtype)
        return table[self.places] + context * self.brevity[:, None].astype(table.dtype)


def choose_candidates(turns: TurnColumns, listed: Iterable[str], best: Iterable[str], *, reach: int) -> TurnCandidates:
    """Return the turns that a search listed, and up to `reach` turns before and after the `best` of them."""
    numbers = {id_: place for place, id_ in enumerate(turns.ids)}
    own = [numbers[id_] for id_ in listed if id_ in numbers]
    central = TurnCandidates(turns, np.array([numbers[id_] for id_ in best if id_ in numbers], np.intp))
    found = [np.array(own, np.intp)]
    for distance in (d for d in range(-reach, reach + 1) if d):
        at, is_there = central.find_neighbours(distance)
        found.append(at[is_there])
    return TurnCandidates(turns, np.unique(np.concatenate(found)))


def compute_features(
    candidates: TurnCandidates,
    question: str,
    vector: Vector | None,
    spans: Sequence[Span],
    offset: timedelta = timedelta(),
) -> Features:
    """Return the features of the candidates by name. Without a vector there are none by vectors.

    `spans` are the days that the question names, in the timezone with this offset.
    """
    turns = candidates.turns
    named = find_named_speakers(question, turns.speakers)
    words = score_words(candidates, find_asked_terms(turns.terms, named))
    features = {
        **{name: _standardise(words[name]) for name in ("own", "before", "wide")},
        "pairs": _standardise(score_pairs(candidates, question)),
        "session": _standardise(score_sessions(words["around"], turns.sessions[candidates.places])),
        "speaker": np.array([turns.speakers[place] in named for place in candidates.places], np.float64),
        **describe_shape(candidates),
        "when": score_telling(candidates, question),
        "near": score_nearness(turns.at[candidates.places], spans, offset),
    }
    if vector is None or turns.codes.shape[1] != len(vector):
        return features
    return features | {name: _standardise(scores) for name, scores in score_vectors(candidates, vector).items()}


# -- words ---------------------------------------------------------------------------------------------


def find_named_speakers(question: str, speakers: Iterable[str]) -> frozenset[str]:
    """Return the speakers whose first name the question has."""
    asked = set(split_words(question))
    return frozenset(speaker for speaker in set(speakers) if asked.intersection(split_words(speaker)[:1]))


def find_asked_terms(question: Sequence[str], speakers: Iterable[str]) -> Flags:
    """Return which terms of a question say what is asked for: neither asking words nor first names of speakers."""
    names = " ".join(name for speaker in speakers for name in split_words(speaker)[:1])
    left_out = {*terms(names), *ASKING_TERMS}
    return np.array([term not in left_out for term in question], np.bool_)


def score_words(candidates: TurnCandidates, is_asked: Flags) -> dict[str, Numbers]:
    """Return the BM25 score of the candidates: of their own words, and with the words of three kinds of contexts."""
    turns = candidates.turns
    kept = np.flatnonzero(is_asked)
    counts = _count_places(turns.sequence, turns.sizes, len(turns.terms))[:, kept]
    rarity = _measure_rarity(turns.counts[kept], turns.passages)
    contexts: dict[str, Mapping[int, float]] = {"own": {}, "before": BEFORE, "wide": WIDE, "around": AROUND}
    return {name: _saturate(candidates.add_context(counts, weights), rarity) for name, weights in contexts.items()}


def score_pairs(candidates: TurnCandidates, question: str) -> Numbers:
    """Return the BM25 score of neighbouring words of the question that follow each other in a turn or around it.

    A pair has no stored count. Turns with both words are among those that were read, so the pair is counted there.
    """
    turns = candidates.turns
    numbers = {term: place for place, term in enumerate(turns.terms)}
    asked = [numbers[term] for term in terms(question) if term in numbers]
    wanted = np.unique([one * len(numbers) + other for one, other in pairwise(asked)]).astype(np.int64)
    if not len(wanted):
        return np.zeros(len(candidates.places))
    counts = _count_places(_find_pairs(turns, wanted), turns.sizes, len(wanted))
    rarity = _measure_rarity(np.maximum((counts > 0).sum(axis=0), 1), turns.passages)
    return _saturate(candidates.add_context(counts, AROUND), rarity)


def _find_pairs(turns: TurnColumns, wanted: Counts) -> npt.NDArray[np.int32]:
    """Return, for each term of all turns, the place of the pair that it begins among the wanted ones, or -1."""
    sequence = turns.sequence.astype(np.int64)
    pairs = np.full(len(sequence), -1, np.int64)
    is_known = (sequence[:-1] >= 0) & (sequence[1:] >= 0)
    pairs[:-1][is_known] = sequence[:-1][is_known] * len(turns.terms) + sequence[1:][is_known]
    pairs[np.cumsum(turns.sizes)[turns.sizes > 0] - 1] = -1  # the last term of a turn begins no pair
    place = np.searchsorted(wanted, pairs).clip(max=len(wanted) - 1)
    return np.where(wanted[place] == pairs, place, -1).astype(np.int32)


def _count_places(sequence: npt.NDArray[np.int32], sizes: Counts, width: int) -> Matrix:
    """Return how often each turn has each place, one row for a turn."""
    is_known = sequence >= 0
    owners = np.repeat(np.arange(len(sizes)), sizes)[is_known]
    counts = np.bincount(owners * width + sequence[is_known], minlength=len(sizes) * width)
    return counts.astype(np.float64).reshape(len(sizes), width)


def _measure_rarity(counts: Counts, passages: int) -> Numbers:
    rarity: Numbers = np.log1p((np.maximum(passages, counts) - counts + 0.5) / (counts + 0.5))
    return rarity


def _saturate(counts: Matrix, rarity: Numbers) -> Numbers:
    scores: Numbers = (counts * (K1 + 1) / (counts + K1)) @ rarity
    return scores


def score_sessions(scores: Numbers, sessions: Counts) -> Numbers:
    """Return, for each candidate, the mean of the best scores of its session."""
    _, numbers = np.unique(sessions, return_inverse=True)
    order = np.lexsort((-scores, numbers))
    ranked = numbers[order]
    rank = np.arange(len(order)) - np.searchsorted(ranked, ranked)
    best = order[rank < BEST_OF_SESSION]
    total = np.bincount(numbers[best], weights=scores[best])
    means: Numbers = (total / np.bincount(numbers[best]))[numbers]
    return means


# -- vectors -------------------------------------------------------------------------------------------


def score_vectors(candidates: TurnCandidates, vector: Vector) -> dict[str, Numbers]:
    """Return the cosine of the question with each candidate, and with the sum of its vector and those around it."""
    units = _to_units(candidates.turns.codes.astype(np.float32))
    question = _to_units(np.asarray(vector, np.float32)[None])[0]
    mixed = _to_units(candidates.add_context(units, VECTORS))  # type: ignore[arg-type]  # of any precision
    cosines = {"dense": units[candidates.places] @ question, "mean": mixed @ question}
    return {name: np.round(scores.astype(np.float64), 6) for name, scores in cosines.items()}


def _to_units(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    units: npt.NDArray[np.float32] = rows / np.maximum(lengths, np.float32(1e-9))
    return units


# -- turns that say much the same --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComparedTurns:
    """Some turns: when they were said, how alike they are, and how well each answers the question.

    `covered` is the share of the question's words, by rarity, in the turns of the session that were read.
    """

    at: Counts
    alike: Matrix
    covered: Numbers
    cosines: Numbers

    def may_replace(self, old: int, new: int) -> bool:
        """Return whether a turn is newer than another one, says much the same and answers about as well."""
        return bool(
            self.at[new] > self.at[old] != NO_TIME
            and self.alike[old, new] >= MIN_ALIKE
            and self.covered[new] >= MIN_COVERED * self.covered[old]
            and self.cosines[new] >= self.cosines[old] - MAX_FARTHER
        )


def compare_turns(candidates: TurnCandidates, places: Sequence[int], question: str, vector: Vector) -> ComparedTurns:
    """Compare the turns at some places with each other and with a question."""
    turns = candidates.turns
    kept = np.flatnonzero(find_asked_terms(turns.terms, find_named_speakers(question, turns.speakers)))
    counts = _count_places(turns.sequence, turns.sizes, len(turns.terms))[:, kept]
    rarity = _measure_rarity(turns.counts[kept], turns.passages)
    of_session = np.array([(counts[turns.sessions == turns.sessions[place]] > 0).any(axis=0) for place in places])
    units = _to_units(turns.codes[list(places)].astype(np.float32))
    asked = _to_units(np.asarray(vector, np.float32)[None])[0]
    return ComparedTurns(
        turns.at[list(places)],
        (units @ units.T).astype(np.float64),
        of_session @ rarity / max(float(rarity.sum()), 1e-9),
        (units @ asked).astype(np.float64),
    )


# -- shape and time ------------------------------------------------------------------------------------


def describe_shape(candidates: TurnCandidates) -> Features:
    """Return whether a turn is a question, whether it follows one, its length, and its place in the session."""
    texts = candidates.turns.texts
    previous, has_previous = candidates.neighbours[-1]
    place = candidates.places - candidates.starts[candidates.places]
    return {
        "asks": np.array([texts[p].rstrip().endswith("?") for p in candidates.places], np.float64),
        "answers": np.array([texts[p].rstrip().endswith("?") for p in previous], np.float64) * has_previous,
        "length": np.log1p(candidates.words.astype(np.float64)),
        "place": np.minimum(place, LAST_PLACE).astype(np.float64),
    }


def score_telling(candidates: TurnCandidates, question: str) -> Numbers:
    """Return 1 for a turn with an expression of time, if the question asks for a time."""
    is_telling = candidates.turns.tells_time[candidates.places]
    return is_telling.astype(np.float64) if asks_when(question) else np.zeros(len(is_telling))


def score_nearness(at: Counts, spans: Sequence[Span], offset: timedelta = timedelta()) -> Numbers:
    """Return how near the time of each turn is to the days that the question names; 0 if it names none."""
    if not spans:
        return np.zeros(len(at))
    days = (at + offset // timedelta(microseconds=1)) // MICROSECONDS_OF_DAY
    ends = [((span.first - EPOCH.date()).days, (span.last - EPOCH.date()).days) for span in spans]
    away = np.min([np.maximum(np.maximum(first - days, days - last), 0) for first, last in ends], axis=0)
    near: Numbers = np.where(at == NO_TIME, 0.0, np.exp(-away / NEAR_DAYS))
    return near


def _standardise(scores: Numbers) -> Numbers:
    """Return scores in standard deviations from their mean."""
    standard: Numbers = (scores - scores.mean()) / (scores.std() + 1e-9)
    return standard
