"""Draw paths of questions about folders, to be judged by people, and count the judgements.

    python -m benchmarks.paths --folders ../shared/folders --model .cache/models/bge-small
    python -m benchmarks.paths --count benchmarks/judged_paths.jsonl

The first command asks the questions of the split `dev` with the default recipe and draws sixty of the paths of the
best five hits, always the same ones for the same folders and version. A judgement is a line of JSON: the reader, the
question, the rank of the hit, whether the path convinces ("yes, that is why"), and one sentence.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from waylore.evaluation.fit import index_training_folders
from waylore.evaluation.index import add_embedder_options
from waylore.recipes import RECIPES
from waylore.retrieval.search import search
from waylore.types.knowledge import EPOCH
from waylore.types.search import Hit, Query

SAMPLE, SEED, RANKS = 60, 28, 5
Drawn: TypeAlias = tuple[str, str, int, Hit]  # id and text of the question, rank and hit


def list_paths(options: argparse.Namespace) -> Iterator[Drawn]:
    """Yield the best hits of every question that a path led to."""
    for store, embedder, asked in index_training_folders(options):
        for question in (q for q in asked if q.has_answer):
            found = search(store, embedder, Query(question.text), RECIPES["chain"], now=EPOCH)
            yield from (
                (question.id, question.text, rank, hit) for rank, hit in enumerate(found.hits[:RANKS], 1) if hit.path
            )


def show(drawn: Drawn) -> str:
    """Return a path as its judge reads it."""
    id_, question, rank, hit = drawn
    quotes = "\n".join(f"    because: {step.fact.statement}" for step in (hit.path.steps if hit.path else ()))
    return f"{id_} rank {rank}: {question}\n  {hit.path}\n{quotes}\n  [{hit.document.title}] {hit.text[:300]}\n"


def count(path: Path) -> str:
    """Return how many paths convince each reader."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    readers = Counter(row["reader"] for row in rows)
    return "\n".join(
        f"{reader}: {sum(row['convinces'] for row in rows if row['reader'] == reader)} of {total} paths convince"
        for reader, total in readers.items()
    )


def main(arguments: list[str] | None = None) -> None:
    """Draw paths, or count judgements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=Path, help="directory of folders with labelled questions")
    parser.add_argument("--count", type=Path, help="file with judgements")
    add_embedder_options(parser)
    options = parser.parse_args(arguments)
    if options.count:
        print(count(options.count))
        return
    for drawn in random.Random(SEED).sample(sorted(list_paths(options), key=lambda d: (d[0], d[2])), SAMPLE):
        print(show(drawn))


if __name__ == "__main__":
    main()
