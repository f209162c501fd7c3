"""Move knowledge between files and stores: export, import, and give a collection another embedding model."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from waylore.errors import ArgumentError, ModelMismatch
from waylore.indexing import exports, pipeline
from waylore.indexing.importers.dispatch import BATCH_DOCUMENTS, ImportReport
from waylore.protocols import Embedder
from waylore.store.protocol import Store
from waylore.system import open_private
from waylore.types.author import Author

EXPORT = "waylore"  # the name of the format that `export` writes


def export_file(store: Store, path: Path, progress: Callable[[int], None]) -> int:
    """Write a collection to a file and return the number of documents.

    An older file is replaced only when the new one is complete, and keeps its mode. A new file is private.
    """
    if path.is_dir():
        raise ArgumentError(f"path {path} cannot be written: it is a folder; name a file")
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "w", encoding="utf-8", opener=open_private) as file:
            documents = pipeline.report_progress(store.export(), progress)
            written = exports.write_export(store.statistics(), documents, file)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except OSError as error:
        raise ArgumentError(f"path {path} cannot be written: {error.strerror}; name a file in a folder") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return written


def import_export(
    store: Store, embedder: Embedder | None, path: Path, progress: Callable[[int], None], *, author: Author
) -> ImportReport:
    """Add everything from an export, vectors included. Vectors of another model are refused before writing.

    An export names the ids of entities and facts, which documents share, and their vectors. A limited author could use
    them to change the hits of others, so it may not import an export.
    """
    author.require_all()
    with path.open(encoding="utf-8") as file:
        model, documents = exports.read_export(file)
        if embedder and model not in (None, embedder.name):
            raise ModelMismatch(
                f"the export has vectors of {model}, not of {embedder.name}: open the store with that model, or "
                "without an embedder and run `waylore reembed` afterwards"
            )
        read = written = 0
        for batch in pipeline.split_into_batches(pipeline.report_progress(documents, progress), BATCH_DOCUMENTS):
            read += len(batch)
            if embedder and model is None:
                written += pipeline.write(store, embedder, batch, author=author)
            else:
                written += store.write(batch, author=author, model=model)
    return ImportReport(EXPORT, documents=read, written=written)


def reembed_store(store: Store, embedder: Embedder, progress: Callable[[int], None], *, author: Author) -> int:
    """Make vectors with another model and then use them; resume where an interrupted run stopped."""
    done = 0
    is_done = store.statistics().model == embedder.name
    while not is_done:
        while items := store.list_unembedded(embedder.name, limit=BATCH_DOCUMENTS):
            vectors = pipeline.embed_texts(items, embedder)
            made = [replace(item, vector=vectors[item.embeddable]) for item in items]
            store.stage_vectors(made, author=author, model=embedder.name)
            done += len(made)
            progress(done)
        is_done = store.activate_model(embedder.name, author=author)
    return done
