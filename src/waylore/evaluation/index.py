"""Index a benchmark set in a store, and reuse the store and the vectors in the next run.

Vectors are cached by text, sets by their name and the embedder's name, so only the first run embeds and writes. A set
is a file in a folder, a collection on a server, or, in cells, several collections that are searched as one. This module
does not search.
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
from waylore.indexing.assembly import assemble_document
from waylore.protocols import Embedder, Extractor
from waylore.providers.embedders.cached import CachedEmbedder
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder
from waylore.store.protocol import Store
from waylore.store.urls import open_store, parse_url
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument

PAGES_PER_TRANSACTION = 256
COLLECTIONS_PER_SET = 3  # in cells


@contextmanager
def open_indexed(
    dataset: Dataset, embedder: Embedder, folder: Path | None = None, url: str | None = None
) -> Iterator[Store]:
    """Open a store with the set's pages: at `url` or in `folder`, which is reused, or a temporary one."""
    with choose_store(dataset.name, embedder, folder, url) as (address, name):
        parts = _spread(name, dataset.pages) if parse_url(address).is_cells else {name: dataset.pages}
        for part, pages in parts.items():
            _fill(address, part, pages, embedder)
        with closing(open_store(address, ",".join(parts))) as store:
            yield store


@contextmanager
def choose_store(
    name: str, embedder: Embedder | None, folder: Path | None = None, url: str | None = None
) -> Iterator[tuple[str, str]]:
    """Return address and collection for a set of this name and embedder. A temporary file is deleted at the end."""
    names = (name, embedder.name if embedder else "words")
    collection = ".".join("".join(c if c.isalnum() else "-" for c in each) for each in names)
    with ExitStack() as stack:
        if url is None:
            directory = folder or Path(stack.enter_context(TemporaryDirectory()))
            directory.mkdir(parents=True, exist_ok=True)
            url, collection = str(directory / f"{collection}.waylore"), "default"
        yield url, collection


def _spread(name: str, pages: Sequence[IndexedDocument]) -> dict[str, Sequence[IndexedDocument]]:
    """Split pages over collections by their id, so that a page is always in the same collection."""
    numbers = range(COLLECTIONS_PER_SET)
    return {f"{name}.{n}": [p for p in pages if int(p.document.id, 16) % COLLECTIONS_PER_SET == n] for n in numbers}


def _fill(url: str, collection: str, pages: Sequence[IndexedDocument], embedder: Embedder) -> None:
    """Write the pages that are not stored yet."""
    with closing(open_store(url, collection)) as store:
        for few in pipeline.split_into_batches(pages, PAGES_PER_TRANSACTION):
            pipeline.write(store, embedder, few, author=OWNER)


def add_embedder_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the embedder, the caches and the store of the sets."""
    parser.add_argument("--embedder", choices=("fastembed", "model2vec", "hashing"), default="fastembed")
    parser.add_argument("--model", type=Path, help="Folder with the embedder's weights; without it they are downloaded")
    parser.add_argument("--name", help="Name that fastembed has for the model in that folder; default: bge-small")
    parser.add_argument("--vectors", type=Path, help="Folder for cached vectors")
    parser.add_argument("--folder", type=Path, help="Folder for the stores of sets or folders, which are reused")
    parser.add_argument(
        "--store",
        metavar="URL",
        help="Store for them instead: postgresql://…, or cells+ and a catalogue (three collections)",
    )


def create_embedder(options: argparse.Namespace) -> Embedder:
    """Create the embedder that the options name."""
    embedder = load_embedder(options.embedder, options.model, options.name)
    is_cached = options.vectors and options.embedder != "hashing"
    return CachedEmbedder(embedder, options.vectors) if is_cached else embedder


def load_embedder(kind: str | None, path: Path | None, name: str | None = None) -> Embedder:
    """Load the embedder of a kind (None means fastembed), with its default model or the model in `path`.

    `name` is fastembed's name for the model in `path`; fastembed needs it to run the model.
    """
    if kind == "hashing":
        return HashingEmbedder(quiet=True)
    if path is not None and not path.exists():
        raise ConfigError(f"no model in {path}; pass the folder of its weights")
    if kind == "model2vec":
        return Model2VecEmbedder() if path is None else Model2VecEmbedder(path)
    return FastEmbedder(name, path=path, threads=1) if name else FastEmbedder(path=path, threads=1)


def extract_from_text(dataset: Dataset, extractor: Extractor) -> Dataset:
    """Return the set with facts that an extractor reads from its text."""
    pages = [
        assemble_document(page.document, page.passages, extractor.extract(page.document, page.passages))
        for page in dataset.pages
    ]
    return replace(dataset, name=f"{dataset.name}, {extractor.name}", pages=tuple(pages))
