"""Puts a benchmark set into a store, and keeps store and vectors on disk for the next run.

Vectors are cached by text, stores by set and embedder: only the first run embeds. Nothing here searches.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from weft.errors import ConfigError
from weft.evaluation.datasets import Dataset
from weft.indexing import pipeline
from weft.models import Embedder
from weft.providers.cache import CachedEmbedder
from weft.providers.fastembed import FastEmbedder
from weft.providers.hashing import HashingEmbedder
from weft.store import open_store
from weft.store.base import Store

BATCH = 256  # pages that one transaction writes


@contextmanager
def indexed(dataset: Dataset, embedder: Embedder, folder: Path | None) -> Iterator[Store]:
    """A store of the set's pages: in a folder, where it is found again, or for this once."""
    with TemporaryDirectory() as passing:
        place = folder or Path(passing)
        place.mkdir(parents=True, exist_ok=True)
        set_, model = ("".join(c if c.isalnum() else "-" for c in n) for n in (dataset.name, embedder.name))
        store = open_store(str(place / f"{set_}.{model}.weft"), "default")
        try:
            for start in range(0, len(dataset.contributions), BATCH):
                pipeline.write(store, embedder, dataset.contributions[start : start + BATCH])
            yield store
        finally:
            store.close()


def add_embedder_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which embedder to use and what to keep where."""
    parser.add_argument("--embedder", choices=("fastembed", "hashing"), default="fastembed")
    parser.add_argument(
        "--model", type=Path, help="a folder with the embedder's weights; else they are fetched"
    )
    parser.add_argument("--vectors", type=Path, help="the folder to keep vectors in")
    parser.add_argument("--folder", type=Path, help="the folder to keep indexed sets in")


def chosen_embedder(options: argparse.Namespace) -> Embedder:
    """The embedder that the options name."""
    if options.embedder == "hashing":
        return HashingEmbedder(quiet=True)
    if options.model is not None and not options.model.exists():
        raise ConfigError(f"there is no model in {options.model}")
    embedder = FastEmbedder(path=options.model, threads=1)
    return CachedEmbedder(embedder, options.vectors) if options.vectors else embedder
