"""Measure the cost of adding, compared with the bare embedder and with adding to an empty store.

    python -m benchmarks.ingestion throughput --data SETS --pages 2000 --potion WEIGHTS --bge WEIGHTS
    python -m benchmarks.ingestion growth --size 100000 --folder growth

`throughput` writes pages of a set as Markdown files and adds the folder with the rule extractor. Then it runs
the embedder alone on the same texts in the same batches. The ratio of the two times shows how busy adding keeps
the embedder. The two take turns, and the best time of each is used. `growth` adds the same documents to a small
store and to one with `--size` passages, in turns, with vectors that take no time. It prints the medians and
their ratio.
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
from benchmarks.store_growth import MODEL, fill_store
from waylore import Waylore
from waylore.evaluation.datasets import read_dataset
from waylore.protocols import Embedder, Vectors
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Vector

ROUNDS = 3


@dataclass
class RecordingEmbedder:
    """An embedder that records the texts that it embeds."""

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


class FreeEmbedder:
    """An embedder that takes almost no time: it selects one of a thousand vectors by a hash of the text."""

    name, dimension = MODEL, DIMENSION

    def __init__(self, corpus: Corpus) -> None:
        self._vectors = corpus.make_vectors(1_000)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        numbers = [int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) % 1_000 for text in texts]
        return np.asarray(self._vectors[numbers], dtype=np.float32)

    def embed_query(self, text: str) -> Vector:
        return self.embed_passages([text]).ravel()


def write_pages(dataset: Path, number: int, folder: Path) -> None:
    """Write the first pages of a set as Markdown files into a new folder."""
    folder.mkdir()
    for place, page in enumerate(read_dataset(dataset).pages[:number]):
        text = "\n\n".join(p.text for p in page.passages)
        (folder / f"{place:06}.md").write_text(f"# {page.document.title}\n\n{text}\n", encoding="utf-8")


def measure_throughput(data: Path, set_: str, pages: int, embedder: Embedder) -> dict[str, Any]:
    """Measure the seconds to add a folder, and those of the embedder alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pages"
        write_pages(data / set_, pages, folder)
        embedder.embed_passages(["warm up"])
        adding, bare = float("inf"), float("inf")
        for round_ in range(ROUNDS):
            recording = RecordingEmbedder(embedder)
            with Waylore.open(Path(name) / f"{round_}.waylore", embedder=recording) as waylore:
                adding = min(adding, measure_seconds(partial(waylore.add_files, folder)))
                stats = waylore.stats()
            bare = min(bare, measure_seconds(partial(list, map(embedder.embed_passages, recording.batches))))
    texts = sum(map(len, recording.batches))
    counts = {"passages": stats.passages, "facts": stats.facts, "texts": texts}
    return {"model": embedder.name, **counts, "bare": bare, "adding": adding, "ratio": bare / adding}


def measure_seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure_growth(size: int, folder: Path, documents: int) -> dict[str, Any]:
    """Measure the milliseconds to add one document to a small store and to a large one."""
    corpus = Corpus()
    large = SqliteStore(folder / f"ingestion.{size}.waylore")
    fill_store(large, corpus, size)
    with (
        tempfile.TemporaryDirectory() as name,
        open_waylore(SqliteStore(f"{name}/small.waylore"), corpus) as few,
    ):
        few.add("Warm up.")
        with open_waylore(large, corpus) as many:
            took: dict[str, list[float]] = {"small": [], "large": []}
            for number in range(documents):
                text = make_page(corpus, number)
                for waylore, times in ((few, took["small"]), (many, took["large"])):
                    times.append(1000 * measure_seconds(partial(waylore.add, text, uri="one")))
                    waylore.forget(*(d.id for d in waylore.documents(under="one")))
    small, grown = median(took["small"]), median(took["large"])
    return {"passages": size, "small": small, "large": grown, "ratio": grown / small}


def make_page(corpus: Corpus, number: int) -> str:
    """Make a page of prose that names ten entities, some of them known to the large store."""
    named = [f"Entity Number {int(n)}" for n in corpus.random.integers(0, 1_000_000, 10)]
    return "\n\n".join(f"{name} met Page {number}. {corpus.make_text()}." for name in named)


@contextmanager
def open_waylore(store: SqliteStore, corpus: Corpus) -> Iterator[Waylore]:
    with Waylore(store, FreeEmbedder(corpus)) as waylore:
        yield waylore


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingestion", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parts = parser.add_subparsers(dest="part", required=True)
    busy = parts.add_parser("throughput")
    busy.add_argument("--data", type=Path, required=True, help="folder of the sets")
    busy.add_argument("--set", default="2wikimultihopqa", help="name of the set")
    busy.add_argument("--pages", type=int, default=2_000, help="number of pages")
    busy.add_argument("--potion", type=Path, help="folder with the weights of potion")
    busy.add_argument("--bge", type=Path, help="folder with the weights of bge-small")
    grown = parts.add_parser("growth")
    grown.add_argument("--size", type=int, default=100_000, help="passages of the large store")
    grown.add_argument("--documents", type=int, default=60, help="number of documents to add")
    grown.add_argument("--folder", type=Path, required=True, help="folder of the large store")
    options = parser.parse_args()
    rows: list[dict[str, Any]]
    if options.part == "growth":
        options.folder.mkdir(parents=True, exist_ok=True)
        rows = [measure_growth(options.size, options.folder, options.documents)]
        line = (
            "one document takes {small:.1f} ms in a small store and {large:.1f} ms in one with {passages:,} "
            "passages: {ratio:.2f}x"
        )
    else:
        models: list[Embedder] = [Model2VecEmbedder(options.potion)] if options.potion else []
        models += [FastEmbedder(path=options.bge)] if options.bge else []
        rows = [measure_throughput(options.data, options.set, options.pages, model) for model in models]
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
