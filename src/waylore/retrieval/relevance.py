"""Judge whether the best hit is likely to answer the question.

The judge is a logistic model over five numbers that every search has. `waylore.evaluation.fit_relevance` fits its
weights and chooses the minimum score. No hits are removed: the result only reports the judgement and its reason. Pure
arithmetic: it reads neither the store nor a model.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from waylore.config import load_relevance
from waylore.retrieval.graph.linking import find_written_names
from waylore.text import normalise, split_units, terms
from waylore.types.search import Query, Ranking
from waylore.words import DEFAULT_LANGUAGE, detect_language, load_words

BEST = 5  # passages of each ranking whose pages are compared
TENTH = 9  # rank of the cosine that the best one is compared with
REASONS: Mapping[str, str] = MappingProxyType(
    {
        "cosine": "no passage is similar to the question",
        "drop": "many passages are equally similar to the question",
        "agreement": "search by words and search by vectors find different pages",
        "unknown_names": "the best passages lack a name of the question",
        "terms": "the question has few words",
    }
)


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether the best hit likely answers the question (None if unknown), and the reason if it does not."""

    is_relevant: bool | None = None
    reason: str = ""


def judge_relevance(
    query: Query, rankings: Mapping[str, Ranking], texts: Sequence[str], pages: Mapping[str, str] = MappingProxyType({})
) -> Relevance:
    """Judge a search by its rankings and the texts of its best passages, best first.

    `pages` has the page of each of the best passages of both rankings; one that it lacks is a page of its own. Without
    vectors, or if the spread of the model's cosines is unknown, there is no judgement.
    """
    if not texts:
        return Relevance(is_relevant=False, reason="nothing was found")
    features = compute_relevance_features(query, rankings, texts, pages)
    if features is None:
        return Relevance()
    table = load_relevance()
    if not rankings["keyword"]:
        del features["agreement"]  # only one search was run
    effects = {name: table.weights[name] * (value - table.typical[name]) for name, value in features.items()}
    if sum(effects.values()) >= table.minimum:
        return Relevance(is_relevant=True)
    return Relevance(is_relevant=False, reason=REASONS[min(effects, key=effects.__getitem__)])


def list_best(rankings: Mapping[str, Ranking]) -> list[str]:
    """Return the best passages of both rankings, whose pages are compared."""
    return [scored.id for search in ("vector", "keyword") for scored in rankings[search][:BEST]]


def compute_relevance_features(
    query: Query, rankings: Mapping[str, Ranking], texts: Sequence[str], pages: Mapping[str, str]
) -> dict[str, float] | None:
    """Return the numbers of the model by name; None without vectors. Cosines are in deviations of the model."""
    near, scale = rankings["vector"], query.scale
    if not near or scale is None:
        return None
    worded = {pages.get(scored.id, scored.id) for scored in rankings["keyword"][:BEST]}
    return {
        "cosine": (near[0].score - scale.mean) / scale.deviation,
        "drop": (near[0].score - near[min(TENTH, len(near) - 1)].score) / scale.deviation,
        "agreement": sum(pages.get(scored.id, scored.id) in worded for scored in near[:BEST]) / BEST,
        "unknown_names": float(_count_unknown_names(query.text, texts[:BEST])),
        "terms": math.log1p(len(set(terms(query.text)))),
    }


def _count_unknown_names(question: str, texts: Iterable[str]) -> int:
    """Return the number of names in the question with a word that none of the texts has."""
    known = {term for text in texts for term in terms(text)}
    words = Counter(word.strip() for word in split_units(normalise(question)))
    names = find_written_names(question, load_words(detect_language(words) or DEFAULT_LANGUAGE))
    return sum(not known.issuperset(terms(name)) for name in names)
