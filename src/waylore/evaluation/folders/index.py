"""Index a folder as a user does, measure the cost, and read the stored names and relations of its pages."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.evaluation.folders.labels import LabelledPage, StoredPage
from waylore.evaluation.folders.scoring import normalise_path
from waylore.evaluation.index import choose_store
from waylore.indexing.files.processes import kill_idle
from waylore.indexing.files.progress import Progress
from waylore.protocols import Embedder, Vectors
from waylore.providers.embedders.cached import CachedEmbedder
from waylore.types.identity import identity
from waylore.types.knowledge import Document, Vector

DOCUMENTS_PER_PAGE = 1_000
DIGITS = 8  # of the id of a path, in the name of its collection


class CountingEmbedder:
    """An embedder that counts the passages that it embeds."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.texts = 0

    @property
    def name(self) -> str:
        """The name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """The length of the wrapped embedder's vectors."""
        return self._embedder.dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        self.texts += len(texts)
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question."""
        return self._embedder.embed_query(text)


@dataclass(frozen=True, slots=True)
class EmbedderWithCache:
    """An embedder that may read vectors from a cache, and counters of both sides of the cache."""

    embedder: Embedder | None
    requested: CountingEmbedder | None = None
    embedded: CountingEmbedder | None = None

    @property
    def name(self) -> str:
        """The name of the embedder."""
        return self.embedder.name if self.embedder else "no embedder"

    def count(self) -> tuple[int, int]:
        """Return how many texts were requested, and how many of them the model embedded."""
        return (self.requested.texts, self.embedded.texts) if self.requested and self.embedded else (0, 0)


@dataclass(frozen=True, slots=True)
class IndexCosts:
    """The cost and the result of indexing a folder. Vectors of `texts - embedded` texts were cached.

    `unchanged` files were indexed by an earlier run, so the processor time is not that of the folder.
    """

    files: int
    unchanged: int
    skipped: tuple[str, ...]
    documents: int
    passages: int
    entities: int
    facts: int
    texts: int
    embedded: int
    processor_seconds: float

    @property
    def seconds_per_file(self) -> float:
        """The processor time of a file that was read, in seconds."""
        return self.processor_seconds / max(self.files - self.unchanged, 1)


@contextmanager
def open_cached(embedder: Embedder | None, vectors: Path | None) -> Iterator[EmbedderWithCache]:
    """Wrap an embedder in counters and, with a folder for vectors, in a cache."""
    if embedder is None:
        yield EmbedderWithCache(None)
        return
    embedded = CountingEmbedder(embedder)
    if vectors is None:
        yield EmbedderWithCache(embedded, embedded, embedded)
        return
    with CachedEmbedder(embedded, vectors) as cached:
        requested = CountingEmbedder(cached)
        yield EmbedderWithCache(requested, requested, embedded)


@contextmanager
def open_memory(files: Path, model: EmbedderWithCache, folder: Path | None, url: str | None) -> Iterator[Waylore]:
    """Open a collection for a folder of files: at `url` or in `folder`, which is reused, or a temporary one."""
    with (
        choose_folder_store(files, model, folder, url) as (address, collection),
        Waylore.open(address, collection=collection, embedder=model.embedder, cache=None) as memory,
    ):
        yield memory


def choose_folder_store(
    files: Path, model: EmbedderWithCache, folder: Path | None, url: str | None
) -> AbstractContextManager[tuple[str, str]]:
    """Return address and collection for a folder of files. Folders with different paths have different collections."""
    place = files.resolve()
    return choose_store(f"{place.name}-{identity('folder', str(place))[:DIGITS]}", model.embedder, folder, url)


def index_folder(
    memory: Waylore, files: Path, model: EmbedderWithCache, progress: Callable[[Progress], None] = lambda _: None
) -> IndexCosts:
    """Add a folder with the defaults of `add_files`, and measure it. A reused collection forgets deleted files."""
    if not files.is_dir():
        raise NotFound(f"no folder {files}; pass a folder of files")
    requested, embedded = model.count()
    began = _measure_processor()
    report = memory.add_files(files, root=files, prune=True, progress=progress)
    seconds = _measure_processor() - began
    known, (texts, new) = memory.stats(), model.count()
    return IndexCosts(
        files=report.files,
        unchanged=report.unchanged,
        skipped=tuple(f"{one.uri}: {one.reason}" for one in report.skipped),
        documents=known.documents,
        passages=known.passages,
        entities=known.entities,
        facts=known.facts,
        texts=texts - requested,
        embedded=new - embedded,
        processor_seconds=seconds,
    )


def _measure_processor() -> float:
    """Return the processor time of this process and of the ended processes that read files for it."""
    kill_idle()  # the time of a process counts when it has ended
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def list_documents(memory: Waylore) -> Iterator[Document]:
    """Yield every document of a collection by address."""
    last: Document | None = None
    while page := memory.documents(after=last, limit=DOCUMENTS_PER_PAGE):
        yield from page
        last = page[-1]


def read_stored(memory: Waylore, page: LabelledPage) -> StoredPage:
    """Return the stored names and relations of a labelled page."""
    listed = memory.documents(under=page.path)
    stored = [memory.get(document.id) for document in listed if normalise_path(document.uri) == page.path]
    names = dict.fromkeys(entity.name for each in stored for entity in each.entities)
    relations = dict.fromkeys((fact.subject, fact.predicate, fact.object) for each in stored for fact in each.facts)
    return StoredPage(tuple(names), tuple(relations))
