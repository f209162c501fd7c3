"""Fit the weights of the recipe `conversation` on halves of conversations, and measure each on the other half.

    python -m waylore.evaluation.conversations.fit --data SETS --model WEIGHTS --vectors CACHE --folder STORES \\
        --write src/waylore/conversation_weights.json

The sets have no training part. So one table is fitted on half of both sets together and reported on the other halves,
both ways, and the mean of the two tables is shipped. A half of LoCoMo has whole conversations. Each set counts the
same. The loss is the cross-entropy of a softmax over the best candidates of a question; all gold turns are equally
likely.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from waylore.config import ConversationConfig, Weights, load_conversation_weights
from waylore.evaluation.conversations.datasets import ConversationQuestion, ConversationSet, read_conversations
from waylore.evaluation.conversations.measure import (
    add_set_options,
    format_recall,
    make_query,
    open_conversations,
    run_questions,
)
from waylore.evaluation.index import create_embedder
from waylore.protocols import Embedder
from waylore.recipes import CONVERSATION, Recipe
from waylore.retrieval.conversation import RankedTurns, rank_turns
from waylore.retrieval.graph.state import GraphQuery
from waylore.retrieval.hybrid import search_keywords, search_vectors
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read_together, run_stage
from waylore.types.search import Query

MAX_CANDIDATES = 80  # candidates of a question in the fit, the best by the words and vectors around them
STEPS = 250
RATE = 0.05  # learning rate of Adam
DECAYS = (0.9, 0.999)  # decays of its two means
PENALTY = 0.001
BASES = {"vectors": ("before", "mean"), "words": ("before", "wide")}  # features whose sum chooses the candidates
Table = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LabelledTurns:
    """The features of the candidates of a question, one row each, their gold labels, and the half of the set."""

    features: Table
    is_gold: Flags
    half: int


@dataclass(frozen=True, slots=True)
class IndexedSet:
    """A set with the store of its index."""

    dataset: ConversationSet
    store: Store


def make_examples(indexed: IndexedSet, embedder: Embedder | None, kind: str) -> Iterator[LabelledTurns]:
    """Yield the candidates of each question that has gold among them."""
    names = [name for name, _ in load_conversation_weights()[kind]]
    uris = {turn.passages[0].id: turn.document.uri for turn in indexed.dataset.turns}
    for question in indexed.dataset.questions:
        ranked = run_stage(indexed.store, _rank_turns(question, make_query(question, embedder)))
        is_gold = np.array([uris[id_] in question.turns for id_ in ranked.places])
        if is_gold.any():
            yield _cut(
                LabelledTurns(_stack(ranked, names), is_gold, question.half), [names.index(n) for n in BASES[kind]]
            )


def _rank_turns(question: ConversationQuestion, query: Query) -> Reads[RankedTurns]:
    depth = CONVERSATION.hybrid.candidates
    near, words = yield from read_together(search_vectors(query, top_k=depth), search_keywords(query, top_k=depth))
    rankings = {"vector": near, "keyword": words}
    return (yield from rank_turns(GraphQuery(query, (), rankings, rankings, (), question.at), CONVERSATION))


def _stack(ranked: RankedTurns, names: Sequence[str]) -> Table:
    return np.column_stack([ranked.features[name] for name in names])


def _cut(example: LabelledTurns, base: Sequence[int]) -> LabelledTurns:
    """Return the gold candidates, and the best others by the sum of some features."""
    order = np.argsort(-example.features[:, base].sum(axis=1), kind="stable")
    is_kept = example.is_gold.copy()
    is_kept[order[:MAX_CANDIDATES]] = True
    return replace(example, features=example.features[is_kept], is_gold=example.is_gold[is_kept])


def fit(examples: Sequence[LabelledTurns]) -> Table:
    """Return the weight of each feature."""
    table = np.vstack([example.features for example in examples])
    owner = np.repeat(np.arange(len(examples)), [len(example.is_gold) for example in examples])
    gold = np.concatenate([example.is_gold / example.is_gold.sum() for example in examples])
    deviation = table.std(axis=0) + 1e-6
    scaled = (table - table.mean(axis=0)) / deviation
    starts = np.searchsorted(owner, np.arange(len(examples)))

    def compute_gradient(weights: Table) -> Table:
        scores = scaled @ weights
        odds = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        chances = odds / np.add.reduceat(odds, starts)[owner]
        gradient: Table = scaled.T @ (chances - gold) / len(examples) + PENALTY * weights
        return gradient

    fitted: Table = _minimise(compute_gradient, table.shape[1]) / deviation
    return fitted


def _minimise(compute_gradient: Callable[[Table], Table], size: int) -> Table:
    """Return the weights after a fixed number of steps of Adam."""
    weights, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, STEPS + 1):
        gradient = compute_gradient(weights)
        mean = DECAYS[0] * mean + (1 - DECAYS[0]) * gradient
        square = DECAYS[1] * square + (1 - DECAYS[1]) * gradient**2
        weights -= RATE * (mean / (1 - DECAYS[0] ** step)) / (np.sqrt(square / (1 - DECAYS[1] ** step)) + 1e-8)
    return weights


def fit_halves(sets: Iterable[Sequence[LabelledTurns]]) -> list[Table]:
    """Return the weights fitted on each half of all sets. A small set counts more often, so all have equal weight."""
    known = list(sets)
    tables = []
    for half in (0, 1):
        halves = [[example for example in examples if example.half == half] for examples in known]
        most = max(map(len, halves))
        tables.append(fit([example for few in halves for example in few * max(1, round(most / len(few)))]))
    return tables


def main(arguments: list[str] | None = None) -> None:
    """Fit both tables, print the crossed figures, and write the mean of the halves if a file is given."""
    options = _parse_options(arguments)
    tables = {kind: dict(table) for kind, table in load_conversation_weights().items()}
    embedder = create_embedder(options)
    with ExitStack() as stack:
        sets = [_open_set(options, name, embedder, stack) for name in options.sets]
        for kind in options.tables:
            asking = embedder if kind == "vectors" else None
            fitted = fit_halves(list(make_examples(each, asking, kind)) for each in sets)
            tables[kind] = dict(zip(tables[kind], np.mean(fitted, axis=0).round(4).tolist(), strict=True))
            for each in sets:
                print("\n".join(_measure(each, asking, kind, fitted)), flush=True)
    text = json.dumps(tables, indent=2) + "\n"
    print(text, end="")
    if options.write:
        options.write.write_text(text, encoding="utf-8")


def _open_set(options: argparse.Namespace, name: str, embedder: Embedder | None, stack: ExitStack) -> IndexedSet:
    dataset = read_conversations(options.data / name, every=options.every)
    return IndexedSet(
        dataset, stack.enter_context(open_conversations(dataset, embedder, options.folder, options.store))
    )


def choose_crossed(kind: str, fitted: Sequence[Table]) -> Callable[[ConversationQuestion], Recipe]:
    """Return a function that returns, for a question, the recipe with weights fitted on the other half."""
    names = [name for name, _ in load_conversation_weights()[kind]]
    recipes = []
    for half in fitted:
        weights: Weights = tuple(zip(names, half.tolist(), strict=True))
        config = ConversationConfig(vectors=weights) if kind == "vectors" else ConversationConfig(words=weights)
        recipes.append(replace(CONVERSATION, conversation=config))
    return lambda question: recipes[1 - question.half]


def _measure(indexed: IndexedSet, embedder: Embedder | None, kind: str, fitted: Sequence[Table]) -> list[str]:
    """Return the recall of each half with the weights that were fitted on the other half."""
    questions = indexed.dataset.questions
    run = run_questions(indexed.store, embedder, questions, choose_crossed(kind, fitted))
    return format_recall(f"{indexed.dataset.name}, {kind}, crossed", questions, run)


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.conversations.fit", description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=tuple(BASES), default=tuple(BASES), help="Tables to fit")
    parser.add_argument("--write", type=Path, help="File for the tables")
    add_set_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
