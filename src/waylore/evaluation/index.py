"""Puts a benchmark set into a store, and keeps store and vectors for the next run.

Vectors are cached by text, sets by their name and the embedder's: only the first run embeds and writes. A set
is a file in a folder, a collection on a server, or, in cells, several collections that are searched as one.
Nothing here searches.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from waylore.errors import ConfigError
from waylore.evaluation.datasets import Dataset
from waylore.indexing import pipeline
from waylore.indexing.assembly import assembled
from waylore.protocols import Embedder, Extractor
from waylore.providers.embedders.cached import CachedEmbedder
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.protocol import Store
from waylore.store.urls import open_store, parse_url
from waylore.types.knowledge import Contribution

BATCH = 256  # pages that one transaction writes
SPREAD = 3  # collections that a set is spread over in cells


@contextmanager
def indexed(
    dataset: Dataset, embedder: Embedder, folder: Path | None = None, url: str | None = None
) -> Iterator[Store]:
    """A store of the set's pages: at an address or in a folder, where it is found again, or for this once."""
    set_, model = ("".join(c if c.isalnum() else "-" for c in n) for n in (dataset.name, embedder.name))
    name = f"{set_}.{model}"
    with ExitStack() as stack:
        if url is None:
            place = folder or Path(stack.enter_context(TemporaryDirectory()))
            place.mkdir(parents=True, exist_ok=True)
            url, name = str(place / f"{name}.waylore"), "default"
        parts = (
            _spread(name, dataset.contributions) if parse_url(url).is_cells else {name: dataset.contributions}
        )
        for part, pages in parts.items():
            _fill(url, part, pages, embedder)
        yield stack.enter_context(closing(open_store(url, ",".join(parts))))


def _spread(name: str, pages: Sequence[Contribution]) -> dict[str, Sequence[Contribution]]:
    """Pages by collection, at random, but each always in the same."""
    numbers = range(SPREAD)
    return {f"{name}.{n}": [p for p in pages if int(p.document.id, 16) % SPREAD == n] for n in numbers}


def _fill(url: str, collection: str, pages: Sequence[Contribution], embedder: Embedder) -> None:
    """Write what is not there yet."""
    with closing(open_store(url, collection)) as store:
        for few in pipeline.batches(pages, BATCH):
            pipeline.write(store, embedder, few)


def add_embedder_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which embedder to use, what to keep where, and in which store sets are."""
    parser.add_argument("--embedder", choices=("fastembed", "hashing"), default="fastembed")
    parser.add_argument(
        "--model", type=Path, help="a folder with the embedder's weights; else they are fetched"
    )
    parser.add_argument("--vectors", type=Path, help="the folder to keep vectors in")
    parser.add_argument("--folder", type=Path, help="the folder to keep indexed sets in")
    parser.add_argument(
        "--store",
        metavar="URL",
        help="keep them there instead: postgresql://…, or cells+ a catalogue, spread over three collections",
    )


def chosen_embedder(options: argparse.Namespace) -> Embedder:
    """The embedder that the options name."""
    if options.embedder == "hashing":
        return HashingEmbedder(quiet=True)
    if options.model is not None and not options.model.exists():
        raise ConfigError(f"there is no model in {options.model}")
    embedder = FastEmbedder(path=options.model, threads=1)
    return CachedEmbedder(embedder, options.vectors) if options.vectors else embedder


def from_text(dataset: Dataset, extractor: Extractor) -> Dataset:
    """The set as an extractor reads it."""
    pages = [
        assembled(page.document, page.passages, extractor.extract(page.document, page.passages))
        for page in dataset.contributions
    ]
    return replace(dataset, name=f"{dataset.name}, {extractor.name}", contributions=tuple(pages))
