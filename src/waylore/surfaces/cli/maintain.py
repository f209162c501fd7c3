"""`waylore compact`, `export`, `audit`, `reembed`, `tune` and `eval`: maintain an existing collection."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from waylore.engine.answers import describe_mismatch
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.protocols import Embedder
from waylore.service.salvage import salvage as salvage_file
from waylore.settings.sections import Settings
from waylore.store.protocol import Store
from waylore.store.urls import open_store
from waylore.surfaces.cli.options import (
    CollectionName,
    StoreUrl,
    find_file,
    load_settings,
    open_without_models,
)
from waylore.surfaces.open import create_embedder
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import (
    AsJson,
    handle_interrupt,
    print_result,
    report_errors,
    show_progress,
    show_status,
)
from waylore.types.audit import AuditEntry, find_break

if TYPE_CHECKING:
    from waylore.evaluation.tune import Tuning

AUDIT_PAGE = 1_000  # entries that are read at a time


def compact(store: StoreUrl = "", collection: CollectionName = "", as_json: AsJson = False) -> None:
    """Rewrite the store without the unused bytes that forgetting leaves.

    Takes as long as copying the store. Other processes cannot write meanwhile.

    Example: `waylore compact`
    """
    with open_without_models(store, collection) as memory, show_status("compacting"):
        file = find_file(load_settings(store, collection))
        before = _measure(file) if file else 0
        memory.compact()
    if file is None:
        print_result({}, "compacted", as_json)
    else:
        after = _measure(file)
        people = f"compacted: {figures.format_bytes(before)} → {figures.format_bytes(after)}"
        print_result({"bytes_before": before, "bytes_after": after}, people, as_json)


def _measure(file: Path) -> int:
    """Return the size of a store that is one file, with its write-ahead log."""
    file = file.resolve()
    return sum(part.stat().st_size for part in (file, file.with_name(f"{file.name}-wal")) if part.exists())


def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write; - is standard output.", show_default=False)
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Skip damaged documents of a damaged file; exits with 1 if there are any.")
    ] = False,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Write the collection to a file of JSON lines; `waylore import` reads it.

    Vectors are included. The same knowledge gives the same bytes.

    Example: `waylore export memory.jsonl`
    """
    with (
        _choose_store(store, collection, salvage=salvage) as (whole, damaged),
        open_without_models(whole, collection) as memory,
        handle_interrupt("Run the same command again."),
    ):
        if str(file) == "-":
            _export_to_stdout(memory)
            raise typer.Exit(1 if damaged else 0)
        if file.exists() and not force:
            raise ConfigError(f"{file} exists already; name another file, or replace it with --force")
        total = memory.stats().documents
        with show_progress(f"exporting to {file.name}") as show:
            written = memory.export(file, progress=lambda done: show(done, total, f"{done:,}/{total:,}"))
        result = {"file": str(file), "documents": written, **({"damaged": damaged} if salvage else {})}
        skipped = f", {shown.count(len(damaged), 'damaged document')} left out" if damaged else ""
        print_result(result, f"{shown.count(written, 'document')} in {file}{skipped}", as_json)
        if damaged:
            raise typer.Exit(1)


@contextmanager
def _choose_store(store: str, collection: str, *, salvage: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the store to export. To salvage, yield a store with the intact documents, and a list of damaged ones."""
    if not salvage:
        yield store, []
        return
    with report_errors(), TemporaryDirectory() as folder:
        settings, new = load_settings(store, collection), Path(folder) / "whole.waylore"
        found = salvage_file(settings.store, new)
        yield str(new), [each.uri or each.id for each in found.damaged if each.collection == settings.collection]


def _export_to_stdout(memory: Waylore) -> None:
    for line in memory.export_lines():
        sys.stdout.write(line)
    sys.stdout.flush()


def audit(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Number of newest entries.")] = 50,
    author: Annotated[str, typer.Option("--author", metavar="NAME", help="Only changes of this author.")] = "",
    keys: Annotated[bool, typer.Option("--keys", help="Changes of the service's API keys instead.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check that no entry was changed or taken out.")] = False,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show the changes with their authors and times, without content.

    Exits with 1 if `--verify` finds an entry that does not match the hash of the previous one.

    Example: `waylore audit --author key:4f1c --verify`
    """
    with _open_log(store, collection, of_keys=keys) as log:
        entries = _list_newest(log, limit, author)
        broken = find_break(_list_entries(log)) if verify else None
    rows = [entry.to_dict() for entry in entries]
    result = {"entries": rows, "broken_at": broken.number if broken else None} if verify else rows
    print_result(result, figures.render_audit(entries, is_whole=broken is None if verify else None), as_json)
    if broken:
        raise typer.Exit(1)


class AuditLog(Protocol):
    """A collection, or the registry of API keys."""

    def audit(self, *, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Return entries after a number, oldest first."""
        ...


@contextmanager
def _open_log(store: str, collection: str, *, of_keys: bool) -> Iterator[AuditLog]:
    if not of_keys:
        with open_without_models(store, collection) as memory:
            yield memory
        return
    from waylore.service.registry.open import open_registry  # noqa: PLC0415 (other commands do not need it)

    with report_errors(), closing(open_registry(load_settings(store, collection).store)) as registry:
        yield registry


def _list_newest(log: AuditLog, limit: int, author: str) -> list[AuditEntry]:
    """Return the newest entries, of an author if one is given. Reads backwards, no further than needed."""
    found = list[AuditEntry]()
    page = log.audit(after=-AUDIT_PAGE, limit=AUDIT_PAGE)
    while page and len(found) < limit:
        found[:0] = [entry for entry in page if author in ("", entry.author)]
        first = page[0].number
        earlier = log.audit(after=max(first - 1 - AUDIT_PAGE, 0), limit=AUDIT_PAGE) if first > 1 else ()
        page = tuple(entry for entry in earlier if entry.number < first)  # old entries may have been deleted
    return found[-limit:]


def _list_entries(log: AuditLog) -> Iterator[AuditEntry]:
    """Yield all entries of an audit log, oldest first."""
    last = 0
    while page := log.audit(after=last, limit=AUDIT_PAGE):
        yield from page
        last = page[-1].number


def reembed(store: StoreUrl = "", collection: CollectionName = "", as_json: AsJson = False) -> None:
    """Give the collection the embedding model of the settings.

    Searches use the old vectors until all new ones exist. An interrupted run continues when it is run again.

    Example: `waylore reembed`
    """
    with report_errors(), handle_interrupt("Run the same command again to continue."):
        settings = load_settings(store, collection)
        embedder = _require_embedder(settings)
        with closing(open_store(settings.store, settings.collection)) as opened:
            known = opened.statistics()
        total = known.passages + known.entities + known.facts
        with show_progress(f"embedding with {embedder.name}") as show:
            made = Waylore.reembed(
                settings.store,
                embedder=embedder,
                collection=settings.collection,
                progress=lambda done: show(done, total, f"{done:,}/{total:,}"),
            )
        people = f"embedded {made:,} texts with {embedder.name}" if made else f"already has {embedder.name}"
        print_result({"vectors": made, "model": embedder.name}, people, as_json)


def tune(
    questions: Annotated[
        Path | None,
        typer.Option("--questions", metavar="FILE", help="Your questions, as for `waylore eval`.", show_default=False),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Return to the shipped weights.")] = False,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Fit the weights of the graph search to the collection, and store them if they answer your questions better.

    Each question is answered with weights that were fitted without it. Without questions of your own, some are made
    from facts of the collection, and the result is only shown. Searches name the weights that they use.

    Example: `waylore tune --questions questions.jsonl`
    """
    from waylore.evaluation.tune import store_weights  # noqa: PLC0415 (imports what other commands do not need)

    with report_errors(), handle_interrupt("Nothing was changed."):
        settings = load_settings(store, collection)
        with closing(open_store(settings.store, settings.collection)) as opened:
            if reset:
                store_weights(opened, ())
                print_result({"is_stored": False}, "searches use the shipped weights", as_json)
                return
            found = _fit(opened, _require_embedder(settings), questions)
            if found.is_better:
                store_weights(opened, found.weights)
        print_result({**found.to_dict(), "is_stored": found.is_better}, found.describe(), as_json)


def _fit(store: Store, embedder: Embedder, questions: Path | None) -> "Tuning":
    """Fit weights to a collection whose vectors are of this embedder."""
    from waylore.evaluation.folders.questions import read_questions  # noqa: PLC0415 (others do not need them)
    from waylore.evaluation.tune import tune  # noqa: PLC0415

    if mismatch := describe_mismatch(store.statistics(), embedder):
        raise ConfigError(mismatch)
    asked = read_questions(questions) if questions else ()
    with show_progress("reading made questions") as show:
        return tune(store, embedder, asked, lambda done, total: show(done, total, f"{done}/{total}"))


def _require_embedder(settings: Settings) -> Embedder:
    """Return the embedder of the settings."""
    embedder = create_embedder(settings.embedding)
    if embedder is None:
        raise ConfigError("no embedder is set; set embedding.provider in waylore.toml, or WAYLORE_EMBEDDING_PROVIDER")
    return embedder


def evaluate(context: typer.Context) -> None:
    """Measure how well recipes answer questions about a folder of files, or questions of benchmark sets.

    Example: `waylore eval docs --questions questions.jsonl`
    """
    from waylore.evaluation.__main__ import run  # noqa: PLC0415 (imports models that other commands do not need)

    with report_errors():
        run(context.args, prog="waylore eval", create_default=lambda: create_embedder(load_settings("", "").embedding))
