"""Measure a baseline: personalised PageRank over the whole graph of a set, as in HippoRAG 2.

    python -m benchmarks.pagerank --data DATA --sets musique --model DIR --vectors DIR --json pagerank.json

Entities and passages are nodes. Facts, mentions and similar names are edges. The walk restarts at the ends of
the five facts nearest to the question and, with a small weight, at every passage by its cosine. Passages are
ordered by their rank (Gutiérrez et al., 2025, "From RAG to Memory"; the constants are those of its code). The
baseline holds the whole graph in memory and walks all of it for every question, which Waylore does not do. It
has no LLM filter over the facts. It uses the ends of all five facts, while HippoRAG's code uses the best five
ends (which costs two points of R@5 on 2Wiki). It has no scopes, so it cannot be used for sets whose questions
search within one. The time runs from the text of a question to its ranking, with a cached vector.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import block_array, csr_array, diags_array

from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.evaluation.index import add_embedder_options, create_embedder
from waylore.evaluation.metrics import compute_recall
from waylore.protocols import Embedder, Vectors
from waylore.types.knowledge import Embeddable, Vector

DAMPING = 0.5
MAX_FACTS = 5
PASSAGE_WEIGHT = 0.05
MIN_SYNONYM_COSINE = 0.8
MAX_SYNONYMS = 100
MIN_NAME_LENGTH = 3
ROUNDS = 30  # the error halves in each round, down to a billionth
BLOCK_ROWS = 512
CHUNK_TEXTS = 5_000
MAX_RANKED = 20
CUTS = (2, 5, 10, 20)
HEAD = f"{'set':20}{'questions':>10}" + "".join(f"{f'R@{k}':>7}" for k in CUTS) + f"{'ms':>7}"

Weights = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Graph:
    """A set in memory. The nodes are its entities, then its passages. `steps` leads from column to row."""

    uris: tuple[str, ...]
    passages: Vectors
    facts: Vectors
    ends: Numbers
    mentioned: Numbers
    steps: csr_array


def build_graph(dataset: Dataset, embedder: Embedder) -> Graph:
    """Build the graph of a set, with the vectors that questions are compared with."""
    pages = dataset.pages
    entities = {entity.id: entity for page in pages for entity in page.entities}
    facts = {fact.id: fact for page in pages for fact in page.facts}
    number = {id_: i for i, id_ in enumerate(entities)}
    mentions = build_mentions(dataset, number)
    ends_of_facts = [[number[end] for end in fact.ends] for page in pages for fact in page.facts]
    names = find_synonyms([e.name for e in entities.values()], embed_all(entities.values(), embedder))
    return Graph(
        uris=tuple(page.document.uri for page in pages for _ in page.passages),
        passages=embed_all([passage for page in pages for passage in page.passages], embedder),
        facts=embed_all(facts.values(), embedder),
        ends=to_pairs([[number[end] for end in fact.ends] for fact in facts.values()]),
        mentioned=np.bincount(mentions.indices, minlength=len(entities)),
        steps=build_steps(count_facts(ends_of_facts, len(entities)) + names, mentions),
    )


def build_mentions(dataset: Dataset, entities: dict[str, int]) -> csr_array:
    """Return which passage mentions which entity; repeated mentions count once."""
    pages = dataset.pages
    ids = [passage.id for page in pages for passage in page.passages]
    passages = {id_: i for i, id_ in enumerate(ids)}
    found = {(passages[m.passage_id], entities[m.entity_id]) for page in pages for m in page.mentions}
    return count_pairs(sorted(found), (len(ids), len(entities)))


def embed_all(things: Iterable[Embeddable], embedder: Embedder) -> Vectors:
    """Return a row for each item. Embed in chunks, so that an interrupted run has cached the earlier ones."""
    texts = [thing.embeddable for thing in things]
    chunks = [embedder.embed_passages(texts[i : i + CHUNK_TEXTS]) for i in range(0, len(texts) or 1, CHUNK_TEXTS)]
    return np.concatenate(chunks)


def to_pairs(rows: Sequence[Sequence[int]]) -> Numbers:
    """Convert rows of two numbers to an array, which may be empty."""
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def count_pairs(rows: Sequence[Sequence[int]], shape: tuple[int, int]) -> csr_array:
    """Return how often each pair occurs."""
    found = to_pairs(rows)
    return csr_array((np.ones(len(found)), (found[:, 0], found[:, 1])), shape=shape)


def count_facts(ends_of_facts: Sequence[Sequence[int]], size: int) -> csr_array:
    """Return how many facts connect each pair of entities, in either direction, without loops."""
    one_way = count_pairs([ends for ends in ends_of_facts if ends[0] != ends[1]], (size, size))
    return one_way + one_way.T


def find_synonyms(names: Sequence[str], vectors: Vectors) -> csr_array:
    """Return the cosine of each pair of similar names; very short names are ambiguous and left out."""
    long = np.flatnonzero([sum(map(str.isalnum, name)) >= MIN_NAME_LENGTH for name in names])
    compared = vectors[long]
    blocks = [find_close(compared, start) for start in range(0, len(long) or 1, BLOCK_ROWS)]
    rows, columns, cosines = (np.concatenate(part) for part in zip(*blocks, strict=True))
    one_way = csr_array((cosines, (long[rows], long[columns])), shape=(len(names), len(names)))
    return one_way.maximum(one_way.T)


def find_close(vectors: Vectors, start: int) -> tuple[Numbers, Numbers, Weights]:
    """Find the vectors that are close to those of the block at `start`: rows, columns and cosines."""
    cosines = vectors[start : start + BLOCK_ROWS] @ vectors.T
    block = np.arange(len(cosines))
    cosines[block, start + block] = 0
    is_close = cosines >= MIN_SYNONYM_COSINE
    for row in np.flatnonzero(is_close.sum(axis=1) > MAX_SYNONYMS):
        is_close[row, np.argpartition(-cosines[row], MAX_SYNONYMS)[MAX_SYNONYMS:]] = False
    rows, columns = np.nonzero(is_close)
    return start + rows, columns, cosines[rows, columns].astype(np.float64)


def build_steps(entities: csr_array, mentions: csr_array) -> csr_array:
    """Return the share of a node's rank that each neighbour gets; a column sums to 1, or to 0 without any."""
    edges = block_array([[entities, mentions.T], [mentions, None]], format="csr")
    degrees = edges.sum(axis=0)
    return (edges @ diags_array(1 / np.where(degrees > 0, degrees, 1))).tocsr()


def rank_documents(graph: Graph, question: Vector) -> list[str]:
    """Return the documents of the best passages by PageRank, best first."""
    rank = compute_pagerank(graph.steps, compute_restarts(graph, question))
    return [graph.uris[number] for number in find_best(rank[len(graph.mentioned) :], MAX_RANKED)]


def compute_restarts(graph: Graph, question: Vector) -> Weights:
    """Return the restart weights: at the ends of the best facts, more for rare ones, and at all passages."""
    entities = np.zeros(len(graph.mentioned))
    scores = scale_scores(graph.facts @ question)
    chosen = find_best(scores, MAX_FACTS)
    ends, place = np.unique(graph.ends[chosen], return_inverse=True)
    sums = np.bincount(place.ravel(), weights=np.repeat(scores[chosen], 2))
    entities[ends] = sums / np.bincount(place.ravel()) / graph.mentioned[ends]
    passages = PASSAGE_WEIGHT * scale_scores(graph.passages @ question)
    weights = np.concatenate([entities, passages])
    normalised: Weights = weights / weights.sum()
    return normalised


def compute_pagerank(transitions: csr_array, restart: Weights) -> Weights:
    """Compute the rank of every node by power iteration."""
    rank = restart
    for _ in range(ROUNDS):
        rank = DAMPING * (transitions @ rank) + (1 - DAMPING) * restart
    return rank


def scale_scores(scores: npt.NDArray[np.floating[Any]]) -> Weights:
    """Scale scores to 0..1; return ones if all are equal."""
    wide = scores.astype(np.float64)
    if not wide.size or wide.max() == wide.min():
        return np.ones_like(wide)
    moved: Weights = (wide - wide.min()) / (wide.max() - wide.min())
    return moved


def find_best(scores: Weights, count: int) -> Numbers:
    """Return the indexes of the highest scores, best first."""
    top = np.argpartition(-scores, count)[:count] if len(scores) > count else np.arange(len(scores))
    return top[np.argsort(-scores[top])]


def measure_dataset(dataset: Dataset, embedder: Embedder) -> dict[str, Any]:
    """Rank every question of a set and return a run in the format of `waylore.evaluation`."""
    start = time.perf_counter()
    graph = build_graph(dataset, embedder)
    took = time.perf_counter() - start
    nodes, edges = graph.steps.shape[0], graph.steps.nnz // 2
    print(f"{dataset.name}: {nodes:,} nodes, {edges:,} edges in {took:.0f} s", file=sys.stderr, flush=True)
    results = []
    for question in dataset.questions:
        start = time.perf_counter()
        uris = rank_documents(graph, embedder.embed_query(question.text))
        results.append({"id": question.id, "ranked": uris, "seconds": time.perf_counter() - start})
    return {"set": dataset.name, "recipe": "pagerank", "embedder": embedder.name, "questions": results}


def format_line(dataset: Dataset, run: dict[str, Any]) -> str:
    """Format the figures of a set: recall in percent, and the median time in milliseconds."""
    gold = {question.id: question.gold for question in dataset.questions}
    recalls = [np.mean([compute_recall(q["ranked"], gold[q["id"]], k) for q in run["questions"]]) for k in CUTS]
    median = 1000 * np.median([q["seconds"] for q in run["questions"]])
    cells = "".join(f"{100 * value:>7.1f}" for value in recalls)
    return f"{dataset.name:20}{len(gold):>10}{cells}{median:>7.0f}"


def main() -> None:
    """Measure each set and print a line."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, required=True, help="folder of the sets")
    arguments.add_argument(
        "--sets", nargs="+", default=["2wikimultihopqa", "musique", "hotpotqa"], help="names of sets"
    )
    arguments.add_argument("--sample", type=int, help="number of questions of each set, evenly spread")
    arguments.add_argument("--json", type=Path, help="file for the runs")
    add_embedder_options(arguments)
    given = arguments.parse_args()
    runs = []
    print(HEAD, flush=True)
    embedder = create_embedder(given)
    for name in given.sets:
        dataset = read_dataset(given.data / name, sample=given.sample)
        runs.append(measure_dataset(dataset, embedder))
        print(format_line(dataset, runs[-1]), flush=True)
        if given.json:
            given.json.write_text(json.dumps({"runs": runs}))


if __name__ == "__main__":
    main()
