"""Fit the weights of the recipe `deep` on training questions: the choice of entities, and the third judgement.

    python -m waylore.evaluation.deep --data SETS --sets musique-train100 hotpotqa-train100 --model WEIGHTS \\
        --vectors CACHE --write src/waylore/chain_weights.json

Run `waylore.evaluation.fit` first. A question is judged by weights that were fitted without it, because the package's
weights were fitted on the answers. A pair of a candidate and an entity is right if the candidate is gold and the
rewrite finds another gold passage that mentions the entity among the first five, at the same or a better rank than the
question. Single clauses of a question are not asked, because they added nothing.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from waylore.config import Weights, load_weights
from waylore.evaluation.datasets import Dataset, EvaluationQuestion
from waylore.evaluation.fit import (
    Labels,
    fit,
    fit_weights,
    index_training_sets,
    make_examples,
    walk_from_text,
    write_tables,
)
from waylore.evaluation.index import add_embedder_options
from waylore.protocols import Embedder, embed_queries
from waylore.recipes import CHAIN, DEEP, Recipe
from waylore.retrieval.graph.chain import ChainWalk, Judgement, compute_log_odds, judge, load_candidates
from waylore.retrieval.graph.deep import extend_pool, judge_again, list_pairs
from waylore.retrieval.graph.features import ODDS, Columns
from waylore.retrieval.graph.rewrites import (
    CHOICE_FEATURES,
    REWRITE_FEATURES,
    Pairs,
    choose_rewrites,
    write_all,
)
from waylore.retrieval.graph.state import GraphQuery
from waylore.retrieval.scale import get_scale
from waylore.store.protocol import Store
from waylore.store.reads import Reads, run_stage
from waylore.types.search import Query, Ranking

FOLDS = 5
FIRST = 5  # a rewrite must find another gold passage among this many
DEPTH = 100  # this many places of the question's own ranking are compared


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of features, and whether each is right."""

    columns: Columns
    is_gold: Labels
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A training question after the second judgement: the pairs to choose from, and whether each is right."""

    query: GraphQuery
    walk: ChainWalk
    judgement: Judgement
    pairs: Pairs
    is_right: Labels
    gold: frozenset[str]


def ask_questions(
    store: Store, embedder: Embedder, dataset: Dataset, penalty: float
) -> Iterator[tuple[list[Asked], Recipe]]:
    """Yield the questions of each fold after a second judgement that was fitted without them, and its recipe."""
    ids = {c.document.uri: p.id for c in dataset.pages for p in c.passages}
    examples = [
        list(make_examples(store, embedder, replace(dataset, questions=(question,)), CHAIN))
        for question in dataset.questions
    ]
    for fold in range(FOLDS):
        others = [each for place, of_one in enumerate(examples) if place % FOLDS != fold for each in of_one]
        tables = fit(others, penalty)
        recipe = replace(DEEP, chain=replace(DEEP.chain, first=tables["first"], second=tables["second"]))
        asked = [_ask(store, embedder, q, ids, recipe) for q in dataset.questions[fold::FOLDS]]
        yield [each for each in asked if each.pairs.sources], recipe


def _ask(store: Store, embedder: Embedder, question: EvaluationQuestion, ids: dict[str, str], recipe: Recipe) -> Asked:
    vector = embedder.embed_query(question.text)
    asked = Query(question.text, vector, scale=get_scale(embedder))
    query, walk, judgement = run_stage(store, _judge(asked, embedder, recipe))
    pool, pairs = judgement.pool, list_pairs(query, walk, judgement, recipe)
    gold = frozenset(ids[uri] for uri in question.gold)
    own = store.dense(vector, top_k=DEPTH)
    mentioned = store.entities_of_passages(sorted(gold), per_passage=DEPTH)
    entities = {id_: {mention.entity_id for mention in mentioned.get(id_, ())} for id_ in gold}
    texts = write_all(question.text, pool, pairs, recipe.deep)
    is_right = [
        pool.ids[source] in gold
        and _leads_on(embedder, store, text, own, {g for g in gold if g != pool.ids[source] and entity in entities[g]})
        for text, source, entity in zip(texts, pairs.sources, pairs.entities, strict=True)
    ]
    return Asked(query, walk, judgement, pairs, np.array(is_right, np.bool_), gold)


def _leads_on(embedder: Embedder, store: Store, text: str, own: Ranking, targets: set[str]) -> bool:
    """Return whether a rewrite finds a target among the first, at the same or a better rank than the question."""
    if not targets:
        return False
    before = {scored.id: place for place, scored in enumerate(own)}
    found = store.dense(embedder.embed_query(text), top_k=FIRST)
    return any(scored.id in targets and place <= before.get(scored.id, DEPTH) for place, scored in enumerate(found))


def _judge(query: Query, embedder: Embedder, recipe: Recipe) -> Reads[tuple[GraphQuery, ChainWalk, Judgement]]:
    question, walk = yield from walk_from_text(query, recipe)
    question = replace(question, embedder=embedder)
    pool, _ = yield from load_candidates(question, walk, recipe)
    return question, walk, judge(pool, query, recipe)


def fit_choice(asked: Sequence[Asked], penalty: float) -> Weights:
    """Return the weights of the choice."""
    return fit_weights([Rows(each.pairs.columns, each.is_right) for each in asked], CHOICE_FEATURES, penalty)


def compute_third(store: Store, embedder: Embedder, asked: Asked, choice: Weights, recipe: Recipe) -> Rows:
    """Return the features of the third judgement of a question."""
    pool, query = asked.judgement.pool, asked.query.query
    scores = compute_log_odds(asked.pairs.columns, choice)
    rewrites = choose_rewrites(query.text, pool, asked.pairs, scores, recipe.deep)
    vectors = embed_queries(embedder, [rewrite.text for rewrite in rewrites])
    extended, _ = run_stage(store, extend_pool(asked.query, asked.walk, pool, vectors, recipe))
    third, _ = judge_again(asked.judgement, extended, query, rewrites, vectors, recipe)
    return Rows(third.columns, np.array([id_ in asked.gold for id_ in extended.ids], np.bool_))


def main(arguments: list[str] | None = None) -> None:
    """Fit both tables, print all, and write them if a file is given."""
    options = _parse_options(arguments)
    asked: list[Asked] = []
    rows: list[Rows] = []
    for store, embedder, dataset in index_training_sets(options):
        folds = list(ask_questions(store, embedder, dataset, options.penalty))
        for fold, (questions, recipe) in enumerate(folds):
            others = [each for part, _ in (*folds[:fold], *folds[fold + 1 :]) for each in part]
            choice = fit_choice(others, options.penalty)
            rows += [compute_third(store, embedder, each, choice, recipe) for each in questions]
            asked += questions
    right = sum(bool(each.is_right.any()) for each in asked)
    print(f"{len(asked)} questions, {right} of them with a right pair", file=sys.stderr)
    tables = dict(load_weights())
    tables["choice"] = fit_choice(asked, options.penalty)
    tables["third"] = fit_weights(rows, [ODDS, *REWRITE_FEATURES], options.penalty)
    write_tables(tables, options.write)


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.deep", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="Folder of the sets")
    parser.add_argument("--sets", nargs="+", required=True, help="Sets of training questions")
    parser.add_argument("--penalty", type=float, default=0.1, help="scikit-learn's C, as `fit` chose it")
    parser.add_argument("--write", type=Path, help="File for all tables")
    add_embedder_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
