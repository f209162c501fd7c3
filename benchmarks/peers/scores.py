"""Score the answers of a peer on a set: recall of the gold passages, and the answer in a context of 1,000 tokens.

The context of a peer is its passages, best first, with their titles, until the budget is full; the last one is cut. A
system that writes contexts of its own is scored on these too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.adapters.frame import ANSWERS, PeerPassage, read_lines
from benchmarks.peers.environments import PEERS, find_environment
from benchmarks.peers.measure import COSTS, Place, measure_folder
from benchmarks.peers.sets import Gold, PeerSet
from waylore.evaluation.contexts.questions import ContextQuestion
from waylore.evaluation.contexts.scoring import ShownText, score_context
from waylore.evaluation.metrics import Interval, compute_interval
from waylore.protocols import CountTokens

DEPTH = 5
BUDGET = 1_000


@dataclass(frozen=True, slots=True)
class PeerScores:
    """The figures of a peer on a set; `answered` by its passages, `own` by contexts of its own."""

    peer: str
    set: str
    recall: Interval
    answered: float
    own: float | None
    index_seconds: float
    index_processor: float
    texts: int
    calls: int
    tokens: int
    query_seconds: float
    memory: int
    disk: int
    install: int


def score_peer(place: Place, found: PeerSet, count: CountTokens) -> PeerScores | None:
    """Return the figures of a peer; None if it has not answered every question."""
    answers = {row["id"]: row for row in read_lines(place.work / ANSWERS)}
    asked = [(question, answers[question.asked.id]) for question in found.questions if question.asked.id in answers]
    if len(asked) < len(found.questions):
        return None
    passages = {passage.id: passage for passage in found.passages}
    shown = [list(fill_context([passages[id_] for id_ in row["ranked"] if id_ in passages], count)) for _, row in asked]
    own = [[ShownText(*part) for part in row["shown"]] for _, row in asked]
    questions = [question.asked for question, _ in asked]
    index, ask = _add_costs(place, "index"), _add_costs(place, "ask")
    return PeerScores(
        place.peer,
        place.set,
        compute_interval(np.array([compute_recall(question.gold, row["ranked"]) for question, row in asked])),
        _score_contexts(questions, shown),
        _score_contexts(questions, own) if any(own) else None,
        index["wall"] - index["embedding"],
        index["processor"],
        int(index["texts"]),
        int(index["calls"] + ask["calls"]),
        int(index["tokens"] + ask["tokens"]),
        float(np.median([row["seconds"] for _, row in asked])),
        int(max(index["memory"], ask["memory"])),
        int(max(index["disk"], ask["disk"])),
        measure_install(place),
    )


def compute_recall(gold: Gold, ranked: Sequence[str]) -> float:
    """Return the share of the needed things that are among the first five passages, each in any of its places."""
    first = set(ranked[:DEPTH])
    return sum(bool(first.intersection(places)) for places in gold) / len(gold)


def fill_context(passages: Sequence[PeerPassage], count: CountTokens) -> Iterator[ShownText]:
    """Yield passages until the budget is full."""
    left = BUDGET
    for passage in passages:
        tokens = count(f"{passage.whole}\n\n")
        text = passage.text if tokens <= left else cut_words(passage.text, left - count(passage.title), count)
        if text:
            yield ShownText(passage.page, passage.title, text)
        left -= tokens
        if left <= 0:
            return


def cut_words(text: str, budget: int, count: CountTokens) -> str:
    """Return the first words of a text that fit."""
    words = text.split(" ")
    fits, exceeds = 0, len(words) + 1
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        fits, exceeds = (middle, exceeds) if count(" ".join(words[:middle])) <= budget else (fits, middle)
    return " ".join(words[:fits])


def _score_contexts(questions: Sequence[ContextQuestion], shown: Sequence[Sequence[ShownText]]) -> float:
    """Return the share of questions whose answer is shown; of those without answers, the share of their support."""
    scores = [score_context(question, parts) for question, parts in zip(questions, shown, strict=True)]
    strict = [each.strict for each in scores if each.strict is not None]
    support = [each.support for each in scores if each.support is not None]
    return float(np.mean(np.array(strict or support, dtype=np.float64)))


def _add_costs(place: Place, phase: str) -> Mapping[str, float]:
    """Return the sums over the runs of a phase, and the maxima of memory and disk."""
    rows = [row for row in read_lines(place.work / COSTS) if row["phase"] == phase]
    names = ("wall", "processor", "embedding", "texts", "calls", "tokens")
    sums: dict[str, Any] = {name: sum(row[name] for row in rows) for name in names}
    return {**sums, **{name: max((row[name] for row in rows), default=0) for name in ("memory", "disk")}}


def measure_install(place: Place) -> int:
    """Return the bytes that are installed for a peer."""
    programs = sum(measure_folder(program.resolve()) for program in PEERS[place.peer].programs)
    environment = find_environment(place.peer, place.folder / "environments")
    return programs + (measure_folder(environment) if environment.exists() else 0)
