"""Compare the linear scorer of `chain` with non-linear ones on sets that were left out.

    python -m benchmarks.scorers --data SETS --sets musique-train100 hotpotqa-train100 --folders FOLDERS \\
        --model WEIGHTS --vectors DIR

Each set, and the folders together, is left out once. The first judgement is the linear one in every row; the second
judgement is linear, boosted trees or a small network over the same features. R@5 is that of the candidates' order by the
second judgement alone, without the rule of promise 1. The interval is of the paired difference to the linear scorer.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from waylore.evaluation.fit import (
    Example,
    compute_second_columns,
    fit_weights,
    index_training_folders,
    index_training_sets,
    make_examples,
    make_folder_examples,
)
from waylore.evaluation.index import add_embedder_options
from waylore.evaluation.metrics import compute_difference
from waylore.recipes import CHAIN
from waylore.retrieval.graph.features import FIRST_FEATURES, SECOND_FEATURES
from waylore.types.columns import Numbers

FIRST_PENALTY = 0.1
FOLDS = 5
FOLDERS = "folders, dev"
Scorer = Callable[[], Pipeline]
Table = npt.NDArray[np.float64]
SCORERS: dict[str, Scorer] = {
    "linear, C 0.1": lambda: _scale(LogisticRegression(C=0.1, max_iter=10_000)),
    "linear, C 0.01": lambda: _scale(LogisticRegression(C=0.01, max_iter=10_000)),
    "trees of depth 2, 100 rounds": lambda: _boost(2, 100, 0.1),
    "trees of depth 3, 200 rounds": lambda: _boost(3, 200, 0.05),
    "trees of depth 3, 50 rounds": lambda: _boost(3, 50, 0.05),
    "network of 8, strong penalty": lambda: _scale(MLPClassifier((8,), alpha=10.0, max_iter=500, random_state=0)),
    "network of 16": lambda: _scale(MLPClassifier((16,), alpha=1.0, max_iter=500, random_state=0)),
}


def _scale(model: LogisticRegression | MLPClassifier) -> Pipeline:
    return make_pipeline(StandardScaler(), model)


def _boost(depth: int, rounds: int, rate: float) -> Pipeline:
    model = HistGradientBoostingClassifier(max_depth=depth, max_iter=rounds, learning_rate=rate, random_state=0)
    return make_pipeline(model)


def add_second_features(
    training: Sequence[Example], held_out: Sequence[Example]
) -> tuple[list[Example], list[Example]]:
    """Return both parts with the features of the second judgement; a first judgement never saw its question."""
    second = []
    for fold in range(FOLDS):
        others = [q for i, q in enumerate(training) if i % FOLDS != fold]
        first = fit_weights(others, FIRST_FEATURES, FIRST_PENALTY)
        second += [replace(q, columns=compute_second_columns(q, first)) for q in training[fold::FOLDS]]
    first = fit_weights(training, FIRST_FEATURES, FIRST_PENALTY)
    return second, [replace(q, columns=compute_second_columns(q, first)) for q in held_out]


def make_table(question: Example) -> Table:
    """Return a row of features for each candidate."""
    return np.column_stack([question.columns[name] for name in SECOND_FEATURES])


def measure(scorer: Scorer, training: Sequence[Example], held_out: Sequence[Example]) -> tuple[Numbers, Numbers]:
    """Return R@5 and the logistic loss of each held-out question."""
    model = scorer()
    model.fit(np.vstack([make_table(q) for q in training]), np.concatenate([q.is_gold for q in training]))
    recalls, losses = [], []
    for question in held_out:
        chance = np.clip(model.predict_proba(make_table(question))[:, 1], 1e-6, 1 - 1e-6)
        best = np.argsort(-chance, kind="stable")[:5]
        recalls.append(min(question.is_gold[best].sum() / question.needed, 1.0))
        losses.append(-np.log(np.where(question.is_gold, chance, 1 - chance)).sum())
    return np.array(recalls), np.array(losses)


def read_examples(options: argparse.Namespace) -> list[Example]:
    """Return the candidates of all training questions; those of folders are one group."""
    examples = [
        e for store, model, data in index_training_sets(options) for e in make_examples(store, model, data, CHAIN)
    ]
    if options.folders:
        for store, model, questions in index_training_folders(options):
            examples += [replace(e, group=FOLDERS) for e in make_folder_examples(store, model, questions, CHAIN)]
    return examples


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each set that is left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of benchmark sets")
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--folders", type=Path, help="directory of folders with labelled questions")
    add_embedder_options(parser)
    examples = read_examples(parser.parse_args(arguments))
    for group in dict.fromkeys(example.group for example in examples):
        held_out = [example for example in examples if example.group == group]
        print(f"\n{group}: {len(held_out)} questions left out\n\n| scorer | R@5 | difference to the first row | loss |")
        print("|---|---|---|---|")
        training, judged = add_second_features([e for e in examples if e.group != group], held_out)
        base: Numbers | None = None
        for name, scorer in SCORERS.items():
            recalls, losses = measure(scorer, training, judged)
            base = recalls if base is None else base
            difference = compute_difference(100 * recalls, 100 * base)
            interval = f"{difference.mean:+.1f} [{difference.low:+.1f}, {difference.high:+.1f}]"
            print(f"| {name} | {100 * recalls.mean():.1f} | {interval} | {losses.mean():.2f} |", flush=True)


if __name__ == "__main__":
    main()
