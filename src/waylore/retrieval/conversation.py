"""Rank turns of conversations: the recipe `conversation`.

The best turns of both searches and the turns beside them are ranked by a weighted sum of features, which compare each
turn, with the turns around it, to the question (`turn_features`). Passages that are no turns keep their places in the
order of hybrid search, and turns take the places of turns. Without turns the order is that of hybrid search. The recipe
`mixed` does the same with the order of `chain`.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType

import numpy as np

from waylore.config import Weights
from waylore.recipes import Recipe
from waylore.retrieval.asked import PERSONAL, POSSESSIVE
from waylore.retrieval.fusion import FusedCandidate
from waylore.retrieval.graph.state import GraphQuery, GraphResult
from waylore.retrieval.hybrid import rank_hybrid
from waylore.retrieval.superseding import find_stating
from waylore.retrieval.turn_features import (
    WIDE,
    ComparedTurns,
    Features,
    TurnCandidates,
    choose_candidates,
    compare_turns,
    compute_features,
)
from waylore.spans import Span, find_spans
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.text import split_words
from waylore.types.search import NEWER, Placement, Query, Ranking

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
COMPARED_SESSIONS = 5  # whose best turns are compared by time
COMPARED_TURNS = 5  # in which these sessions are found
MAX_LOWER = 4.0  # standard deviations by which the score of a newer turn may be lower
# Questions that do not want the newest: about the past, about an order, or for what was recommended.
_ASKS_PAST = re.compile(
    r"\b(?:first|before|between|ago|order|passed|how long|recommend|suggest|tips|advice|remind|in total|altogether|"
    r"previous (?:chat|conversation)|last (?:time|chat|conversation))\b",
    re.IGNORECASE,
)
SHOWN_FEATURES = 5  # the others are shown as one sum
MIXED_FEATURES = 3  # named for a turn among documents


@dataclass(frozen=True, slots=True)
class RankedTurns:
    """Turns by score, best first, with the features that make it up."""

    candidates: tuple[FusedCandidate, ...]
    places: Mapping[str, int]  # of each turn in the columns of `features`
    features: Features
    weights: Weights
    spans: tuple[Span, ...] = ()  # days that the question names

    def explain(self, candidate: FusedCandidate) -> Sequence[Placement]:
        """Return the features that count most for a turn, and the sum of the others."""
        if candidate.id not in self.places:
            return candidate.placements
        place = self.places[candidate.id]
        values = [(name, float(self.features[name][place]), weight) for name, weight in self.weights]
        shares = sorted(((value * weight, name, value) for name, value, weight in values), key=lambda s: -abs(s[0]))
        shown = [_make_placement(name, value, share) for share, name, value in shares[:SHOWN_FEATURES] if share]
        shown += candidate.placements
        rest = candidate.score - sum(placement.share for placement in shown)
        return (*shown, Placement("others", None, rest, rest, note="other signs"))


def search_conversation(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Return the candidates of hybrid search and the turns beside them, turns in the order of their features."""
    hybrid, ranked = yield from read_together(
        rank_hybrid(question.query, question.all_rankings, question.hybrid, recipe, question.trace),
        question.trace.run_stage("conversation", rank_turns(question, recipe), default=None),
    )
    if ranked is None:
        return GraphResult((), hybrid, hybrid)
    question.trace.candidates["conversation"] = len(ranked.candidates)
    first = {scored.id for ranking in question.rankings.values() for scored in ranking}
    placed = tuple(place_turns(hybrid, ranked, first))
    return GraphResult((), placed, hybrid, explain=ranked.explain, turns=ranked.places.keys(), spans=ranked.spans)


def mix_turns(question: GraphQuery, graph: GraphResult, recipe: Recipe) -> Reads[GraphResult]:
    """Let the n-th best turn take the place that the n-th turn has in the order of a graph search, with its score.

    Other passages keep their places, and so do turns that neither search lists.
    """
    ranking = rank_turns(replace(question, links=graph.links), recipe)
    ranked = yield from question.trace.run_stage("conversation", ranking, default=None)
    if ranked is None or not ranked.candidates:
        return graph
    question.trace.candidates["conversation"] = len(ranked.candidates)
    explain = partial(_explain_mixed, graph.explain, ranked)
    candidates = tuple(_share_places(graph.candidates, ranked))
    return replace(graph, candidates=candidates, explain=explain, spans=ranked.spans)


def _share_places(candidates: Sequence[FusedCandidate], ranked: RankedTurns) -> Iterator[FusedCandidate]:
    turns = iter(ranked.candidates)
    for candidate in candidates:
        yield next(turns)._replace(score=candidate.score) if candidate.id in ranked.places else candidate
    yield from (turn._replace(score=candidates[-1].score if candidates else 0.0) for turn in turns)


def _explain_mixed(
    explain: Callable[[FusedCandidate], Sequence[Placement]], ranked: RankedTurns, candidate: FusedCandidate
) -> Sequence[Placement]:
    """Return the rank of a turn among the turns, with the features that count most; other candidates as before."""
    own = {turn.id: (rank, turn) for rank, turn in enumerate(ranked.candidates, 1)}
    if candidate.id not in own:
        return explain(candidate)
    rank, turn = own[candidate.id]
    reasons = ", ".join(placement.search for placement in ranked.explain(turn)[:MIXED_FEATURES])
    note = f"turn {rank} of the conversations, by {reasons}, at the place of the turn with this score"
    return (Placement("conversation", rank, turn.score, candidate.score, note=note),)


def rank_turns(question: GraphQuery, recipe: Recipe) -> Reads[RankedTurns]:
    """Read the listed turns with their neighbours, and rank them and the turns beside the best."""
    config, lists = recipe.conversation, list(question.rankings.values())
    stating = yield from question.trace.run_stage("stating", find_stating(question, recipe), default=())
    listed = list(dict.fromkeys((*_list_ids(lists), *stating)))
    before, after = config.reach - min(WIDE), config.reach + max(WIDE)
    query = question.query
    turns = yield from read(Store.turns, query.text, listed, before=before, after=after, where=query.where)
    best = _list_ids([ranking[: config.best] for ranking in lists])
    candidates = choose_candidates(turns, listed, best, reach=config.reach)
    if not len(candidates.places):
        return RankedTurns((), {}, {}, ())
    asked = (query.as_of or question.now).astimezone(question.now.tzinfo)
    spans = find_spans(query.text, asked)
    features = compute_features(candidates, query.text, query.vector, spans, asked.utcoffset() or timedelta())
    ids = [turns.ids[place] for place in candidates.places]
    if "dense" not in features:
        return replace(weigh_turns(ids, features, config.words), spans=spans)
    ranked = weigh_turns(ids, features, config.vectors)
    return replace(put_newer_first(ranked, candidates, query), spans=spans)


def weigh_turns(ids: Sequence[str], features: Features, weights: Weights) -> RankedTurns:
    """Rank turns by the weighted sum of their features, rounded so that ties are equal on every engine."""
    total = np.sum([weight * features[name] for name, weight in weights], axis=0)
    scores = np.round(total, 6).tolist()
    ranked = sorted(zip(scores, ids, strict=True), key=lambda pair: (-pair[0], pair[1]))
    candidates = tuple(FusedCandidate(id_, score, ()) for score, id_ in ranked)
    return RankedTurns(candidates, {id_: place for place, id_ in enumerate(ids)}, features, weights)


def put_newer_first(ranked: RankedTurns, candidates: TurnCandidates, query: Query) -> RankedTurns:
    """Put newer turns before older ones that say much the same, among the best turns of the first sessions.

    Only if the asker asks about themselves: between two speakers, similar turns are rarely updates. Not if the question
    asks for the past. A newer turn takes the place and the score of the older one.
    """
    is_personal = not (PERSONAL | POSSESSIVE).isdisjoint(split_words(query.text))
    if query.vector is None or not is_personal or _ASKS_PAST.search(query.text):
        return ranked
    places = {each.id: int(candidates.places[ranked.places[each.id]]) for each in ranked.candidates[:COMPARED_TURNS]}
    sessions = {int(candidates.turns.sessions[place]): id_ for id_, place in reversed(places.items())}
    first = [each for each in ranked.candidates if each.id in sessions.values()][:COMPARED_SESSIONS]
    scores = np.array([each.score for each in ranked.candidates])
    answers = compare_turns(candidates, [places[each.id] for each in first], query.text, query.vector)
    order = _sort_by_time([each.score / (scores.std() + 1e-9) for each in first], answers)
    swapped = {old.id: _take_place(first[new], old) for old, new in zip(first, order, strict=True)}
    return replace(ranked, candidates=tuple(swapped.get(each.id, each) for each in ranked.candidates))


def _sort_by_time(scores: Sequence[float], answers: ComparedTurns) -> list[int]:
    """Return the places of turns in a new order: each before the older ones above it that it may replace."""
    order: list[int] = []
    for new in range(len(scores)):
        at = len(order)
        while at and scores[order[at - 1]] - scores[new] <= MAX_LOWER and answers.may_replace(order[at - 1], new):
            at -= 1
        order.insert(at, new)
    return order


def _take_place(turn: FusedCandidate, other: FusedCandidate) -> FusedCandidate:
    """Return a turn with the score of another one, and the reason if that is higher."""
    share = other.score - turn.score
    reason = Placement(NEWER, None, share, share, note="said later than a turn that says much the same")
    return turn._replace(score=other.score, placements=(reason,) if share > 0 else ())


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
