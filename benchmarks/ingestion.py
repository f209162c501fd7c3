"""What adding costs: beside the bare embedder on the same texts, and beside adding to an empty store.

    python -m benchmarks.ingestion throughput --data SETS --pages 2000 --potion WEIGHTS --bge WEIGHTS
    python -m benchmarks.ingestion growth --size 100000 --folder growth

`throughput` writes pages of a set as Markdown files, adds the folder with rules for extraction, and then gives the
embedder alone every text that it was given, in the same batches: the ratio says how busy adding keeps it. Bare and
adding take turns, and the best of each counts. `growth` adds the same documents to a small store and to one with
`--size` passages, in turns, with vectors that cost nothing; it prints medians and their ratio.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.corpus import DIMENSION, Corpus
from benchmarks.store_growth import MODEL, grow
from waylore import Waylore
from waylore.evaluation.datasets import load
from waylore.protocols import Embedder, Vectors
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Vector

ROUNDS = 3


@dataclass
class Recording:
    """An embedder that remembers what it was given."""

    embedder: Embedder
    batches: list[list[str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        return self.embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        return self.embedder.embed_query(text)


class Free:
    """Vectors that cost next to nothing: a text's bytes choose one of a few."""

    name, dimension = MODEL, DIMENSION

    def __init__(self, corpus: Corpus) -> None:
        self._vectors = corpus.vectors(1_000)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        numbers = [int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) % 1_000 for text in texts]
        return np.asarray(self._vectors[numbers], dtype=np.float32)

    def embed_query(self, text: str) -> Vector:
        return self.embed_passages([text]).ravel()


def throughput(data: Path, set_: str, pages: int, embedder: Embedder) -> dict[str, Any]:
    """How fast a folder is added, beside the embedder alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pages"
        folder.mkdir()
        for number, page in enumerate(load(data / set_).contributions[:pages]):
            text = "\n\n".join(p.text for p in page.passages)
            (folder / f"{number:06}.md").write_text(f"# {page.document.title}\n\n{text}\n", encoding="utf-8")
        embedder.embed_passages(["warm up"])
        adding, bare = float("inf"), float("inf")
        for round_ in range(ROUNDS):
            recording = Recording(embedder)
            with Waylore.open(Path(name) / f"{round_}.waylore", embedder=recording) as waylore:
                adding = min(adding, seconds(partial(waylore.add_files, folder)))
                stats = waylore.stats()
            bare = min(bare, seconds(partial(list, map(embedder.embed_passages, recording.batches))))
    texts = sum(map(len, recording.batches))
    told = {"passages": stats.passages, "facts": stats.facts, "texts": texts}
    return {"model": embedder.name, **told, "bare": bare, "adding": adding, "ratio": bare / adding}


def seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def growth(size: int, folder: Path, documents: int) -> dict[str, Any]:
    """Milliseconds to add one document to a small store and to a large one."""
    corpus = Corpus()
    large = SqliteStore(folder / f"ingestion.{size}.waylore")
    grow(large, corpus, size)
    with tempfile.TemporaryDirectory() as name, opened(SqliteStore(f"{name}/small.waylore"), corpus) as few:
        few.add("Warm up.")
        with opened(large, corpus) as many:
            took: dict[str, list[float]] = {"small": [], "large": []}
            for number in range(documents):
                text = page(corpus, number)
                for waylore, times in ((few, took["small"]), (many, took["large"])):
                    times.append(1000 * seconds(partial(waylore.add, text, uri="one")))
                    waylore.forget(*(d.id for d in waylore.documents(under="one")))
    small, grown = median(took["small"]), median(took["large"])
    return {"passages": size, "small": small, "large": grown, "ratio": grown / small}


def page(corpus: Corpus, number: int) -> str:
    """A page of prose that names ten entities, some of them known to the large store."""
    named = [f"Entity Number {int(n)}" for n in corpus.random.integers(0, 1_000_000, 10)]
    return "\n\n".join(f"{name} met Page {number}. {corpus.text()}." for name in named)


@contextmanager
def opened(store: SqliteStore, corpus: Corpus) -> Iterator[Waylore]:
    with Waylore(store, Free(corpus)) as waylore:
        yield waylore


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingestion", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parts = parser.add_subparsers(dest="part", required=True)
    busy = parts.add_parser("throughput")
    busy.add_argument("--data", type=Path, required=True)
    busy.add_argument("--set", default="2wikimultihopqa")
    busy.add_argument("--pages", type=int, default=2_000)
    busy.add_argument("--potion", type=Path, help="a folder with potion's weights")
    busy.add_argument("--bge", type=Path, help="a folder with bge-small's weights")
    grown = parts.add_parser("growth")
    grown.add_argument("--size", type=int, default=100_000)
    grown.add_argument("--documents", type=int, default=60)
    grown.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    rows: list[dict[str, Any]]
    if options.part == "growth":
        options.folder.mkdir(parents=True, exist_ok=True)
        rows = [growth(options.size, options.folder, options.documents)]
        line = "one document: {small:.1f} ms to a small store, {large:.1f} ms to {passages:,} passages: {ratio:.2f}x"
    else:
        models: list[Embedder] = [Model2VecEmbedder(options.potion)] if options.potion else []
        models += [FastEmbedder(path=options.bge)] if options.bge else []
        rows = [throughput(options.data, options.set, options.pages, model) for model in models]
        line = (
            "{model}: {texts:,} texts of {passages:,} passages and {facts:,} facts; "
            "bare {bare:.2f} s, adding {adding:.2f} s: {ratio:.0%} of the bare embedder"
        )
    for row in rows:
        print(line.format(**row))
    if options.json:
        options.json.write_text(json.dumps(rows), encoding="utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
