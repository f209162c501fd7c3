"""The work of each kind of job: add a file, import a file, delete all documents, compute new vectors.

Each function reports progress after every written step, and may be stopped there. Written steps are complete, and a
second run does only the remaining steps. This module does not know about queues or HTTP.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from waylore.deadline import check_each
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, NotFound
from waylore.indexing.blocks import Limits
from waylore.indexing.files.progress import AddReport, Progress
from waylore.indexing.importers.dispatch import BATCH_DOCUMENTS, ImportReport
from waylore.protocols import Embedder
from waylore.service.jobs.protocol import Job, JobKind
from waylore.types.author import Author

MAX_LISTED_SKIPS = 100  # skipped files in the result of a job
# Some formats are read into memory completely, so imports have smaller limits than other files.
IMPORT_LIMITS = Limits(bytes=32_000_000, blocks=1_000_000)
ReportProgress: TypeAlias = Callable[[Mapping[str, float]], None]  # raises JobStopped if the run must stop
Result: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobResources:
    """The resources of jobs: collections for an author, the store and the model for `reembed`, limits for files."""

    borrow: Callable[[str, Author], AbstractContextManager[Waylore]]
    store: str
    embedder: Embedder | None
    limits: Limits = field(default_factory=Limits)


def run_add(resources: JobResources, job: Job, report: ReportProgress) -> Result:
    """Add a file under its URI."""
    work = job.work

    def show(progress: Progress) -> None:
        report(asdict(progress))

    with resources.borrow(job.collection, get_author(job)) as waylore:
        added = waylore.add_files(
            _find_upload(work),
            uri=work["uri"],
            metadata=work["metadata"],
            labels=work["labels"],
            limits=resources.limits,
            progress=show,
            expires=work.get("expires"),
        )
    return asdict(_shorten(added))


def run_import(resources: JobResources, job: Job, report: ReportProgress) -> Result:
    """Import a file of another program."""
    work = job.work
    with resources.borrow(job.collection, get_author(job)) as waylore:
        imported = waylore.import_(
            _find_upload(work),
            work["format"],
            uri=work["uri"],
            metadata=work["metadata"],
            labels=work["labels"],
            user=work.get("user", ""),
            limits=IMPORT_LIMITS,
            progress=lambda documents: report({"documents": documents}),
        )
    return asdict(_shorten(imported))


def run_forget(resources: JobResources, job: Job, report: ReportProgress) -> Result:
    """Delete every document of a collection."""
    done = 0
    with resources.borrow(job.collection, get_author(job)) as waylore:
        total = waylore.stats().documents
        for deleted in delete_documents(waylore):
            done += deleted
            report({"documents": done, "of_documents": max(done, total)})
    return {"documents": done}


def delete_documents(waylore: Waylore) -> Iterator[int]:
    """Delete all documents of a collection in batches. Yield the number of documents of each batch."""
    yield from _delete_visible(waylore, "")
    if waylore.stats().documents:
        for user in _list_users(waylore):
            yield from _delete_visible(waylore, user)


def _delete_visible(waylore: Waylore, user: str) -> Iterator[int]:
    """Delete documents of a user, and documents without a user."""
    while documents := waylore.documents(limit=BATCH_DOCUMENTS, user=user, include_expired=True):
        waylore.forget([document.id for document in documents], user=user)
        yield len(documents)


def _list_users(waylore: Waylore) -> Iterator[str]:
    """Yield the users of a collection by name. Users who are forgotten meanwhile change no later page."""
    last = ""
    while page := waylore.users(after=last):
        yield from (each.user for each in check_each(page))
        last = page[-1].user


def run_reembed(resources: JobResources, job: Job, report: ReportProgress) -> Result:
    """Compute the vectors of a collection with the service's model."""
    if resources.embedder is None:
        raise ConfigError("the service has no embedding model; set embedding.provider and restart it")
    vectors = Waylore.reembed(
        resources.store,
        embedder=resources.embedder,
        collection=job.collection,
        author=get_author(job),
        progress=lambda done: report({"vectors": done}),
    )
    return {"vectors": vectors, "model": resources.embedder.name}


RUN_BY_KIND: dict[JobKind, Callable[[JobResources, Job, ReportProgress], Result]] = {
    "add": run_add,
    "import": run_import,
    "forget": run_forget,
    "reembed": run_reembed,
}


def describe_author(author: Author) -> Mapping[str, Any]:
    """Return the labels, the source and the user of a job's author as JSON."""
    labels = None if author.labels is None else sorted(author.labels)
    return {"labels": labels, "max_source": author.max_source, "user": author.user}


def get_author(job: Job) -> Author:
    """Return the author of a job.

    Jobs of earlier releases have no author, or one without a user. If such a job is about a whole collection, its
    caller had all labels. A file to add has the labels of its caller, a file to import only the labels of its
    documents.
    """
    if stored := job.work.get("author"):
        return Author(job.caller, stored["labels"], stored["max_source"], stored.get("user", ""))
    earlier = {"add": job.work.get("sees", ()), "import": job.work.get("labels", ())}
    return Author(job.caller, earlier.get(job.kind))


def _find_upload(work: Mapping[str, Any]) -> Path:
    path = Path(work["file"])
    if not path.exists():
        raise NotFound(f"the uploaded file of {work['uri']} no longer exists; upload it again")
    return path


def _shorten(report: AddReport | ImportReport) -> AddReport | ImportReport:
    return replace(report, skipped=report.skipped[:MAX_LISTED_SKIPS])
