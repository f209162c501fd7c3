"""The baseline to beat: personalised PageRank over the whole graph of a set, in HippoRAG 2's way.

    python -m benchmarks.pagerank --data DATA --sets musique --model DIR --vectors DIR --json pagerank.json

Entities and passages are nodes; facts, mentions and names that lie close are edges. The five facts nearest to the
question restart the walk at their ends, every passage lightly by its cosine, and passages come in the order of their
rank (Gutiérrez et al., 2025, "From RAG to Memory"; constants are those of its code). It holds the whole graph in
memory and walks all of it for every question, which is what Waylore does not do. It has no LLM filter over the facts,
keeps all their ends where HippoRAG's code keeps the best five (which costs 2Wiki two points of R@5), and knows no
scopes: it is not for sets whose questions look within one. Seconds run from the text of a question to its ranking, with a cached vector.
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

from waylore.evaluation.datasets import Dataset, load
from waylore.evaluation.index import add_embedder_options, chosen_embedder
from waylore.evaluation.metrics import recall
from waylore.protocols import Embedder, Vectors
from waylore.types.knowledge import Embeddable, Vector

DAMPING = 0.5
FACTS = 5
PASSAGE_WEIGHT = 0.05
SYNONYM = 0.8
SYNONYMS = 100
SHORTEST_NAME = 3
ROUNDS = 30  # what is left of the walk halves in each, to a billionth
BLOCK = 512
CHUNK = 5_000
RANKED = 20
CUTS = (2, 5, 10, 20)
HEAD = f"{'set':20}{'questions':>10}" + "".join(f"{f'R@{k}':>7}" for k in CUTS) + f"{'ms':>7}"

Weights = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Graph:
    """A set in memory: the nodes are its entities and then its passages, `steps` the way from column to row."""

    uris: tuple[str, ...]
    passages: Vectors
    facts: Vectors
    ends: Numbers
    mentioned: Numbers
    steps: csr_array


def graph_of(dataset: Dataset, embedder: Embedder) -> Graph:
    """The graph of a set, with the vectors that questions are compared with."""
    pages = dataset.contributions
    entities = {entity.id: entity for page in pages for entity in page.entities}
    facts = {fact.id: fact for page in pages for fact in page.facts}
    number = {id_: i for i, id_ in enumerate(entities)}
    mentions = mentions_of(dataset, number)
    told = [[number[end] for end in fact.ends] for page in pages for fact in page.facts]
    names = synonyms([e.name for e in entities.values()], embedded(entities.values(), embedder))
    return Graph(
        uris=tuple(page.document.uri for page in pages for _ in page.passages),
        passages=embedded([passage for page in pages for passage in page.passages], embedder),
        facts=embedded(facts.values(), embedder),
        ends=pairs([[number[end] for end in fact.ends] for fact in facts.values()]),
        mentioned=np.bincount(mentions.indices, minlength=len(entities)),
        steps=steps(joined(told, len(entities)) + names, mentions),
    )


def mentions_of(dataset: Dataset, entities: dict[str, int]) -> csr_array:
    """Which passage mentions which entity; how often does not count."""
    pages = dataset.contributions
    ids = [passage.id for page in pages for passage in page.passages]
    passages = {id_: i for i, id_ in enumerate(ids)}
    found = {(passages[m.passage_id], entities[m.entity_id]) for page in pages for m in page.mentions}
    return counted(sorted(found), (len(ids), len(entities)))


def embedded(things: Iterable[Embeddable], embedder: Embedder) -> Vectors:
    """A row for each thing; in chunks, so that a run that is stopped keeps what it has embedded."""
    texts = [thing.embeddable for thing in things]
    chunks = [embedder.embed_passages(texts[i : i + CHUNK]) for i in range(0, len(texts) or 1, CHUNK)]
    return np.concatenate(chunks)


def pairs(rows: Sequence[Sequence[int]]) -> Numbers:
    """Rows of two numbers as an array, also where there are none."""
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def counted(rows: Sequence[Sequence[int]], shape: tuple[int, int]) -> csr_array:
    """How often each pair occurs."""
    found = pairs(rows)
    return csr_array((np.ones(len(found)), (found[:, 0], found[:, 1])), shape=shape)


def joined(told: Sequence[Sequence[int]], size: int) -> csr_array:
    """How often facts join each two entities, whichever is the subject; nothing is joined to itself."""
    one_way = counted([ends for ends in told if ends[0] != ends[1]], (size, size))
    return one_way + one_way.T


def synonyms(names: Sequence[str], vectors: Vectors) -> csr_array:
    """The cosine of each two names that lie close; names too short to mean one thing are left out."""
    long = np.flatnonzero([sum(map(str.isalnum, name)) >= SHORTEST_NAME for name in names])
    compared = vectors[long]
    blocks = [close(compared, start) for start in range(0, len(long) or 1, BLOCK)]
    rows, columns, cosines = (np.concatenate(part) for part in zip(*blocks, strict=True))
    one_way = csr_array((cosines, (long[rows], long[columns])), shape=(len(names), len(names)))
    return one_way.maximum(one_way.T)


def close(vectors: Vectors, start: int) -> tuple[Numbers, Numbers, Weights]:
    """Which vectors lie close to those of the block at `start`: rows, columns and cosines."""
    cosines = vectors[start : start + BLOCK] @ vectors.T
    block = np.arange(len(cosines))
    cosines[block, start + block] = 0
    is_close = cosines >= SYNONYM
    for row in np.flatnonzero(is_close.sum(axis=1) > SYNONYMS):
        is_close[row, np.argpartition(-cosines[row], SYNONYMS)[SYNONYMS:]] = False
    rows, columns = np.nonzero(is_close)
    return start + rows, columns, cosines[rows, columns].astype(np.float64)


def steps(entities: csr_array, mentions: csr_array) -> csr_array:
    """What share of a node's rank goes to each of its neighbours; a column sums to 1, or 0 if it has none."""
    edges = block_array([[entities, mentions.T], [mentions, None]], format="csr")
    degrees = edges.sum(axis=0)
    return (edges @ diags_array(1 / np.where(degrees > 0, degrees, 1))).tocsr()


def ranked(graph: Graph, question: Vector) -> list[str]:
    """The documents of the best passages by PageRank, best first."""
    rank = pagerank(graph.steps, restarts(graph, question))
    return [graph.uris[number] for number in best(rank[len(graph.mentioned) :], RANKED)]


def restarts(graph: Graph, question: Vector) -> Weights:
    """Where the walk restarts: at the ends of the best facts, rare ones first, and lightly at every passage."""
    entities = np.zeros(len(graph.mentioned))
    scores = scaled(graph.facts @ question)
    chosen = best(scores, FACTS)
    ends, place = np.unique(graph.ends[chosen], return_inverse=True)
    sums = np.bincount(place.ravel(), weights=np.repeat(scores[chosen], 2))
    entities[ends] = sums / np.bincount(place.ravel()) / graph.mentioned[ends]
    passages = PASSAGE_WEIGHT * scaled(graph.passages @ question)
    weights = np.concatenate([entities, passages])
    normalised: Weights = weights / weights.sum()
    return normalised


def pagerank(transitions: csr_array, restart: Weights) -> Weights:
    """The rank of every node by power iteration."""
    rank = restart
    for _ in range(ROUNDS):
        rank = DAMPING * (transitions @ rank) + (1 - DAMPING) * restart
    return rank


def scaled(scores: npt.NDArray[np.floating[Any]]) -> Weights:
    """Scores moved to 0..1; all 1 where they are the same."""
    wide = scores.astype(np.float64)
    if not wide.size or wide.max() == wide.min():
        return np.ones_like(wide)
    moved: Weights = (wide - wide.min()) / (wide.max() - wide.min())
    return moved


def best(scores: Weights, count: int) -> Numbers:
    """The places of the highest scores, best first."""
    top = np.argpartition(-scores, count)[:count] if len(scores) > count else np.arange(len(scores))
    return top[np.argsort(-scores[top])]


def measure(dataset: Dataset, embedder: Embedder) -> dict[str, Any]:
    """Every question of a set, ranked: a run as waylore.evaluation reads it."""
    start = time.perf_counter()
    graph = graph_of(dataset, embedder)
    took = time.perf_counter() - start
    nodes, edges = graph.steps.shape[0], graph.steps.nnz // 2
    print(f"{dataset.name}: {nodes:,} nodes, {edges:,} edges in {took:.0f} s", file=sys.stderr, flush=True)
    asked = []
    for question in dataset.questions:
        start = time.perf_counter()
        uris = ranked(graph, embedder.embed_query(question.text))
        asked.append({"id": question.id, "ranked": uris, "seconds": time.perf_counter() - start})
    return {"set": dataset.name, "recipe": "pagerank", "embedder": embedder.name, "questions": asked}


def line(dataset: Dataset, run: dict[str, Any]) -> str:
    """What was measured on a set: recall in per cent, and the median of milliseconds."""
    gold = {question.id: question.gold for question in dataset.questions}
    recalls = [np.mean([recall(q["ranked"], gold[q["id"]], k) for q in run["questions"]]) for k in CUTS]
    median = 1000 * np.median([q["seconds"] for q in run["questions"]])
    cells = "".join(f"{100 * value:>7.1f}" for value in recalls)
    return f"{dataset.name:20}{len(gold):>10}{cells}{median:>7.0f}"


def main() -> None:
    """Load, rank, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    arguments.add_argument("--sets", nargs="+", default=["2wikimultihopqa", "musique", "hotpotqa"])
    arguments.add_argument("--sample", type=int, help="so many questions of each set, evenly spread")
    arguments.add_argument("--json", type=Path)
    add_embedder_options(arguments)
    given = arguments.parse_args()
    runs = []
    print(HEAD, flush=True)
    embedder = chosen_embedder(given)
    for name in given.sets:
        dataset = load(given.data / name, sample=given.sample)
        runs.append(measure(dataset, embedder))
        print(line(dataset, runs[-1]), flush=True)
        if given.json:
            given.json.write_text(json.dumps({"runs": runs}))


if __name__ == "__main__":
    main()
