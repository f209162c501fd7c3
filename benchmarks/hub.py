"""Check that a search is bounded: the same question with a hub of ten thousand facts and one of a million.

    python -m benchmarks.hub --sizes 10000 1000000 --folder DIR

Every fact has the same subject, and the question names it; this is the worst case of a walk. For each size the
benchmark prints how many rows each verb of the store returned, the maximum that the limits of the recipe allow,
and the time of the question. It fails if a limit is exceeded. The embedder is the hashing one, because the
meaning of vectors does not matter here.

Then it prints the processor time of questions about the graph (`related`, `connect`) as a multiple of that of the search,
and how many facts each has looked at.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from waylore import Waylore
from waylore.indexing import pipeline
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN, Recipe
from waylore.retrieval.search import search
from waylore.store.reads import count_items
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER
from waylore.types.identity import document_id
from waylore.types.knowledge import EPOCH, Document, IndexedDocument, NewFact
from waylore.types.relations import Connection, Related
from waylore.types.search import Query

QUESTION = "Which harbour does the Hub supply with grain in winter?"
FACTS_PER_DOCUMENT = 100
BATCH_DOCUMENTS = 50  # written in one transaction
VERBS = (
    "facts_of_entities",
    "facts_of_passages",
    "passages_of_entities",
    "entities_of_passages",
    "entities_by_names",
    "entities",
    "cosines",
    "word_scores",
    "passages",
)


def count_results(verb: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a verb so that it counts the rows that it returns."""

    @wraps(verb)
    def call_and_count(self: "CountingStore", *arguments: Any, **options: Any) -> Any:
        result = verb(self, *arguments, **options)
        self.counts[name] += count_items(result)
        return result

    return call_and_count


class CountingStore(SqliteStore):
    """A store that counts the rows that it returns, by verb."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path
        self.counts: Counter[str] = Counter()


for _name in VERBS:
    setattr(CountingStore, _name, count_results(getattr(SqliteStore, _name), _name))


def compute_limits(recipe: Recipe) -> dict[str, int]:
    """Return the maximum number of rows of each verb in one search that names one entity."""
    walk, linking, chain = recipe.walk, recipe.linking, recipe.chain
    seeds = 1 + 2 * linking.max_facts
    hybrid = max(chain.hybrid, recipe.top_k)
    missing = recipe.hybrid.count_candidates(recipe.top_k)
    candidates = chain.walked + hybrid
    walked = walk.max_entities * walk.passages_per_entity
    return {
        "facts_of_entities": linking.facts_per_entity + (seeds + walk.frontier) * walk.facts_per_entity,
        "facts_of_passages": (linking.hybrid_passages + candidates) * chain.facts_per_passage,
        "passages_of_entities": walked,
        "entities_of_passages": (linking.hybrid_passages + candidates) * walk.entities_per_passage,
        "entities_by_names": linking.max_entities_per_name,
        "entities": seeds,
        "cosines": walked + linking.hybrid_passages + missing,
        "word_scores": missing,
        "passages": candidates + 2 * recipe.top_k,
    }


def make_documents(facts: int) -> Iterator[IndexedDocument]:
    """Make documents with facts about the hub, a hundred facts each."""
    for start in range(0, facts, FACTS_PER_DOCUMENT):
        names = [f"Harbour {i}" for i in range(start, min(start + FACTS_PER_DOCUMENT, facts))]
        document = Document(document_id(uri=f"hub/{start}"), uri=f"hub/{start}")
        text = f"The Hub supplies {names[0]} to {names[-1]} with grain."
        yield pipeline.index_text(document, text, [NewFact("Hub", "supplies", name) for name in names])


def fill_store(path: Path, facts: int) -> CountingStore:
    """Open a store and fill it up to this number of facts."""
    store, embedder = CountingStore(path), HashingEmbedder(64, quiet=True)
    if store.statistics().facts < facts:
        batch: list[IndexedDocument] = []
        for contribution in make_documents(facts):
            batch.append(contribution)
            if len(batch) == BATCH_DOCUMENTS:
                pipeline.write(store, embedder, batch, author=OWNER)
                batch = []
        pipeline.write(store, embedder, batch, author=OWNER)
    return store


def measure_milliseconds(stores: Sequence[CountingStore], recipe: Recipe, runs: int) -> list[float]:
    """Return the median time of the question on each store, without its embedding; the stores take turns."""
    query = Query(QUESTION, HashingEmbedder(64, quiet=True).embed_query(QUESTION))
    taken: list[list[float]] = [[] for _ in stores]
    for _ in range(runs + 1):
        for store, seconds in zip(stores, taken, strict=True):
            store.counts.clear()
            start = time.perf_counter()
            search(store, None, query, recipe, now=EPOCH)
            seconds.append(time.perf_counter() - start)
    return [1000 * float(np.median(seconds[1:])) for seconds in taken]


GRAPH_QUESTIONS: dict[str, Callable[[Waylore], Related | Connection]] = {
    "related to the hub": lambda memory: memory.related("Hub"),
    "related to a harbour": lambda memory: memory.related("Harbour 3"),
    "connect two harbours over the hub": lambda memory: memory.connect("Harbour 3", "Harbour 900"),
    "connect the hub and a harbour": lambda memory: memory.connect("Hub", "Harbour 900"),
    "connect the hub and a stranger": lambda memory: memory.connect("Hub", "Stranger"),
}


def measure_processor(memory: Waylore, ask: Callable[[Waylore], object], runs: int) -> float:
    """Return the median processor time of a question in milliseconds."""
    taken = []
    for _ in range(runs + 1):
        start = time.process_time()
        ask(memory)
        taken.append(time.process_time() - start)
    return 1000 * float(np.median(taken[1:]))


def print_graph_questions(store: CountingStore, runs: int) -> None:
    """Print the time of each question about the graph, compared with a search."""
    with Waylore(SqliteStore(store.path), HashingEmbedder(64, quiet=True), cache=None) as memory:
        memory.add_facts([("Stranger", "knows", "nobody here")], source="file")
        base = measure_processor(memory, lambda m: m.search(QUESTION, method="chain", record_use=False), runs)
        print(f"  a chain search takes {base:.1f} ms of processor time")
        for name, ask in GRAPH_QUESTIONS.items():
            taken, answer = measure_processor(memory, ask, runs), ask(memory)
            looked = f"{answer.facts:,} facts looked at" if isinstance(answer, Connection) else f"{answer.extent} facts"
            print(f"  {name:34s} {taken:6.1f} ms, {taken / base:5.2f}x; {looked}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs=2, default=[10_000, 1_000_000], help="facts of the two hubs")
    parser.add_argument("--folder", type=Path, required=True, help="folder of the stores")
    parser.add_argument("--runs", type=int, default=50, help="number of searches on each store")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    limits = compute_limits(CHAIN)
    stores = [fill_store(options.folder / f"hub-{size}.waylore", size) for size in options.sizes]
    medians = measure_milliseconds(stores, CHAIN, options.runs)
    for store, median in zip(stores, medians, strict=True):
        print(f"\n{store.statistics().facts:,} facts, one hub: {median:.1f} ms")
        for verb in VERBS:
            print(f"  {verb:22s} returned {store.counts[verb]:5d} of at most {limits[verb]:5d}")
        print_graph_questions(store, options.runs)
        exceeded = [verb for verb in VERBS if store.counts[verb] > limits[verb]]
        store.close()
        if exceeded:
            raise SystemExit(f"limits were exceeded by {', '.join(exceeded)}")
    print(f"\n{medians[1] / medians[0]:.2f}x from {options.sizes[0]:,} to {options.sizes[1]:,} facts")


if __name__ == "__main__":
    main()
