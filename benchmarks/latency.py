"""Measure the time of a search, stage by stage, against bare hybrid search on the same engine in the same run.

    python -m benchmarks.latency --data SETS --set musique --model WEIGHTS --vectors DIR --folder DIR

Bare hybrid search is only the vector and the keyword search of the store, to the depth of the recipe. The time
to embed the question is not included. Each question is searched once before it is timed, so that both sides
read a warm file. The two take turns, so that a busy machine slows both in the same way. Quality is not measured
here.
"""

import argparse
import gc
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from waylore.evaluation.datasets import read_dataset
from waylore.evaluation.index import add_embedder_options, create_embedder, open_indexed
from waylore.protocols import Embedder
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.types.knowledge import EPOCH
from waylore.types.search import Filter, Query

BARE = "bare hybrid"


def measure_stages(
    store: Store, embedder: Embedder | None, queries: list[Query], recipes: list[Recipe]
) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of every question by recipe and stage; bare hybrid is a recipe with one stage.

    `deep` calls the embedder: its stage "embed again" reads a cache of vectors, if there is one.
    """
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for query in queries:
        search_bare(store, query, recipes[0])
        seconds[BARE]["total"].append(time_bare(store, query, recipes[0]))
        for recipe in recipes:
            search(store, embedder, query, recipe, now=EPOCH)
            start = time.perf_counter()
            found = search(store, embedder, query, recipe, now=EPOCH)
            seconds[recipe.name]["total"].append(time.perf_counter() - start)
            for stage, taken in found.seconds.items():
                seconds[recipe.name][stage].append(taken)
    return seconds


def search_bare(store: Store, query: Query, recipe: Recipe) -> None:
    """Run only the two searches of the store."""
    depth = recipe.hybrid.count_candidates(recipe.top_k)
    if query.vector is not None:
        store.dense(query.vector, top_k=depth, where=query.where)
    store.lexical(query.text, top_k=depth, where=query.where)


def time_bare(store: Store, query: Query, recipe: Recipe) -> float:
    start = time.perf_counter()
    search_bare(store, query, recipe)
    return time.perf_counter() - start


def print_report(seconds: dict[str, dict[str, list[float]]], questions: int) -> dict[str, dict[str, float]]:
    """Print the medians and return them in milliseconds."""
    medians = {
        recipe: {
            stage: 1000 * float(np.median(taken + [0.0] * (questions - len(taken)))) for stage, taken in stages.items()
        }
        for recipe, stages in seconds.items()
    }
    base = medians[BARE]["total"]
    for recipe, stages in medians.items():
        p95 = 1000 * float(np.percentile(seconds[recipe]["total"], 95))
        print(f"\n{recipe}: p50 {stages['total']:.1f} ms, p95 {p95:.1f} ms, {stages['total'] / base:.2f}x bare hybrid")
        for stage, taken in sorted(stages.items(), key=lambda item: -item[1]):
            if stage != "total":
                print(f"  {stage:12s} {taken:6.2f} ms")
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--set", default="musique", help="name of the set")
    parser.add_argument("--recipes", nargs="+", default=["hybrid", "chain"], choices=sorted(RECIPES))
    parser.add_argument("--questions", type=int, default=200, help="number of questions")
    parser.add_argument("--json", type=Path, help="file for the figures")
    add_embedder_options(parser)
    options = parser.parse_args()
    embedder = create_embedder(options)
    dataset = read_dataset(options.data / options.set, sample=options.questions)
    queries = [
        Query(q.text, embedder.embed_query(q.text), Filter(metadata={"scope": q.scope}) if q.scope else Filter())
        for q in dataset.questions
    ]
    with open_indexed(dataset, embedder, options.folder, options.store) as store:
        gc.freeze()  # so that the garbage collector does not scan the set, which an application does not have in memory
        seconds = measure_stages(store, embedder, queries, [RECIPES[name] for name in options.recipes])
    medians = print_report(seconds, len(queries))
    if options.json:
        options.json.write_text(json.dumps(medians, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
