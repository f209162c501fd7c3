"""Fit the model that judges whether a folder answers a question (`is_relevant`), on questions of the split `dev`.

    python -m waylore.evaluation.fit_relevance --folders FOLDERS --model WEIGHTS --vectors CACHE \\
        --write src/waylore/relevance_weights.json

Questions without an answer are few. So each question with an answer is used a second time as a question
without an answer: the passages of the files that answer it are left out of its rankings. The minimum score is chosen so
that few questions with an answer are below it, each judged by weights that were fitted without its folder.
"""

import argparse
import json
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from waylore.errors import ConfigError
from waylore.evaluation.fit import index_training_folders
from waylore.evaluation.folders.questions import FolderQuestion
from waylore.evaluation.folders.scoring import normalise_path
from waylore.evaluation.index import add_embedder_options
from waylore.protocols import Embedder
from waylore.recipes import CHAIN
from waylore.retrieval.relevance import BEST, compute_relevance_features, list_best
from waylore.retrieval.scale import get_scale
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.types.columns import Numbers
from waylore.types.knowledge import EPOCH
from waylore.types.search import Query, Ranking

PENALTY = 0.1  # scikit-learn's C; with a stronger one, scores of models that were fitted on less would be smaller
UNANSWERED_WEIGHT = 8.0  # weight of a question without an answer; a question whose answer was left out has weight 1
MISSED_SHARE = 0.04  # share of the questions with an answer that may score less than the minimum


@dataclass(frozen=True, slots=True)
class Judged:
    """The numbers of a search in a folder, whether it can find an answer, and how much it counts."""

    folder: str
    features: dict[str, float]
    has_answer: bool
    weight: float = 1.0


def make_judged(store: Store, embedder: Embedder, question: FolderQuestion) -> Iterator[Judged]:
    """Yield a question as it is and, if it has an answer, without the files that answer it."""
    weight = 1.0 if question.has_answer else UNANSWERED_WEIGHT
    if features := _read_features(store, embedder, question.text, ()):
        yield Judged(question.folder, features, question.has_answer, weight)
    files = {normalise_path(place.path) for gold in question.gold for place in gold}
    if files and (features := _read_features(store, embedder, question.text, files)):
        yield Judged(question.folder, features, has_answer=False)


def _read_features(store: Store, embedder: Embedder, text: str, without: Collection[str]) -> dict[str, float] | None:
    vector = embedder.embed_query(text)
    query = Query(text, vector, scale=get_scale(embedder))
    depth = CHAIN.hybrid.candidates
    found = search(store, None, query, CHAIN, now=EPOCH).ranking
    rankings = {"vector": store.dense(vector, top_k=depth), "keyword": store.lexical(text, top_k=depth), "all": found}
    kept = {name: _leave_out(store, ranking, without) for name, ranking in rankings.items()}
    best = store.passages([scored.id for scored in kept["all"][:BEST]])
    pages = {passage.id: passage.document_id for passage in store.passages(list_best(kept)).values()}
    return compute_relevance_features(query, kept, [f"{p.title} {p.text}" for p in best.values()], pages)


def _leave_out(store: Store, ranking: Ranking, files: Collection[str]) -> Ranking:
    """Return a ranking without the passages of some files."""
    sources = store.sources([scored.id for scored in ranking])
    return tuple(scored for scored in ranking if normalise_path(sources[scored.id].uri) not in files)


def fit_table(judged: Sequence[Judged]) -> dict[str, object]:
    """Return weights, typical values of questions with an answer, and the minimum score, for two folders or more."""
    weights, typical = _fit_model(judged)
    minimum = float(np.quantile(list(_score_held_out(judged)), MISSED_SHARE))
    names = list(judged[0].features)
    return {
        "weights": {name: round(value, 4) for name, value in zip(names, weights.tolist(), strict=True)},
        "typical": {name: round(value, 4) for name, value in zip(names, typical.tolist(), strict=True)},
        "minimum": round(minimum, 4),
    }


def _score_held_out(judged: Sequence[Judged]) -> Iterator[float]:
    """Yield the scores of the questions with an answer under models that were fitted without their folder."""
    for folder in dict.fromkeys(one.folder for one in judged):
        weights, typical = _fit_model([one for one in judged if one.folder != folder])
        for one in judged:
            if one.folder == folder and one.has_answer:
                yield float((np.array(list(one.features.values())) - typical) @ weights)


def _fit_model(judged: Sequence[Judged]) -> tuple[Numbers, Numbers]:
    """Return the weight of each feature, and its mean over questions with an answer."""
    try:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("scikit-learn is not installed; run `pip install 'waylore[fit]'`") from error
    table = np.array([list(one.features.values()) for one in judged])
    has_answer = np.array([one.has_answer for one in judged])
    scaler = StandardScaler().fit(table)
    model = LogisticRegression(C=PENALTY, max_iter=10_000)
    model.fit(scaler.transform(table), has_answer, sample_weight=[one.weight for one in judged])
    return model.coef_[0] / scaler.scale_, table[has_answer].mean(axis=0)


def main(arguments: list[str] | None = None) -> None:
    """Fit and print the table, and write it if a file is given."""
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.fit_relevance", description=__doc__)
    parser.add_argument("--folders", type=Path, required=True, help="Directory of folders with labelled questions")
    parser.add_argument("--write", type=Path, help="File for the table")
    add_embedder_options(parser)
    options = parser.parse_args(arguments)
    stores = index_training_folders(options)
    judged = [
        one for store, model, asked in stores for question in asked for one in make_judged(store, model, question)
    ]
    text = json.dumps(fit_table(judged), indent=2) + "\n"
    print(f"{len(judged)} searches", file=sys.stderr)
    print(text, end="")
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
