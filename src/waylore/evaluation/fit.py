"""Fits the weights of the recipe `chain` on training questions: a logistic model over the candidates' features.

    python -m waylore.evaluation.fit --data SETS --model WEIGHTS --write src/waylore/chain_weights.json

scikit-learn fits (`pip install 'waylore[fit]'`); the table it writes is all that a search needs. Only questions of
training sets belong here: figures on questions that were fitted on would say nothing.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from waylore.config import Weights
from waylore.errors import ConfigError
from waylore.evaluation.datasets import Dataset, load
from waylore.evaluation.index import add_embedder_options, chosen_embedder, indexed
from waylore.protocols import Embedder
from waylore.recipes import CHAIN, Recipe
from waylore.retrieval.candidates import dense, lexical
from waylore.retrieval.fusion import fuse
from waylore.retrieval.graph.chain import log_odds, pooled, walked_from
from waylore.retrieval.graph.features import (
    FIRST,
    SECOND,
    Bridges,
    Columns,
    Numbers,
    Pool,
    bridges,
    features,
    second_features,
)
from waylore.retrieval.graph.linking import link
from waylore.retrieval.graph.state import Asked
from waylore.store.protocol import Store
from waylore.store.reads import Reads, answered, together
from waylore.types.knowledge import EPOCH
from waylore.types.search import Query

PENALTIES = (
    0.001,
    0.003,
    0.01,
    0.03,
    0.1,
    0.3,
    1.0,
)  # scikit-learn's C; the smaller, the stronger the pull to 0
FOLDS = 10
Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Example:
    """A question's candidates: features of the first judgement, bridges, and which candidates are gold."""

    columns: Columns
    bridges: Bridges
    is_gold: Labels


def examples(store: Store, embedder: Embedder, dataset: Dataset, recipe: Recipe) -> Iterator[Example]:
    """The candidates of each question, as the recipe's walk finds them."""
    pages = {p.id: c.document.uri for c in dataset.contributions for p in c.passages}
    for question in dataset.questions:
        vector = embedder.embed_query(question.text)
        pool = answered(store, _pool(Query(question.text, vector), recipe))
        found = bridges(pool, common=recipe.chain.common)
        columns, _ = features(pool, vector, found)
        yield Example(columns, found, np.array([pages[id_] in question.gold for id_ in pool.ids]))


def _pool(query: Query, recipe: Recipe) -> Reads[Pool]:
    """The candidates of a question, whatever the gate would say."""
    depth = recipe.hybrid.reach(recipe.top_k)
    near, words, links = yield from together(
        dense(query, top_k=depth), lexical(query, top_k=depth), link(query, recipe.linking)
    )
    rankings = {"dense": near, "lexical": words}
    asked = Asked(query, links, rankings, fuse(rankings, recipe.hybrid), EPOCH)
    asked, journey = yield from walked_from(asked, recipe)
    pool, _ = yield from pooled(asked, journey, recipe)
    return pool


def fit(questions: Sequence[Example], penalty: float) -> dict[str, Weights]:
    """The weights of both judgements; the second learns from first ones by a model without the question."""
    first = _fitted([(q.columns, q.is_gold) for q in questions], FIRST, penalty)
    second: list[tuple[Columns, Labels]] = []
    for fold in range(FOLDS // 2):
        others = [(q.columns, q.is_gold) for i, q in enumerate(questions) if i % (FOLDS // 2) != fold]
        unseeing = _fitted(others, FIRST, penalty)
        second += [(_again(q, unseeing), q.is_gold) for q in questions[fold :: FOLDS // 2]]
    return {"first": first, "second": _fitted(second, SECOND, penalty)}


def chosen_penalty(questions: Sequence[Example]) -> float:
    """The strongest penalty whose loss on held-out questions is within a standard error of the best."""
    losses = {penalty: held_out_losses(questions, penalty) for penalty in PENALTIES}
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    limit = best.mean() + best.std() / np.sqrt(len(best))
    return min(penalty for penalty, loss in losses.items() if loss.mean() <= limit)


def held_out_losses(questions: Sequence[Example], penalty: float) -> Numbers:
    """The logistic loss of each question under weights that were fitted without it."""
    losses = np.zeros(len(questions))
    for fold in range(FOLDS):
        weights = fit([q for i, q in enumerate(questions) if i % FOLDS != fold], penalty)
        for i in range(fold, len(questions), FOLDS):
            q = questions[i]
            odds = log_odds(_again(q, weights["first"]), weights["second"])
            losses[i] = np.logaddexp(0.0, np.where(q.is_gold, -odds, odds)).sum()
    return losses


def _again(question: Example, first: Weights) -> dict[str, Numbers]:
    """The features of the second judgement after this first one."""
    return second_features(question.columns, log_odds(question.columns, first), question.bridges)


def _fitted(judged: Sequence[tuple[Columns, Labels]], names: Iterable[str], penalty: float) -> Weights:
    """A logistic model's weight of each feature as it comes, and its bias."""
    try:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("fitting needs scikit-learn: pip install 'waylore[fit]'") from error
    table = np.vstack([np.column_stack([columns[name] for name in names]) for columns, _ in judged])
    scaler = StandardScaler().fit(table)
    model = LogisticRegression(C=penalty, max_iter=10_000)
    model.fit(scaler.transform(table), np.concatenate([is_gold for _, is_gold in judged]))
    weights = model.coef_[0] / scaler.scale_
    bias = float(model.intercept_[0] - weights @ scaler.mean_)
    return (("bias", bias), *zip(names, weights.tolist(), strict=True))


def main(arguments: list[str] | None = None) -> None:
    """Fit, print and, if asked to, write the tables."""
    options = _options(arguments)
    embedder = chosen_embedder(options)
    questions: list[Example] = []
    for name in options.sets:
        dataset = load(options.data / name)
        with indexed(dataset, embedder, options.folder, options.store) as store:
            questions += examples(store, embedder, dataset, CHAIN)
    penalty = chosen_penalty(questions)
    fitted = fit(questions, penalty)
    print(f"{len(questions)} questions, penalty {penalty}", file=sys.stderr)
    tables = {judgement: {n: round(w, 4) for n, w in weights} for judgement, weights in fitted.items()}
    text = json.dumps(tables, indent=2) + "\n"
    print(text, end="")
    if options.write:
        options.write.write_text(text, encoding="utf-8")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.fit", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", nargs="+", default=["musique-train100"])
    parser.add_argument("--write", type=Path, help="the file to write the table to")
    add_embedder_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
