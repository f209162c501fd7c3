"""`waylore add`, `import` and `enrich`: put files, texts, exports and facts that a model reads into a collection.

The engine does the work. A command that is interrupted continues when it is run again.
"""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from waylore.engine.transfer import EXPORT
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.fence import to_line
from waylore.indexing.blocks import Limits
from waylore.indexing.exports import is_export
from waylore.indexing.files.progress import AddReport, Progress, merge_reports
from waylore.indexing.importers.dispatch import AUTO, FORMATS, ImportReport
from waylore.settings.sections import Settings
from waylore.surfaces import wire
from waylore.surfaces.cli.options import (
    At,
    CollectionName,
    Expires,
    StoreUrl,
    UserName,
    Where,
    build_filter,
    find_file,
    load_settings,
    open_for_search,
    open_for_writing,
    open_without_models,
    read_metadata,
)
from waylore.surfaces.cli.options import Labels as ReaderLabels
from waylore.surfaces.cli.setup import set_up_if_unset
from waylore.surfaces.open import create_llm_extractor
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import (
    AsJson,
    Show,
    handle_interrupt,
    print_result,
    report_errors,
    show_progress,
)
from waylore.types.knowledge import Metadata

Labels = Annotated[
    list[str],
    typer.Option(
        "--label", "-l", metavar="LABEL", help="Label that a reader needs; without any, every caller may read."
    ),
]
Pairs = Annotated[list[str], typer.Option("--metadata", metavar="KEY=VALUE", help="Metadata of the documents.")]


# -- add -----------------------------------------------------------------------------------------------


def add(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Files and folders; - reads a text from standard input."),
    ] = None,
    text: Annotated[str, typer.Option(help="Text to add instead of files.")] = "",
    title: Annotated[str, typer.Option(help="Title of the text.")] = "",
    uri: Annotated[str, typer.Option(help="Address of the text; a text with the same address is replaced.")] = "",
    label: Labels = [],  # noqa: B006
    metadata: Pairs = [],  # noqa: B006
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Base folder of addresses; that of waylore.toml if absent. Other files get absolute paths.",
        ),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Forget documents of files that no longer exist.")] = False,
    user: UserName = "",
    at: At = None,
    expires: Expires = None,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Add files, folders, or one text.

    An unchanged file costs a hash; a changed one replaces its documents. `.gitignore` is respected. An interrupted run
    continues when it is run again. If the folder is not set up, it is set up first, as by `waylore init`.

    Example: `waylore add docs README.md --label staff`
    """
    with report_errors():
        settings = load_settings(store, collection)
        files = _check_paths(paths or [], text, settings)
        if files and (title or uri):
            raise ConfigError("--title and --uri are for one text; a file has its own")
        if files and (user or at):
            raise ConfigError("--user and --at are for one text; `waylore remember` reads conversations of a user")
        if (prune or root) and not files:
            raise ConfigError("--prune and --root are for files and folders; name one")
        check_labels(label)
        set_up_if_unset(store, collection)
    with (
        open_for_writing(store, collection) as memory,
        handle_interrupt("Run the same command again to continue."),
    ):
        about = read_metadata(metadata)
        if files:
            limits = Limits(seconds=settings.files.seconds)
            report = merge_reports([_add(memory, path, root, label, about, prune, limits, expires) for path in files])
            print_report(report, as_json)
        else:
            given = text or sys.stdin.read()
            id_ = memory.add(
                given, title=title, uri=uri, metadata=about, labels=label, user=user, at=at, expires=expires
            )
            added = f"added {uri or title or 'a text'} as {id_}{shown.describe_secrets(id_.left_out)}"
            print_result({"document": id_, "left_out": dict(id_.left_out)}, added, as_json)


def _check_paths(paths: Sequence[str], text: str, settings: Settings) -> list[Path]:
    """Return the files and folders to add; none if one text is added."""
    if bool(text) == bool(paths) or ("-" in paths and len(paths) > 1):
        raise ConfigError("give files and folders, or --text, or - for standard input")
    files = [Path(path) for path in paths if path != "-"]
    own = find_file(settings)
    for path in files:
        if not path.exists():
            raise ConfigError(f"no file or folder {path}; check the path")
        if own and own.exists() and path.samefile(own):
            raise ConfigError(f"{path} is the store itself; `waylore export` writes its content to a file")
    return files


def check_labels(labels: Sequence[str]) -> None:
    """Raise ConfigError if a label is empty."""
    if not all(label.strip() for label in labels):
        raise ConfigError("--label must not be empty; leave it out if every caller may read")


def _add(
    memory: Waylore,
    path: Path,
    root: Path | None,
    labels: Sequence[str],
    metadata: Metadata,
    prune: bool,
    limits: Limits,
    expires: datetime | None,
) -> AddReport:
    with show_progress(f"adding {to_line(path.name or str(path))}") as show:

        def show_files(progress: Progress) -> None:
            counts = f"{progress.files:,}/{progress.of_files:,} files  {progress.passages:,} passages"
            show(progress.bytes, progress.of_bytes, counts)

        return memory.add_files(
            path,
            root=root,
            labels=labels,
            metadata=metadata,
            limits=limits,
            prune=prune,
            progress=show_files,
            expires=expires,
        )


def print_report(report: AddReport, as_json: bool) -> None:
    """Print the result of adding files. If no file could be read, the exit code is 1."""
    people = Group(Text(_summarise_report(report)), *figures.list_skipped(report.skipped, report.skipped_count))
    print_result(wire.AddReport.of(report), people, as_json)
    if report.is_refused:
        raise typer.Exit(1)


def _summarise_report(report: AddReport) -> str:
    """Return the result of adding files as one line."""
    content = f"{shown.count(report.passages, 'passage')}, {shown.count(report.facts, 'fact')}"
    nothing = "nothing could be read" if report.is_refused else "nothing new"
    new = f"{shown.count(report.documents, 'document')} added ({content})" if report.documents else nothing
    forgotten = f", {shown.count(report.forgotten, 'document')} forgotten" if report.forgotten else ""
    unchanged = f", {report.unchanged:,} unchanged" if report.unchanged else ""
    secrets = shown.describe_secrets(report.left_out)
    return f"{shown.count(report.files, 'file')}: {new}{unchanged}{forgotten}{secrets}, in {report.seconds:.1f} s"


# -- import --------------------------------------------------------------------------------------------


def _complete_format(incomplete: str) -> list[str]:
    return [name for name in (AUTO, EXPORT, *FORMATS) if name.startswith(incomplete)]


def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File, or a folder of GraphRAG's output.", show_default=False)
    ],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help=f"{', '.join((AUTO, EXPORT, *FORMATS))}.",
            autocompletion=_complete_format,
        ),
    ] = AUTO,
    user: UserName = "",
    label: Labels = [],  # noqa: B006
    metadata: Pairs = [],  # noqa: B006
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Import an export of Waylore, or the data of another program.

    Formats: triples, research papers, the graphs of GraphRAG and LightRAG, an MCP memory, exports of mem0 and Zep.
    Importing the same file again changes nothing.

    Example: `waylore import memory.jsonl`
    """
    with report_errors():
        check_labels(label)
        set_up_if_unset(store, collection)
    with (
        open_for_writing(store, collection) as memory,
        handle_interrupt("Run the same command again to continue."),
        show_progress(f"importing {to_line(file.name)}") as show,
    ):
        if (label or metadata) and (format_ == EXPORT or is_export(file)):
            raise ConfigError("an export has its own labels and metadata; leave out --label and --metadata")
        if user and (format_ == EXPORT or is_export(file)):
            raise ConfigError("an export has its own users; leave out --user")
        report = memory.import_(
            file, format_, user=user, labels=label, metadata=read_metadata(metadata), progress=_count_documents(show)
        )
    with report_errors():
        people = Group(Text(_summarise_import(report)), *figures.list_skipped(report.skipped, report.skipped_count))
        print_result(wire.ImportReport.of(report), people, as_json)
        if not report.documents and report.skipped_count:
            raise ConfigError(f"no part of {file} could be imported")


def _count_documents(show: Show) -> Callable[[int], None]:
    return lambda done: show(done, None, f"{done:,} documents")


def _summarise_import(report: ImportReport) -> str:
    skipped = f", {report.skipped_count:,} skipped" if report.skipped_count else ""
    repeated = f", {report.repeated:,} repeated" if report.repeated else ""
    name = f" ({report.format})" if report.format else ""
    documents = shown.count(report.documents, "document")
    secrets = shown.describe_secrets(report.left_out)
    return f"{documents}{name}: {report.written:,} new or changed{repeated}{skipped}{secrets}"


# -- enrich --------------------------------------------------------------------------------------------


def enrich(
    budget: Annotated[int, typer.Option("--budget", metavar="TOKENS", min=0, help="Maximum tokens to spend.")] = 0,
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="Language model; extraction.model if absent.")
    ] = "",
    label: ReaderLabels = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    user: UserName = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Maximum number of passages.")] = 1_000,
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="Run to continue, or the name of a new one.")] = "",
    undo: Annotated[
        str, typer.Option("--undo", metavar="RUN", help="Remove the facts of a run, and read nothing.")
    ] = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Let a language model add facts to the passages that are hits most often, within a budget.

    With --label or --where, it reads the passages that these options select. Added facts are staged, and never hits.

    Example: `waylore enrich --budget 200000 --model qwen2.5:7b`
    """
    if undo:
        _undo_enrichment(undo, store, collection, as_json)
        return
    with report_errors():
        if not budget:
            raise ConfigError("--budget is missing: name the maximum number of tokens that the model may cost")
        named = {"max_tokens": budget, **({"model": model} if model else {})}
        wanted = load_settings(store, collection).extraction.model_copy(update=named)
    with open_for_search(store, collection, "hybrid") as memory, create_llm_extractor(wanted) as extractor:
        name = run or f"{memory.now():%Y%m%d-%H%M%S}"
        selected = build_filter(label, where)
        with (
            handle_interrupt(f"Run the same command with --run {name} to continue."),
            show_progress(f"reading with {extractor.name}") as show,
        ):
            added = memory.enrich(
                extractor,
                where=selected,
                user=user,
                limit=limit,
                run=name,
                progress=lambda done: show(done.read, limit, f"{done.read:,} passages, {done.facts:,} facts"),
            )
        cost = extractor.report
    result = {
        **added.to_dict(),
        "calls": cost.calls,
        "from_cache": cost.from_cache,
        "tokens_sent": cost.tokens.sent,
        "tokens_answered": cost.tokens.answered,
    }
    print_result(result, f"{added}\n{cost}\nundo it with `waylore enrich --undo {name}`", as_json)


def _undo_enrichment(run: str, store: str, collection: str, as_json: bool) -> None:
    with open_without_models(store, collection) as memory:
        receipt = memory.undo_enrichment(run)
    removed = f"removed what run {run} added to {shown.count(len(receipt.documents), 'passage')}"
    print_result(wire.Receipt.of(receipt), f"{removed}: {shown.count(len(receipt.facts), 'fact')}", as_json)
