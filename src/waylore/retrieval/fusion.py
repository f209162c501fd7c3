"""Merge rankings into one and record the share of each search in every candidate's score.

A candidate that only one search found keeps the share of that search, and with the anchored fusion also has its score
in the other one. No candidate is dropped because only keywords found it, and no hybrid candidate is dropped for a graph
candidate (promise 1). Pure arithmetic: it reads neither the store nor a model.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, repeat
from operator import itemgetter
from typing import NamedTuple, TypeAlias, overload

import numpy as np

from waylore.config import HybridConfig, MergeConfig
from waylore.types.columns import Numbers
from waylore.types.search import Placement, Ranking

Shares: TypeAlias = Mapping[str, Mapping[str, float]]  # of candidates by id, by search
PlaceCandidate: TypeAlias = Callable[[str], Sequence[Placement]]
DOUBT = 1e-6  # distance from the middle of two numbers within which NumPy may round to the other one
MAX_SCALED = 2.0**31  # beyond it the distance cannot be seen


class Placements(Sequence[Placement]):
    """The placements of a candidate, made when they are looked at: few candidates become hits."""

    def __init__(self, id_: str, place: PlaceCandidate, shares: Shares | None) -> None:
        self._id, self._place, self._shares = id_, place, shares

    @cached_property
    def _made(self) -> tuple[Placement, ...]:
        return tuple(self._place(self._id))

    def scale(self, factor: float) -> tuple["Placements", float]:
        """Return the placements with their shares multiplied by a factor, and the sum of these."""
        id_, known = self._id, self._shares
        if known is None:
            total = sum([factor * placement.share for placement in self])
        else:
            total = sum([factor * of[id_] for of in known.values() if id_ in of])
        return Placements(id_, partial(_scale_again, self, factor), None), total

    def __iter__(self) -> Iterator[Placement]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Placement: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Placement]: ...
    def __getitem__(self, place: int | slice) -> Placement | Sequence[Placement]:
        return self._made[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class FusedCandidate(NamedTuple):
    """A candidate with its score and its placement in each search."""

    id: str
    score: float
    placements: Sequence[Placement]


def fuse(
    rankings: Mapping[str, Ranking], config: HybridConfig, *, graph_weight: float = 1.0
) -> tuple[FusedCandidate, ...]:
    """Return one ranking of all candidates by the rankings alone, best first, ties by id (S1, S15).

    Scores are scaled within each ranking; with the fusion "rrf" ranks count instead.
    """
    weights = {"vector": config.vector_weight, "keyword": config.text_weight}
    shares: dict[str, dict[str, float]] = {}
    for search, ranking in rankings.items():
        weight = weights.get(search, graph_weight)
        scaled = _score_ranks(ranking, config.rrf_k) if config.fusion == "rrf" else _scale_scores(search, ranking)
        shares[search] = dict(zip(map(itemgetter(0), ranking), [weight * share for share in scaled], strict=True))
    ranks = number_ranks(rankings)

    def place(id_: str) -> tuple[Placement, ...]:
        found = [(search, ranks[search][id_], of[id_]) for search, of in shares.items() if id_ in of]
        return tuple(Placement(search, rank, rankings[search][rank - 1].score, share) for search, rank, share in found)

    return sort_by_shares(shares, dict.fromkeys(chain(*shares.values()), 0), place)


def fuse_anchored(
    rankings: Mapping[str, Ranking],
    fetched: Mapping[str, Mapping[str, float]],
    config: HybridConfig,
    *,
    unit: float,
) -> tuple[FusedCandidate, ...]:
    """Return one ranking of all candidates by both scores of each, measured from the best, ties by id.

    `fetched` has the scores, by search, of candidates that a ranking does not list. The first `config.candidates` of
    each ranking form a block. It comes before the next block, so that longer rankings do not change the result. The
    best scores are taken from the first block, and a rank in a later block than that of the candidate does not count.
    """
    ranks, size = number_ranks(rankings), config.candidates
    blocks = _number_blocks(ranks.values(), size)
    scores = {search: {**fetched.get(search, {}), **dict(ranking)} for search, ranking in rankings.items()}
    best: dict[str, float] = {}
    shares: dict[str, dict[str, float]] = {}
    for search, of in scores.items():
        best[search] = max([score for id_, score in of.items() if blocks[id_] == 0], default=0.0)
        values = np.fromiter(of.values(), np.float64, len(of))
        is_near = search == "vector"
        measured = _measure_vectors(values, best[search], unit) if is_near else _measure_words(values, best[search])
        measured *= config.vector_weight if is_near else config.text_weight
        shares[search] = dict(zip(of, measured.tolist(), strict=True))

    def place_in(search: str, id_: str) -> Placement:
        rank = ranks[search].get(id_)
        is_late = rank is not None and rank > (blocks[id_] + 1) * size
        score, share = scores[search][id_], shares[search][id_]
        return Placement(search, None if is_late else rank, score, share, "", best[search])

    def place(id_: str) -> tuple[Placement, ...]:
        return tuple(place_in(search, id_) for search, of in scores.items() if id_ in of)

    return sort_by_shares(shares, blocks, place)


def combine_weighted(
    hybrid: Sequence[FusedCandidate], graph: Ranking, config: MergeConfig
) -> tuple[FusedCandidate, ...]:
    """Return the weighted sum of the hybrid and the graph scores (S5)."""
    placed = {f.id: list(scale(f, config.hybrid_weight).placements) for f in hybrid}
    for rank, scored in enumerate(graph, start=1):
        share = config.graph_weight * scored.score
        placed.setdefault(scored.id, []).append(Placement("graph", rank, scored.score, share))
    return sort_by_score(placed)


def scale(candidate: FusedCandidate, factor: float) -> FusedCandidate:
    """Return a candidate whose shares are multiplied by a factor."""
    id_, _, placements = candidate
    if isinstance(placements, Placements):
        scaled, total = placements.scale(factor)
        return FusedCandidate(id_, round(total, 9), scaled)
    made = _scale_placements(placements, factor)
    return FusedCandidate(id_, round(sum([placement.share for placement in made]), 9), made)


def scale_all(candidates: Sequence[FusedCandidate], factor: float) -> list[FusedCandidate]:
    """Return candidates as `scale` does, of one fusion together."""
    first = candidates[0].placements if candidates else ()
    known = first._shares if isinstance(first, Placements) else None
    if known is None or any(getattr(each.placements, "_shares", None) is not known for each in candidates):
        return [scale(candidate, factor) for candidate in candidates]
    ids = [candidate.id for candidate in candidates]
    columns = [[factor * share for share in map(of.get, ids, repeat(0.0))] for of in known.values()]
    totals = [round(sum(row), 9) for row in zip(*columns, strict=True)]
    return [
        FusedCandidate(each.id, total, Placements(each.id, partial(_scale_again, each.placements, factor), None))
        for each, total in zip(candidates, totals, strict=True)
    ]


def sort_by_score(placed: Mapping[str, Sequence[Placement]]) -> tuple[FusedCandidate, ...]:
    """Sort candidates by the sum of their shares, rounded so that ties are equal on every engine."""
    fused = [FusedCandidate(id_, round(sum([p.share for p in ps]), 9), tuple(ps)) for id_, ps in placed.items()]
    return tuple(sorted(fused, key=lambda f: (-f.score, f.id)))


def sort_by_shares(shares: Shares, blocks: Mapping[str, int], place: PlaceCandidate) -> tuple[FusedCandidate, ...]:
    """Sort candidates by block, then by the sum of their shares as `sort_by_score` does. `place` makes placements."""
    columns = [[*map(of.get, blocks, repeat(0.0))] for of in shares.values()]
    totals = [-round(sum(row), 9) for row in zip(*columns, strict=True)]
    ordered = sorted(zip(blocks.values(), totals, blocks, strict=True))
    return tuple([FusedCandidate(id_, -total, Placements(id_, place, shares)) for _, total, id_ in ordered])


def rank_by_score(ids: Iterable[str], scores: Iterable[float], place: PlaceCandidate) -> tuple[FusedCandidate, ...]:
    """Sort candidates by score, ties by id."""
    ordered = sorted(zip([-score for score in scores], ids, strict=True))
    return tuple([FusedCandidate(id_, -score, Placements(id_, place, None)) for score, id_ in ordered])


def share_out(
    ids: Sequence[str], found: Mapping[str, Container[str]], shares: Mapping[str, Numbers]
) -> dict[str, list[float]]:
    """Return the share of each search in each candidate, rounded; 0 if the search did not find it.

    `found` has what each search found. The first search that found a candidate also gets the shares of the searches
    that did not.
    """
    is_found = np.array([[*map(found[search].__contains__, ids)] for search in shares], np.bool_).reshape(
        len(shares), -1
    )
    table, first, places = np.stack(list(shares.values())), is_found.argmax(axis=0), np.arange(len(ids))
    is_given = ~is_found
    is_given[first, places] = True
    given = np.zeros(len(ids))
    for row in np.where(is_given, table, 0.0):
        given += row
    merits = np.where(is_found, table, 0.0)
    merits[first, places] = given
    return dict(zip(shares, round_decimals(merits, 6).tolist(), strict=True))


def round_decimals(values: Numbers, digits: int) -> Numbers:
    """Round numbers as `round` does, which takes a call for each: half to even by the exact decimal value."""
    factor = 10.0**digits
    scaled = values * factor
    whole = np.rint(scaled)
    rounded: Numbers = whole / factor
    doubtful = (np.abs(scaled - whole) > 0.5 - DOUBT) | (np.abs(scaled) > MAX_SCALED)
    for place in zip(*np.nonzero(doubtful), strict=True):
        rounded[place] = round(float(values[place]), digits)
    return rounded


def _scale_placements(placements: Iterable[Placement], factor: float) -> tuple[Placement, ...]:
    return tuple(
        [
            Placement(search, rank, score, factor * share, query, best)
            for search, rank, score, share, query, best, _ in placements
        ]
    )


def _scale_again(placements: Sequence[Placement], factor: float, _: str) -> tuple[Placement, ...]:
    return _scale_placements(placements, factor)


def number_ranks(rankings: Mapping[str, Ranking]) -> dict[str, dict[str, int]]:
    """Return the rank of each candidate by search."""
    return {
        search: dict(zip(map(itemgetter(0), ranking), range(1, len(ranking) + 1), strict=True))
        for search, ranking in rankings.items()
    }


def _number_blocks(ranks: Iterable[Mapping[str, int]], size: int) -> dict[str, int]:
    """Return the first block of `size` places in which each candidate is listed, from 0 on."""
    of_searches = list(ranks)
    if max(map(len, of_searches), default=0) <= size:
        return dict.fromkeys(chain(*of_searches), 0)
    blocks: dict[str, int] = {}
    for id_, rank in (item for of_search in of_searches for item in of_search.items()):
        block = (rank - 1) // size
        blocks[id_] = min(blocks.get(id_, block), block)
    return blocks


def _measure_vectors(scores: Numbers, best: float, unit: float) -> Numbers:
    """Return how near cosines are to the best, from 1 down to 0 at one unit below it."""
    return np.clip(1.0 - (best - scores) / unit, 0.0, 1.0)


def _measure_words(scores: Numbers, best: float) -> Numbers:
    """Return the ratio of BM25 scores to the best."""
    return np.minimum(scores / best, 1.0) if best > 0 else np.zeros(len(scores))


def _scale_scores(search: str, ranking: Ranking) -> list[float]:
    """Scale scores to 0..1. BM25 starts at zero, so that the last hit of a rare word keeps its share."""
    scores = [scored.score for scored in ranking]
    low, high = 0.0 if search == "keyword" else min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _score_ranks(ranking: Ranking, k: int) -> list[float]:
    """Return 1 / (k + rank) for each rank (S15)."""
    return [1.0 / (k + rank) for rank in range(1, len(ranking) + 1)]
