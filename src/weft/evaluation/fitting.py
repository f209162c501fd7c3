"""Fits the weights of the recipe `chain` on training questions: a logistic model over the candidates' features.

    python -m weft.evaluation.fitting --data SETS --model WEIGHTS --write src/weft/chain_weights.json

scikit-learn fits (`pip install 'weft[fit]'`); the table it writes is all that a search needs. Only questions of
training sets belong here: figures on questions that were fitted on would say nothing.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.config import CHAIN, Recipe
from weft.errors import ConfigError
from weft.evaluation.datasets import Dataset, Question, load
from weft.evaluation.indexing import add_embedder_options, chosen_embedder, indexed
from weft.models import Embedder
from weft.retrieval.asking import Asked
from weft.retrieval.chain import pooled, walked_from
from weft.retrieval.dense import dense
from weft.retrieval.features import FEATURES, bridges, features
from weft.retrieval.fusion import fuse
from weft.retrieval.lexical import lexical
from weft.retrieval.linking import link
from weft.store.base import Store
from weft.types import EPOCH, Query

Numbers = npt.NDArray[np.float64]
PENALTY = 0.1  # scikit-learn's C: under 1 is a strong pull towards zero, for there are few questions


def examples(
    store: Store, embedder: Embedder, dataset: Dataset, recipe: Recipe
) -> Iterator[tuple[Numbers, npt.NDArray[np.bool_]]]:
    """For each question the features of its candidates, a row each, and which of them are gold."""
    gold_by_passage = {p.id: c.document.uri for c in dataset.contributions for p in c.passages}
    for question in dataset.questions:
        asked = _asked(store, embedder, question, recipe)
        pool = pooled(store, asked, walked_from(store, asked, recipe), recipe.chain)
        columns, _ = features(
            pool, embedder.embed_query(question.text), bridges(pool, common=recipe.chain.common)
        )
        table = np.column_stack([columns[name] for name in FEATURES])
        yield table, np.array([gold_by_passage[id_] in question.gold for id_ in pool.ids])


def _asked(store: Store, embedder: Embedder, question: Question, recipe: Recipe) -> Asked:
    query = Query(question.text, embedder.embed_query(question.text))
    depth = recipe.top_k * recipe.hybrid.depth
    rankings = {"dense": dense(store, query, top_k=depth), "lexical": lexical(store, query, top_k=depth)}
    links = link(store, query, recipe.linking)
    return Asked(query, links, rankings, fuse(rankings, recipe.hybrid), EPOCH)


def fit(table: Numbers, is_gold: npt.NDArray[np.bool_]) -> dict[str, float]:
    """The weight of each feature as it comes, and the bias."""
    try:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("fitting needs scikit-learn: pip install 'weft[fit]'") from error
    scaler = StandardScaler().fit(table)
    model = LogisticRegression(C=PENALTY, max_iter=10_000).fit(scaler.transform(table), is_gold)
    weights = model.coef_[0] / scaler.scale_
    bias = float(model.intercept_[0] - weights @ scaler.mean_)
    return {"bias": bias, **dict(zip(FEATURES, weights.tolist(), strict=True))}


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Fit, print and, if asked to, write the table."""
    options = _options(arguments)
    embedder = chosen_embedder(options)
    tables: list[Any] = []
    for name in options.sets:
        dataset = load(options.data / name)
        with indexed(dataset, embedder, options.folder) as store:
            tables += examples(store, embedder, dataset, CHAIN)
    fitted = fit(np.vstack([x for x, _ in tables]), np.concatenate([y for _, y in tables]))
    text = json.dumps({name: round(weight, 4) for name, weight in fitted.items()}, indent=2) + "\n"
    print(text, end="")
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return fitted


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m weft.evaluation.fitting", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", nargs="+", default=["musique-train100"])
    parser.add_argument("--write", type=Path, help="the file to write the table to")
    add_embedder_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
