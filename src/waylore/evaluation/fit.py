"""Fit the weights of the recipe `chain` on training questions: logistic models over features of candidates.

    python -m waylore.evaluation.fit --data SETS --sets musique-train100 --folders FOLDERS --model WEIGHTS \\
        --vectors CACHE --write src/waylore/chain_weights.json

scikit-learn fits the models (`pip install 'waylore[fit]'`); a search needs only the tables that this writes. Use
only questions of training sets: figures on fitted questions would prove nothing. A set without triples is read by
rules. A page of a set is one passage; the tables `first` and `second` are fitted on these. A page of a folder has many
passages. `long_first` and `long_second`, for such candidates, are tables of the first set without the features of
coverage, which did not help there; the second one is corrected on questions of the split `dev` and on questions made
from the pages. Tables that are not fitted stay as they are. The penalty is one that is good for questions, a set or a
folder that were left out.
"""

import argparse
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from waylore.config import Weights, load_weights
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.evaluation.folders.index import choose_folder_store, index_folder, list_documents, open_cached
from waylore.evaluation.folders.known_items import TYPE as KNOWN_ITEM
from waylore.evaluation.folders.known_items import make_questions
from waylore.evaluation.folders.questions import FILES, QUESTIONS, FolderQuestion, list_folders, read_questions
from waylore.evaluation.folders.scoring import RankedHit, has_passage
from waylore.evaluation.index import (
    add_embedder_options,
    create_embedder,
    extract_from_text,
    load_embedder,
    open_indexed,
)
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Embedder
from waylore.recipes import CHAIN, Recipe
from waylore.retrieval.fusion import fuse
from waylore.retrieval.graph.chain import ChainWalk, compute_log_odds, load_candidates, walk_from_question
from waylore.retrieval.graph.coverage import Coverage
from waylore.retrieval.graph.features import (
    COVERAGE_FEATURES,
    FIRST_FEATURES,
    ODDS,
    SECOND_FEATURES,
    Bridges,
    Columns,
    Pool,
    compute_features,
    compute_long_share,
    compute_second_features,
    correct_weights,
    find_bridges,
)
from waylore.retrieval.graph.linking import link_entities
from waylore.retrieval.graph.state import GraphQuery
from waylore.retrieval.hybrid import search_keywords, search_vectors
from waylore.retrieval.scale import get_scale
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read_together, run_stage
from waylore.store.urls import open_store
from waylore.types.columns import Numbers
from waylore.types.knowledge import EPOCH
from waylore.types.search import Query

PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # scikit-learn's C; a smaller value pulls weights to 0
FOLDS = 10
TRAINING_SPLIT = "dev"  # of the questions about folders
KNOWN_ITEM_WEIGHT = 0.05  # of a question that was made from a page; one of an owner counts once
ODDS_SCALE = 10.0  # how much less the penalty pulls its weight to 0 than the others, which correct it
Labels = npt.NDArray[np.bool_]
Tables: TypeAlias = Mapping[str, Weights]
FitTables: TypeAlias = Callable[[Sequence["Example"], float], Tables]


class Labelled(Protocol):
    """Rows of features, which of them are right, and how much they count."""

    @property
    def columns(self) -> Columns:
        """The features by name."""

    @property
    def is_gold(self) -> Labels:
        """Whether each row is right."""

    @property
    def weight(self) -> float:
        """How much each row counts."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates by id: features of the first judgement, bridges, and the question's terms that they have.

    `long` is how far they are parts of long pages.
    """

    columns: Columns
    bridges: Bridges
    coverage: Coverage
    ids: tuple[str, ...]
    long: float


@dataclass(frozen=True, slots=True)
class Example:
    """The candidates of a question as in `Candidates`, and which of them are gold.

    `group` is the set or folder of the question. `weight` is how much the question counts. `needed` is the number of
    passages that the answer needs, found or not.
    """

    columns: Columns
    bridges: Bridges
    coverage: Coverage
    is_gold: Labels
    group: str = ""
    weight: float = 1.0
    long: float = 0.0
    needed: int = 1


def make_examples(store: Store, embedder: Embedder, dataset: Dataset, recipe: Recipe) -> Iterator[Example]:
    """Yield the candidates of each question, as the recipe's walk finds them."""
    pages = {p.id: c.document.uri for c in dataset.pages for p in c.passages}
    for question in dataset.questions:
        if found := read_candidates(store, embedder, question.text, recipe):
            is_gold = np.array([pages[id_] in question.gold for id_ in found.ids])
            yield make_example(found, is_gold, len(question.gold), group=dataset.name)


def make_folder_examples(
    store: Store, embedder: Embedder, questions: Iterable[FolderQuestion], recipe: Recipe
) -> Iterator[Example]:
    """Yield the candidates of each question about a folder that has an answer there."""
    for question in (q for q in questions if q.has_answer):
        if found := read_candidates(store, embedder, question.text, recipe):
            passages, documents = store.passages(found.ids), store.sources(found.ids)
            hits = [RankedHit(documents[id_].uri, passages[id_].text) for id_ in found.ids]
            places = [place for gold in question.gold for place in gold]
            is_gold = np.array([any(has_passage(hit, place) for place in places) for hit in hits], np.bool_)
            weight = KNOWN_ITEM_WEIGHT if question.type == KNOWN_ITEM else 1.0
            yield make_example(found, is_gold, len(question.gold), group=question.folder, weight=weight)


def make_example(found: Candidates, is_gold: Labels, needed: int, *, group: str = "", weight: float = 1.0) -> Example:
    """Return the candidates of a question with their labels."""
    return Example(found.columns, found.bridges, found.coverage, is_gold, group, weight, found.long, needed)


def read_candidates(store: Store, embedder: Embedder, text: str, recipe: Recipe) -> Candidates | None:
    """Return the candidates of a question; None if it names no known entity, because the gate closes then."""
    query = Query(text, embedder.embed_query(text), scale=get_scale(embedder))
    pool = run_stage(store, _read_pool(query, recipe))
    bridges = find_bridges(pool, common=recipe.chain.common)
    columns, _ = compute_features(pool, query, bridges)
    return Candidates(columns, bridges, pool.coverage, pool.ids, compute_long_share(pool)) if pool.named else None


def _read_pool(query: Query, recipe: Recipe) -> Reads[Pool]:
    question, chain_walk = yield from walk_from_text(query, recipe)
    pool, _ = yield from load_candidates(question, chain_walk, recipe)
    return pool


def walk_from_text(query: Query, recipe: Recipe) -> Reads[tuple[GraphQuery, ChainWalk]]:
    """Return the walk of a question, whatever the gate decides."""
    depth = recipe.hybrid.count_candidates(recipe.top_k)
    by_vector, by_keyword, links = yield from read_together(
        search_vectors(query, top_k=depth),
        search_keywords(query, top_k=depth),
        link_entities(query, recipe.linking),
    )
    rankings = {"vector": by_vector, "keyword": by_keyword}
    question = GraphQuery(query, links, rankings, rankings, fuse(rankings, recipe.hybrid), EPOCH)
    return (yield from walk_from_question(question, recipe))


def fit(questions: Sequence[Example], penalty: float, *, without: Collection[str] = frozenset()) -> dict[str, Weights]:
    """Return the weights of both judgements. First judgements of a question use weights fitted without it."""
    names, more = ([n for n in features if n not in without] for features in (FIRST_FEATURES, SECOND_FEATURES))
    first = fit_weights(questions, names, penalty)
    second: list[Example] = []
    for fold in range(FOLDS // 2):
        held_out = fit_weights([q for i, q in enumerate(questions) if i % (FOLDS // 2) != fold], names, penalty)
        second += [replace(q, columns=compute_second_columns(q, held_out)) for q in questions[fold :: FOLDS // 2]]
    return {"first": first, "second": fit_weights(second, more, penalty)}


def fit_long_pages(questions: Sequence[Example], penalty: float, tables: Tables) -> dict[str, Weights]:
    """Return the first judgement of `tables`, and its second one corrected for candidates that share their pages."""
    judged = [add_odds(question, tables["first"], tables["second"]) for question in questions]
    correction = fit_correction(judged, [name for name, _ in tables["second"] if name != "bias"], penalty)
    return {"first": tables["first"], "second": correct_weights(tables["second"], correction)}


def add_odds(question: Example, first: Weights, second: Weights) -> Example:
    """Return a question with the features of the second judgement, and with its log-odds as one more."""
    columns = compute_second_columns(question, first)
    return replace(question, columns={**columns, ODDS: compute_log_odds(columns, second)})


def fit_correction(judged: Sequence[Example], names: Sequence[str], penalty: float) -> Weights:
    """Return the correction of a judgement whose log-odds are a feature of the questions."""
    return fit_weights(judged, [*names, ODDS], penalty, {ODDS: ODDS_SCALE})


def choose_penalty(questions: Sequence[Example], fit_tables: FitTables = fit) -> float:
    """Return the strongest penalty whose loss on held-out questions is within a standard error of the best.

    The error is that of the difference of the two losses of a question.
    """
    losses = {penalty: compute_held_out_losses(questions, penalty, fit_tables) for penalty in PENALTIES}
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    differences = {penalty: loss - best for penalty, loss in losses.items()}
    return min(p for p, each in differences.items() if each.mean() <= each.std() / np.sqrt(len(each)))


def compute_held_out_losses(questions: Sequence[Example], penalty: float, fit_tables: FitTables = fit) -> Numbers:
    """Return the logistic loss of each question under weights that were fitted without it, times its weight.

    A whole set or folder is held out at a time; if all questions are of one, a tenth of them.
    """
    groups = list(dict.fromkeys(q.group for q in questions))
    parts = [groups.index(q.group) if len(groups) > 1 else i % FOLDS for i, q in enumerate(questions)]
    losses = np.zeros(len(questions))
    for part in dict.fromkeys(parts):
        weights = fit_tables([q for q, other in zip(questions, parts, strict=True) if other != part], penalty)
        for i in (i for i, other in enumerate(parts) if other == part):
            q = questions[i]
            odds = compute_log_odds(compute_second_columns(q, weights["first"]), weights["second"])
            losses[i] = q.weight * np.logaddexp(0.0, np.where(q.is_gold, -odds, odds)).sum()
    return losses


def compute_second_columns(question: Example, first: Weights) -> dict[str, Numbers]:
    """Return the features of the second judgement after a first one with these weights."""
    odds = compute_log_odds(question.columns, first)
    return compute_second_features(question.columns, odds, question.bridges, question.coverage)


def fit_weights(
    questions: Sequence[Labelled],
    names: Iterable[str],
    penalty: float,
    scales: Mapping[str, float] = MappingProxyType({}),
) -> Weights:
    """Return a logistic model's weight of each unscaled feature, and its bias.

    The penalty pulls less at features that have a greater number in `scales`.
    """
    try:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("scikit-learn is not installed; run `pip install 'waylore[fit]'`") from error
    table = np.vstack([np.column_stack([q.columns[name] for name in names]) for q in questions])
    counts = np.concatenate([np.full(len(q.is_gold), q.weight) for q in questions])
    scaler = StandardScaler().fit(table)
    model = LogisticRegression(C=penalty, max_iter=10_000)
    scaler.scale_ /= [scales.get(name, 1.0) for name in names]
    model.fit(scaler.transform(table), np.concatenate([q.is_gold for q in questions]), sample_weight=counts)
    weights = model.coef_[0] / scaler.scale_
    bias = float(model.intercept_[0] - weights @ scaler.mean_)
    return (("bias", bias), *zip(names, weights.tolist(), strict=True))


def main(arguments: list[str] | None = None) -> None:
    """Fit and print the tables, and write them if a file is given."""
    options = _parse_options(arguments)
    tables = dict(load_weights())
    examples = list(_read_sets(options))
    tables |= _fit_chosen(examples, fit)
    if options.folders:
        of_first = [example for example in examples if example.group == examples[0].group]
        plain = _fit_chosen(of_first, partial(fit, without=COVERAGE_FEATURES))
        fitted = _fit_chosen(list(_read_folders(options)), partial(fit_long_pages, tables=plain))
        tables |= {"long_first": fitted["first"], "long_second": fitted["second"]}
    write_tables(tables, options.write)


def write_tables(tables: Tables, file: Path | None) -> None:
    """Print the tables of the package, and write them if a file is given."""
    rounded = {table: {n: round(w, 4) for n, w in weights} for table, weights in tables.items()}
    text = json.dumps(rounded, indent=2) + "\n"
    print(text, end="")
    if file:
        file.write_text(text, encoding="utf-8")


def _fit_chosen(questions: Sequence[Example], fit_tables: FitTables) -> Tables:
    penalty = choose_penalty(questions, fit_tables)
    print(f"{len(questions)} questions, penalty {penalty}", file=sys.stderr)
    return fit_tables(questions, penalty)


def _read_sets(options: argparse.Namespace) -> Iterator[Example]:
    for store, embedder, dataset in index_training_sets(options):
        yield from make_examples(store, embedder, dataset, CHAIN)


def index_training_sets(options: argparse.Namespace) -> Iterator[tuple[Store, Embedder, Dataset]]:
    """Yield each indexed set as a store, with the embedder; a set without triples as rules read it."""
    embedder = create_embedder(options)
    for name in options.sets:
        dataset = read_dataset(options.data / name)
        if not any(page.facts for page in dataset.pages):
            dataset = extract_from_text(dataset, RuleExtractor())
        with open_indexed(dataset, embedder, options.folder, options.store) as store:
            yield store, embedder, dataset


def _read_folders(options: argparse.Namespace) -> Iterator[Example]:
    for store, embedder, questions in index_training_folders(options, has_known_items=True):
        yield from make_folder_examples(store, embedder, questions, CHAIN)


def index_training_folders(
    options: argparse.Namespace, *, has_known_items: bool = False
) -> Iterator[tuple[Store, Embedder, list[FolderQuestion]]]:
    """Yield each indexed folder as a store, with the embedder and the questions that may be used to fit.

    With `has_known_items`, questions that are made from the pages follow.
    """
    embedder = create_embedder(options)
    with open_cached(load_embedder(options.embedder, options.model, options.name), options.vectors) as model:
        for folder in list_folders(options.folders):
            questions = [q for q in read_questions(folder / QUESTIONS, folder.name) if q.split == TRAINING_SPLIT]
            with choose_folder_store(folder / FILES, model, options.folder, options.store) as (address, collection):
                with Waylore.open(address, collection=collection, embedder=model.embedder, cache=None) as memory:
                    index_folder(memory, folder / FILES, model)
                    pages = [memory.get(each.id) for each in list_documents(memory)] if has_known_items else []
                    questions += [replace(made, folder=folder.name) for made in make_questions(pages)]
                with closing(open_store(address, collection)) as store:
                    yield store, embedder, questions


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.fit", description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder of the sets")
    parser.add_argument("--sets", nargs="+", required=True, help="Sets with pages of one passage")
    parser.add_argument("--folders", type=Path, help="Directory of folders with labelled questions, for long pages")
    parser.add_argument("--write", type=Path, help="File for the table")
    add_embedder_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
