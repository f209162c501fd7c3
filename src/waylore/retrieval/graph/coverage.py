"""Compute which words of the question candidates account for, alone and together with the candidate before them.

A term of the question has a weight by how few passages have it; all weights sum to 1. The coverage of a text is the sum
of the weights of the terms that it has. A passage two hops away has few words of the question, but it has those that
the passage that leads there lacks. No model is called.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from waylore.text import terms
from waylore.types.columns import FactColumns, Numbers
from waylore.types.knowledge import Passage
from waylore.types.search import TermCounts

MAX_TERMS = 32  # of a question, the rarest
SHORT_STEM = 3  # letters
MIN_REST = 0.05  # smallest part of a question that a candidate can leave open
MAX_BELIEF = 0.999
Places = npt.NDArray[np.int64]
# The code of each byte: 1 to 36 for ASCII letters of either case and digits, FOREIGN beyond ASCII, 0 for others.
FOREIGN = 37
LETTERS = bytes(int(chr(b), 36) + 1 if b < 128 and chr(b).isalnum() else FOREIGN * (b > 127) for b in range(256))
SPACES = bytes(b < 128 and chr(b).isspace() for b in range(256))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which terms of a question the candidates, their titles and their facts have: 1 or 0 for each term.

    `title_shares` has the share of the question's terms among the terms of each title.
    """

    counted: TermCounts
    terms: tuple[str, ...]
    weights: Numbers
    texts: Numbers
    titles: Numbers
    title_shares: Numbers
    facts: Numbers


def find_coverage(counted: TermCounts, passages: Sequence[Passage], facts: FactColumns) -> Coverage:
    """Find the terms of a question in candidates and in the words of facts."""
    rarest = sorted(counted.counts, key=lambda term: (counted.counts[term], term))[:MAX_TERMS]
    count = np.array([counted.counts[term] for term in rarest], np.float64)
    idf = np.log1p((counted.passages - count + 0.5) / (count + 0.5))
    titles, texts = [passage.title for passage in passages], [passage.text for passage in passages]
    words, places = facts.find_words()
    of_titles, of_texts, marks = np.split(
        _mark_texts([*titles, *texts, *words], rarest), [len(titles), 2 * len(titles)]
    )
    return Coverage(
        counted,
        tuple(rarest),
        weights=idf / max(idf.sum(), 1e-9),
        texts=np.maximum(of_titles, of_texts),
        titles=of_titles,
        title_shares=_compute_shares(titles, of_titles.sum(axis=1)),
        facts=marks[places].max(axis=1),
    )


def join_coverage(one: Coverage, other: Coverage) -> Coverage:
    """Return the coverage of the candidates of two pools, which has the same terms."""
    return replace(
        one,
        texts=np.concatenate([one.texts, other.texts]),
        titles=np.concatenate([one.titles, other.titles]),
        title_shares=np.concatenate([one.title_shares, other.title_shares]),
        facts=np.concatenate([one.facts, other.facts]),
    )


def _compute_shares(titles: Sequence[str], found: Numbers) -> Numbers:
    """Return the number of found terms as a share of all terms of each title."""
    shares = np.zeros(len(titles))
    for place in np.flatnonzero(found).tolist():
        shares[place] = found[place] / len({*terms(titles[place])})
    return shares


def _mark_texts(texts: Sequence[str], wanted: Sequence[str]) -> Numbers:
    """Return a row for each text, with 1 at the places of the wanted terms that it has, as `waylore.text.terms` finds.

    All texts are looked through at once, as bytes.
    """
    place_of = {term: place for place, term in enumerate(wanted)}
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    found, starts = _find_words(b"\n".join([b"", *parts, b"\n"]), wanted)
    of = np.searchsorted(np.cumsum([len(part) + 1 for part in parts]), starts).tolist()
    places_of = {word: [place_of[term] for term in _split_word(word) if term in place_of] for word in set(found)}
    marked = [(row, at) for word, row in zip(found, of, strict=True) for at in places_of[word]]
    marks = np.zeros((len(texts), len(wanted)))
    marks[tuple(np.array(marked, np.intp).reshape(-1, 2).T)] = 1.0
    return marks


def _find_words(text: bytes, wanted: Iterable[str]) -> tuple[list[str], Places]:
    """Return the words of a text that may have a wanted stem, and where each starts; all that are not ASCII."""
    codes = np.frombuffer(text.translate(LETTERS), np.uint8)
    is_letter = codes > 0
    edges = np.flatnonzero(is_letter[1:] != is_letter[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    third = np.where(codes[starts + 1] > 0, codes[starts + 2], 0)
    is_possible = _mark_beginnings(wanted)[codes[starts], codes[starts + 1], third]
    starts, ends = starts[is_possible], ends[is_possible]
    others = np.empty((0, 2), np.int64)
    if not text.isascii():  # what is not ASCII is taken up to the next spaces
        gaps = np.flatnonzero(np.frombuffer(text.translate(SPACES), np.bool_))
        has_foreign = np.bincount(np.searchsorted(gaps, np.flatnonzero(codes == FOREIGN)), minlength=len(gaps)) > 0
        after = np.flatnonzero(has_foreign)
        others = np.column_stack([gaps[after - 1] + 1, gaps[after]])
        is_plain = ~has_foreign[np.searchsorted(gaps, starts)]
        starts, ends = starts[is_plain], ends[is_plain]
    lower = text.lower().decode("latin-1")
    words = [lower[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    words += [text[start:end].decode("utf-8", "surrogatepass") for start, end in others.tolist()]
    return words, np.append(starts, others[:, 0])


def _mark_beginnings(wanted: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return whether a word that begins with three letters, given by their codes, may have a wanted stem.

    A stem of four letters or more has the first three letters of its word, a shorter one at least the first.
    """
    marks = np.zeros((FOREIGN + 1,) * 3, np.bool_)
    for term in wanted:
        first = term.encode("utf-8", "surrogatepass")[: SHORT_STEM if len(term) > SHORT_STEM else 1]
        marks[tuple(first.translate(LETTERS))] = True
    return marks


@lru_cache(maxsize=65_536)
def _split_word(word: str) -> tuple[str, ...]:
    return tuple(terms(word))


def compute_coverage(
    coverage: Coverage, stating: Places, source: Places, target: Places, fact: Places
) -> dict[str, Numbers]:
    """Return the features of candidates by coverage, given the candidate of each fact and the ends of bridges."""
    texts, weights, size = coverage.texts, coverage.weights, len(coverage.texts)
    own, facts = texts @ weights, coverage.facts @ weights
    both, rest = _compute_pairs(coverage, source, target)
    along = np.maximum(coverage.facts[fact], texts[target]) @ weights
    return {
        "coverage": own,
        "title_coverage": coverage.titles @ weights,
        "title_share": coverage.title_shares,
        "rarest_term": (texts * weights).max(axis=1, initial=0.0) / max(weights.max(initial=0.0), 1e-9),
        "scarce_terms": texts @ (weights / np.maximum(texts.sum(axis=0), 1.0)),
        "pair_coverage": np.maximum(own, find_best_at(np.append(source, target), np.append(both, both), size)),
        "pair_gain": find_best_at(target, both - own[source], size),
        "pair_rest": find_best_at(target, rest, size),
        "fact_coverage": find_best_at(stating, facts, size),
        "bridge_coverage": find_best_at(target, along, size),
    }


def compute_need(coverage: Coverage, odds: Numbers, source: Places, target: Places) -> dict[str, Numbers]:
    """Return what candidates add to those that the first judgement believes in, given its log-odds."""
    texts, weights = coverage.texts, coverage.weights
    belief = 1.0 / (1.0 + np.exp(-odds))
    absent = np.log1p(-np.minimum(belief[:, None] * texts, MAX_BELIEF))
    need = (texts * np.exp(absent.sum(axis=0) - absent)) @ weights
    both, rest = _compute_pairs(coverage, source, target)
    order = np.argsort(odds[source], kind="stable")  # the bridge from the best source is the last, and stays
    best_pair, best_rest = np.zeros(len(odds)), np.zeros(len(odds))
    best_pair[target[order]], best_rest[target[order]] = both[order], rest[order]
    return {
        "need": need,
        "need_share": need / np.maximum(texts @ weights, 1e-9),
        "best_pair_coverage": best_pair,
        "best_pair_rest": best_rest,
        "best_pair_open": 1.0 - best_pair,
    }


def _compute_pairs(coverage: Coverage, source: Places, target: Places) -> tuple[Numbers, Numbers]:
    """Return the coverage of both ends of each bridge, and what the target covers of the rest of the source."""
    before = (coverage.texts @ coverage.weights)[source]
    both: Numbers = np.maximum(coverage.texts[source], coverage.texts[target]) @ coverage.weights
    return both, (both - before) / np.maximum(1.0 - before, MIN_REST)


def find_best_at(places: Places, values: Numbers, size: int, *, minimum: float = 0.0) -> Numbers:
    """Return the greatest of the values at each place, at least the minimum."""
    best = np.full(size, minimum)
    np.maximum.at(best, places, values)
    return best
