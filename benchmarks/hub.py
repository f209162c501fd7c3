"""Is a search bounded? The same question on a graph of ten thousand facts and on one with a hub of a million.

    python -m benchmarks.hub --sizes 10000 1000000 --folder DIR

Every fact has the same entity at one end, which the question names: the worst that can happen to a walk. For each
size it prints what every verb of the store gave (entities, facts, mentions and passages, counted at the store),
the most that the recipe's caps allow, and how long the question takes. It fails if a cap is broken. Vectors are
hashed: nothing here depends on what they mean.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from waylore.indexing import pipeline
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN, Recipe
from waylore.retrieval.search import search
from waylore.store.sqlite.store import SqliteStore
from waylore.types.identity import document_id
from waylore.types.knowledge import EPOCH, Claim, Contribution, Document
from waylore.types.search import Query

QUESTION = "Which harbour does the Hub supply with grain in winter?"
FACTS = 100  # that one document states
BATCH = 50  # documents that one transaction writes
VERBS = (
    "facts_of_entities",
    "facts_of_passages",
    "passages_of_entities",
    "entities_of_passages",
    "entities_by_names",
    "entities",
    "cosines",
    "passages",
)


def counted(verb: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A verb that counts what it gives."""

    @wraps(verb)
    def counting(self: "CountingStore", *arguments: Any, **options: Any) -> Any:
        given = verb(self, *arguments, **options)
        self.given[name] += sum(len(v) if isinstance(v, tuple) else 1 for v in given.values())
        return given

    return counting


class CountingStore(SqliteStore):
    """A store that counts what it gives."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.given: Counter[str] = Counter()


for _name in VERBS:
    setattr(CountingStore, _name, counted(getattr(SqliteStore, _name), _name))


def most(recipe: Recipe) -> dict[str, int]:
    """The most that each verb may give in one search that names one entity."""
    walk, linking, chain = recipe.walk, recipe.linking, recipe.chain
    seeds = 1 + 2 * linking.facts
    hybrid = max(chain.hybrid, recipe.top_k)
    candidates = chain.walked + hybrid
    walked = walk.max_entities * walk.passages_per_entity
    return {
        "facts_of_entities": linking.facts_per_entity + (seeds + walk.frontier) * walk.facts_per_entity,
        "facts_of_passages": (linking.hybrid_passages + candidates) * chain.facts_per_passage,
        "passages_of_entities": walked,
        "entities_of_passages": (linking.hybrid_passages + candidates) * walk.entities_per_passage,
        "entities_by_names": linking.namesakes,
        "entities": seeds,
        "cosines": walked + linking.hybrid_passages,
        "passages": candidates + 2 * recipe.top_k,
    }


def documents(facts: int) -> Iterator[Contribution]:
    """Documents that state facts of the hub, a hundred each."""
    for start in range(0, facts, FACTS):
        names = [f"Harbour {i}" for i in range(start, min(start + FACTS, facts))]
        document = Document(document_id(uri=f"hub/{start}"), uri=f"hub/{start}")
        text = f"The Hub supplies {names[0]} to {names[-1]} with grain."
        yield pipeline.contribution(document, text, [Claim("Hub", "supplies", name) for name in names])


def filled(path: Path, facts: int) -> CountingStore:
    """A store with so many facts; one that is there already is used again."""
    store, embedder = CountingStore(path), HashingEmbedder(64, quiet=True)
    if store.statistics().facts < facts:
        batch: list[Contribution] = []
        for contribution in documents(facts):
            batch.append(contribution)
            if len(batch) == BATCH:
                pipeline.write(store, embedder, batch)
                batch = []
        pipeline.write(store, embedder, batch)
    return store


def measured(stores: Sequence[CountingStore], recipe: Recipe, runs: int) -> list[float]:
    """The median milliseconds of the question on each store, its embedding aside; the stores take turns."""
    query = Query(QUESTION, HashingEmbedder(64, quiet=True).embed_query(QUESTION))
    taken: list[list[float]] = [[] for _ in stores]
    for _ in range(runs + 1):
        for store, seconds in zip(stores, taken, strict=True):
            store.given.clear()
            start = time.perf_counter()
            search(store, None, query, recipe, now=EPOCH)
            seconds.append(time.perf_counter() - start)
    return [1000 * float(np.median(seconds[1:])) for seconds in taken]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs=2, default=[10_000, 1_000_000])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    limits = most(CHAIN)
    stores = [filled(options.folder / f"hub-{size}.waylore", size) for size in options.sizes]
    medians = measured(stores, CHAIN, options.runs)
    for store, median in zip(stores, medians, strict=True):
        print(f"\n{store.statistics().facts:,} facts, one hub: {median:.1f} ms")
        for verb in VERBS:
            print(f"  {verb:22s} gave {store.given[verb]:5d} of at most {limits[verb]:5d}")
        broken = [verb for verb in VERBS if store.given[verb] > limits[verb]]
        store.close()
        if broken:
            raise SystemExit(f"caps were broken by {', '.join(broken)}")
    print(f"\n{medians[1] / medians[0]:.2f}x from {options.sizes[0]:,} to {options.sizes[1]:,} facts")


if __name__ == "__main__":
    main()
