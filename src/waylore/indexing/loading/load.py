"""Load the files of a path or a URL into one or several collections, and report the result.

The store is the checkpoint. A file with a fingerprint is only compared. In other files, documents that are already
stored are not embedded again. So a killed run continues when it is started again, from any machine, and there is no
second record of progress that could disagree with the store.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from waylore.indexing import pipeline
from waylore.indexing.files.compare import LOOKUP_SIZE, KnownFile, list_file_documents
from waylore.indexing.files.progress import AddReport, Progress
from waylore.indexing.loading.job import LoadJob, LoadRunner, StoredDigests
from waylore.indexing.loading.ledger import LoadLedger, finish_files
from waylore.indexing.loading.sources import find_files, group_files, look_up
from waylore.store.protocol import Store

FINISHED_FILES = 64  # complete files whose fingerprints are written together
Start = Callable[[LoadJob, Sequence[Store]], LoadRunner]


def load_files(
    source: str, job: LoadJob, stores: Sequence[Store], start: Start, show: Callable[[Progress], None]
) -> AddReport:
    """Load the new and changed files of a source, with the processes that `start` gives."""
    began = time.monotonic()
    found = find_files(source, job.task)
    ledger = LoadLedger(found.count, found.bytes)
    job = replace(job, are_empty=not any(store.list_all_documents(limit=1) for store in stores))
    if not job.are_empty:
        job = replace(job, stored=StoredDigests(_list_stored(look_up(found, stores, job.task), stores)))
    forgotten = 0
    with closing(start(job, stores)) as runner:
        for outcome in runner.run(group_files(look_up(found, stores, job.task), job.unit_bytes)):
            ledger.take(outcome)
            if runner.can_write and ledger.waiting >= FINISHED_FILES:
                forgotten += _finish(ledger, job, stores, runner)
            show(_describe(ledger, began))
        forgotten += _finish(ledger, job, stores, runner)
    skipped = [*found.skipped.reported, *ledger.skipped.reported]
    return replace(
        ledger.report,
        forgotten=forgotten,
        skipped=tuple(skipped),
        skipped_count=found.skipped.count + ledger.skipped.count,
        seconds=time.monotonic() - began,
    )


def _list_stored(files: Iterable[KnownFile], stores: Sequence[Store]) -> Iterator[tuple[str, str]]:
    """Yield id and digest of each stored document whose file is unfinished, because a run was killed."""
    begun = (uri for file in files for uri, known in file.stored.items() if not known.content)
    for uri in dict.fromkeys(begun):
        for store in stores:
            for batch in pipeline.split_into_batches(list_file_documents(store, uri), LOOKUP_SIZE):
                yield from store.digests([document.id for document in batch]).items()


def _finish(ledger: LoadLedger, job: LoadJob, stores: Sequence[Store], runner: LoadRunner) -> int:
    """Write the fingerprints of complete files to every collection; return the number of removed documents."""
    removed = 0
    for files in pipeline.split_into_batches(ledger.pop_complete(), FINISHED_FILES):
        for number, store in enumerate(stores):
            finish = partial(finish_files, store, files, job.task.author, was_empty=job.are_empty)
            removed += runner.write(number, finish)
    return removed


def _describe(ledger: LoadLedger, began: float) -> Progress:
    report = ledger.report
    seconds = time.monotonic() - began
    return replace(ledger.progress, passages=report.passages, facts=report.facts, seconds=seconds)
