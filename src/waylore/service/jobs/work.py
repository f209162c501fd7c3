"""What each kind of job does, through the engine: add a file, import one, forget all, embed anew.

Each tells how far it is after every step that is written, and may be stopped there: what is written is whole,
and doing it again does only what is left. Nothing here knows of queues or of HTTP.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from waylore.engine.waylore import BATCH, Waylore
from waylore.errors import ConfigError, Forbidden, NotFound
from waylore.indexing.blocks import Limits
from waylore.indexing.files.progress import Added, Progress
from waylore.indexing.importers.dispatch import Imported
from waylore.protocols import Embedder
from waylore.service.jobs.protocol import Job, Kind
from waylore.types.identity import file_of
from waylore.types.knowledge import Document

SHOWN = 100  # refusals that a job's result keeps
IMPORTED = Limits(
    bytes=32_000_000, blocks=1_000_000
)  # a file that must be held whole is held to less than usual
Tell: TypeAlias = Callable[[Mapping[str, float]], None]
Result: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """What jobs work with: collections to be lent, and what `reembed` gives to one."""

    lent: Callable[[str], AbstractContextManager[Waylore]]
    store: str
    embedder: Embedder | None


def added(bench: Bench, job: Job, tell: Tell) -> Result:
    """Add a file under its address."""
    work = job.work

    def show(progress: Progress) -> None:
        tell(asdict(progress))

    with bench.lent(job.collection) as waylore:
        _check_address(waylore, work["uri"], work["sees"])
        done = waylore.add_files(
            _file(work), uri=work["uri"], metadata=work["metadata"], labels=work["labels"], progress=show
        )
    return asdict(_short(done))


def imported(bench: Bench, job: Job, tell: Tell) -> Result:
    """Import what another program knows from a file."""
    work = job.work
    with bench.lent(job.collection) as waylore:
        done = waylore.import_from(
            _file(work),
            work["format"],
            uri=work["uri"],
            metadata=work["metadata"],
            labels=work["labels"],
            limits=IMPORTED,
            progress=lambda documents: tell({"documents": documents}),
        )
    return asdict(_short(done))


def forgotten(bench: Bench, job: Job, tell: Tell) -> Result:
    """Forget every document of a collection."""
    done = 0
    with bench.lent(job.collection) as waylore:
        total = waylore.stats().documents
        for gone in emptied(waylore):
            done += gone
            tell({"documents": done, "of_documents": max(done, total)})
    return {"documents": done}


def emptied(waylore: Waylore) -> Iterator[int]:
    """Forget all that a collection holds, a batch at a time; how many documents each was."""
    while documents := waylore.documents(limit=BATCH):
        waylore.forget(*(document.id for document in documents))
        yield len(documents)


def reembedded(bench: Bench, job: Job, tell: Tell) -> Result:
    """Give a collection the vectors of the service's own model."""
    if bench.embedder is None:
        raise ConfigError("there is no model to embed with: set embedding.provider, and start the service anew")
    made = Waylore.reembed(
        bench.store,
        embedder=bench.embedder,
        collection=job.collection,
        progress=lambda vectors: tell({"vectors": vectors}),
    )
    return {"vectors": made, "model": bench.embedder.name}


DOES: dict[Kind, Callable[[Bench, Job, Tell], Result]] = {
    "add": added,
    "import": imported,
    "forget": forgotten,
    "reembed": reembedded,
}


def _check_address(waylore: Waylore, uri: str, sees: Sequence[str] | None) -> None:
    """A file replaces what has its address: that must not be something that the caller may not see."""
    if sees is not None and any(
        document.labels and document.labels.isdisjoint(sees) for document in _documents_of(waylore, uri)
    ):
        raise Forbidden(f"documents that you may not see have the address {uri}: choose another")


def _documents_of(waylore: Waylore, uri: str) -> Iterator[Document]:
    for under in (uri, f"{uri}#"):
        last: Document | None = None
        while page := waylore.documents(under=under, after=last, limit=BATCH):
            last = page[-1]
            yield from (document for document in page if file_of(document.uri) == uri)
            if file_of(last.uri) != uri:
                break


def _file(work: Mapping[str, Any]) -> Path:
    path = Path(work["file"])
    if not path.exists():
        raise NotFound(f"what was uploaded as {work['uri']} is no longer here: upload it again")
    return path


def _short(done: Added | Imported) -> Added | Imported:
    return replace(done, refusals=done.refusals[:SHOWN])
