"""Choose the hits among all candidates: their order, and passages with the same text.

The order does not depend on the number of hits. For every n, a third of the first n hits are the best of hybrid search
(promise 1). Passages with nearly the same words take one place. Pure functions: this module does not read the store.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType

from waylore.retrieval.fusion import FusedCandidate
from waylore.text import split_words

KEPT_SHARE = 3  # every third hit is the best of hybrid search that is not among the hits before it
SAME_WORDS = 0.95  # minimum Jaccard similarity of the words of two long texts that count as the same
MIN_WORDS = 20  # minimum length of a long text


def arrange(
    hybrid: Sequence[FusedCandidate],
    candidates: Sequence[FusedCandidate],
    left_out: Collection[str] = (),
    superseders: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[FusedCandidate]:
    """Yield the candidates in their order, with the best of hybrid search at every third place at the latest.

    Candidates in `left_out`, which repeat another one or were deleted, count in neither list. `superseders` stand above
    the candidates that they are given for, by id: if one of those is due, they come before it.
    """
    by_id = {candidate.id: candidate for candidate in candidates if candidate.id not in left_out}
    if hybrid is candidates and not superseders:  # in one order, so the best is always placed when it is due
        yield from by_id.values()
        return
    kept = [candidate.id for candidate in hybrid if candidate.id in by_id]
    rest, placed, first = iter(by_id.values()), set[str](), 0  # the place in `kept` before which all are placed
    for place in count(1):
        owed = ""
        if first < (place + 1) // KEPT_SHARE:
            while first < len(kept) and kept[first] in placed:
                first += 1
            due = kept[first] if first < min((place + 1) // KEPT_SHARE, len(kept)) else ""
            owed = due if first < place // KEPT_SHARE else superseders.get(due, "")  # at the next place the best is due
        is_owed = owed in by_id and owed not in placed
        chosen = by_id[owed] if is_owed else next((c for c in rest if c.id not in placed), None)
        if chosen is None:
            return
        placed.add(chosen.id)
        yield chosen


def keep_all(
    hybrid: Sequence[FusedCandidate],
    candidates: Sequence[FusedCandidate],
    reached: Collection[str],
    *,
    top_k: int,
    max_added: int,
) -> tuple[FusedCandidate, ...]:
    """Return the hybrid top K and at most `max_added` others that the graph `reached`, in one order (S5)."""
    chosen = {candidate.id for candidate in hybrid[:top_k]}
    new = [candidate.id for candidate in candidates if candidate.id in reached and candidate.id not in chosen]
    chosen.update(new[:max_added])
    return tuple(candidate for candidate in candidates if candidate.id in chosen)


def find_repeats(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the passages that repeat the text of an earlier passage, by id, with the id of the earlier one.

    `texts` are pairs of id and text, best first.
    """
    first: dict[str, list[str]] = {}
    repeats: dict[str, str] = {}
    for id_, text in texts:
        own = split_words(text)
        near = range(int(SAME_WORDS * len(own)), int(len(own) / SAME_WORDS) + 1)
        same = next((other for other, its in first.items() if len(its) in near and has_same_words(own, its)), None)
        if same is None:
            first[id_] = own
        else:
            repeats[id_] = same
    return repeats


def has_same_words(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two texts have the same words in the same order, or, if they are long, nearly the same words.

    In a short text the order changes the meaning: "from Rome to Paris" is not "from Paris to Rome".
    """
    if one == other:
        return bool(one)
    fewer = min(len(one), len(other))
    if fewer < MIN_WORDS or fewer < SAME_WORDS * max(len(one), len(other)):
        return False
    words, others = set(one), set(other)
    shared = len(words & others)
    return shared >= SAME_WORDS * (len(words) + len(others) - shared)


def group_repeats(repeats: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the repeats of each passage, by its id. A repeat of a repeat belongs to the first passage."""
    groups: dict[str, list[str]] = {}
    for id_ in repeats:
        first = repeats[id_]
        while first in repeats:
            first = repeats[first]
        groups.setdefault(first, []).append(id_)
    return groups
