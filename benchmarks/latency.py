"""How long a search takes, stage by stage, against bare hybrid search on the same engine in the same run.

    python -m benchmarks.latency --data SETS --set musique --model WEIGHTS --vectors DIR --folder DIR

Bare hybrid is the store's `dense` and `lexical` to the depth of the recipe, nothing else. The question's embedding is
left out on both sides. Each question is asked once unmeasured first, so that both see a warm file; the two
take turns, so that a busy machine slows them alike. Quality is not measured here.
"""

import argparse
import gc
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from waylore.evaluation.datasets import load
from waylore.evaluation.index import add_embedder_options, chosen_embedder, indexed
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.types.knowledge import EPOCH
from waylore.types.search import Filter, Query

BARE = "bare hybrid"


def measured(store: Store, queries: list[Query], recipes: list[Recipe]) -> dict[str, dict[str, list[float]]]:
    """Seconds of every question by recipe and stage; bare hybrid is a recipe with one stage."""
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for query in queries:
        bare(store, query, recipes[0])
        seconds[BARE]["total"].append(timed_bare(store, query, recipes[0]))
        for recipe in recipes:
            search(store, None, query, recipe, now=EPOCH)
            start = time.perf_counter()
            found = search(store, None, query, recipe, now=EPOCH)
            seconds[recipe.name]["total"].append(time.perf_counter() - start)
            for stage, taken in found.seconds.items():
                seconds[recipe.name][stage].append(taken)
    return seconds


def bare(store: Store, query: Query, recipe: Recipe) -> None:
    """The two searches of the engine, and nothing of ours."""
    depth = recipe.hybrid.reach(recipe.top_k)
    if query.vector is not None:
        store.dense(query.vector, top_k=depth, where=query.where)
    store.lexical(query.text, top_k=depth, where=query.where)


def timed_bare(store: Store, query: Query, recipe: Recipe) -> float:
    start = time.perf_counter()
    bare(store, query, recipe)
    return time.perf_counter() - start


def report(seconds: dict[str, dict[str, list[float]]], questions: int) -> dict[str, dict[str, float]]:
    """Print medians, and return them in milliseconds."""
    medians = {
        recipe: {
            stage: 1000 * float(np.median(taken + [0.0] * (questions - len(taken))))
            for stage, taken in stages.items()
        }
        for recipe, stages in seconds.items()
    }
    base = medians[BARE]["total"]
    for recipe, stages in medians.items():
        p95 = 1000 * float(np.percentile(seconds[recipe]["total"], 95))
        print(
            f"\n{recipe}: p50 {stages['total']:.1f} ms, p95 {p95:.1f} ms, {stages['total'] / base:.2f}x bare hybrid"
        )
        for stage, taken in sorted(stages.items(), key=lambda item: -item[1]):
            if stage != "total":
                print(f"  {stage:12s} {taken:6.2f} ms")
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="musique")
    parser.add_argument("--recipes", nargs="+", default=["hybrid", "chain"], choices=sorted(RECIPES))
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path)
    add_embedder_options(parser)
    options = parser.parse_args()
    embedder = chosen_embedder(options)
    dataset = load(options.data / options.set, sample=options.questions)
    queries = [
        Query(
            q.text, embedder.embed_query(q.text), Filter(metadata={"scope": q.scope}) if q.scope else Filter()
        )
        for q in dataset.questions
    ]
    with indexed(dataset, embedder, options.folder, options.store) as store:
        gc.freeze()  # the set itself stays in memory here; a search elsewhere does not have it to collect
        seconds = measured(store, queries, [RECIPES[name] for name in options.recipes])
    medians = report(seconds, len(queries))
    if options.json:
        options.json.write_text(json.dumps(medians, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
