"""Rank turns of conversations: the recipe `conversation`.

The best turns of both searches and the turns beside them are ranked by a weighted sum of features, which compare each
turn, with the turns around it, to the question (`turn_features`). Passages that are no turns keep their places in the
order of hybrid search, and turns take the places of turns. Without turns the order is that of hybrid search.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from waylore.config import ConversationConfig, Weights
from waylore.recipes import Recipe
from waylore.retrieval.fusion import FusedCandidate
from waylore.retrieval.graph.state import GraphQuery, GraphResult
from waylore.retrieval.hybrid import rank_hybrid
from waylore.retrieval.turn_features import WIDE, Features, choose_candidates, compute_features
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.types.search import Placement, Ranking

DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "own": "words of the turn",
        "before": "words of the turn and of those before it",
        "wide": "words of the turn and of those around it",
        "pairs": "words that follow each other as in the question",
        "dense": "meaning of the turn",
        "mean": "meaning of the turn and of those around it",
        "session": "best turns of the session",
        "speaker": "said by a person whom the question names",
        "asks": "the turn is a question",
        "answers": "the turn follows a question",
        "length": "length of the turn",
        "place": "place in the session",
        "when": "the turn tells a time, which the question asks for",
        "near": "said near the days that the question names",
    }
)
STANDARDISED = frozenset({"own", "before", "wide", "pairs", "dense", "mean", "session"})
SHOWN_FEATURES = 5  # the others are shown as one sum


@dataclass(frozen=True, slots=True)
class RankedTurns:
    """Turns by score, best first, with the features that make it up."""

    candidates: tuple[FusedCandidate, ...]
    places: Mapping[str, int]  # of each turn in the columns of `features`
    features: Features
    weights: Weights

    def explain(self, candidate: FusedCandidate) -> tuple[Placement, ...]:
        """Return the features that count most for a turn, and the sum of the others."""
        if candidate.id not in self.places:
            return candidate.placements
        place = self.places[candidate.id]
        values = [(name, float(self.features[name][place]), weight) for name, weight in self.weights]
        shares = sorted(((value * weight, name, value) for name, value, weight in values), key=lambda s: -abs(s[0]))
        shown = [_make_placement(name, value, share) for share, name, value in shares[:SHOWN_FEATURES] if share]
        rest = candidate.score - sum(placement.share for placement in shown)
        return (*shown, Placement("others", None, rest, rest, note="other signs"))


def search_conversation(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Return the candidates of hybrid search and the turns beside them, turns in the order of their features."""
    hybrid, ranked = yield from read_together(
        rank_hybrid(question.query, question.all_rankings, question.hybrid, recipe, question.trace),
        question.trace.run_stage("conversation", rank_turns(question, recipe.conversation), default=None),
    )
    if ranked is None:
        return GraphResult((), hybrid, hybrid)
    question.trace.candidates["conversation"] = len(ranked.candidates)
    first = {scored.id for ranking in question.rankings.values() for scored in ranking}
    return GraphResult((), tuple(place_turns(hybrid, ranked, first)), hybrid, explain=ranked.explain)


def rank_turns(question: GraphQuery, config: ConversationConfig) -> Reads[RankedTurns]:
    """Read the listed turns with their neighbours, and rank them and the turns beside the best."""
    lists = list(question.rankings.values())
    listed = _list_ids(lists)
    context = {"before": config.reach - min(WIDE), "after": config.reach + max(WIDE)}
    query = question.query
    turns = yield from read(Store.turns, query.text, listed, **context, where=query.where)
    best = _list_ids([ranking[: config.best] for ranking in lists])
    candidates = choose_candidates(turns, listed, best, reach=config.reach)
    if not len(candidates.places):
        return RankedTurns((), {}, {}, ())
    features = compute_features(candidates, query.text, query.vector, query.as_of or question.now)
    ids = [turns.ids[place] for place in candidates.places]
    return weigh_turns(ids, features, config.vectors if "dense" in features else config.words)


def weigh_turns(ids: Sequence[str], features: Features, weights: Weights) -> RankedTurns:
    """Rank turns by the weighted sum of their features, rounded so that ties are equal on every engine."""
    total = np.sum([weight * features[name] for name, weight in weights], axis=0)
    scores = np.round(total, 6).tolist()
    ranked = sorted(zip(scores, ids, strict=True), key=lambda pair: (-pair[0], pair[1]))
    candidates = tuple(FusedCandidate(id_, score, ()) for score, id_ in ranked)
    return RankedTurns(candidates, {id_: place for place, id_ in enumerate(ids)}, features, weights)


def place_turns(
    hybrid: Sequence[FusedCandidate], ranked: RankedTurns, first: Collection[str]
) -> Iterator[FusedCandidate]:
    """Yield hybrid's candidates with the n-th best turn at the place of the n-th turn, then the other turns.

    `first` are the candidates that do not depend on the number of hits. The others come last.
    """
    turns = iter(ranked.candidates)
    for candidate in (each for each in hybrid if each.id in first):
        yield next(turns) if candidate.id in ranked.places else candidate
    yield from turns
    yield from (each for each in hybrid if each.id not in first and each.id not in ranked.places)


def _list_ids(rankings: Sequence[Ranking]) -> list[str]:
    return list(dict.fromkeys(scored.id for ranking in rankings for scored in ranking))


def _make_placement(name: str, value: float, share: float) -> Placement:
    measured = f", {value:+.1f} deviations from the average candidate" if name in STANDARDISED else ""
    return Placement(name, None, value, share, note=DESCRIPTIONS[name] + measured)
