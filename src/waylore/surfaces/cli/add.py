"""`waylore init`, `add` and `import`: how a collection comes to be, and what goes into it.

`init` writes settings and loads the model once; adding is the engine's. All of it may be stopped at any moment
and run again.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.indexing.exports import is_export
from waylore.indexing.files.progress import Added, Progress
from waylore.indexing.importers.dispatch import AUTO, FORMATS, Imported
from waylore.settings.load import Settings
from waylore.surfaces import wire
from waylore.surfaces.cli.options import InCollection, StoreAt, file_of, metadata_of, settings_of, using
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, Show, progressing, stoppable, tell, told_errors

EXPORT = "waylore"  # the format of our own exports
Labels = Annotated[
    list[str], typer.Option("--label", "-l", metavar="LABEL", help="Who may read it: everyone, without one.")
]
Pairs = Annotated[list[str], typer.Option("--metadata", metavar="KEY=VALUE", help="What is known of it.")]


# -- add -----------------------------------------------------------------------------------------------


def add(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Files and folders; - reads a text from standard input.")
    ] = None,
    text: Annotated[str, typer.Option(help="Add this text instead.")] = "",
    title: Annotated[str, typer.Option(help="What a text is called.")] = "",
    uri: Annotated[str, typer.Option(help="A text's address: it replaces what was there.")] = "",
    label: Labels = [],  # noqa: B006
    metadata: Pairs = [],  # noqa: B006
    prune: Annotated[bool, typer.Option("--prune", help="Forget files that are no longer there.")] = False,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Add files, folders, or one text.

    What did not change costs a hash, what changed replaces what it said. `.gitignore` is honoured. May be
    stopped at any moment: run again, it goes on.
    """
    with told_errors():
        files = _checked(paths or [], text, settings_of(store, collection))
        if files and (title or uri):
            raise ConfigError("--title and --uri are for one text; a file has its own")
        if prune and not files:
            raise ConfigError("--prune is for folders: name one")
    with using(store, collection) as memory, stoppable("Run the same again: it goes on where it stopped."):
        about = metadata_of(metadata)
        if files:
            added = _added([_add(memory, path, label, about, prune) for path in files])
            tell(
                wire.Added.of(added),
                Group(Text(_summary(added)), *figures.refusals(added.refusals)),
                as_json,
            )
        else:
            said = text or sys.stdin.read()
            if not said.strip():
                raise ConfigError("there is nothing to add: the text is empty")
            id_ = memory.add(said, title=title, uri=uri, metadata=about, labels=label)
            tell({"document": id_}, f"added {uri or title or 'a text'} as {id_}", as_json)


def _checked(paths: Sequence[str], text: str, settings: Settings) -> list[Path]:
    """The files and folders; none, where one text is added."""
    if bool(text) == bool(paths) or ("-" in paths and len(paths) > 1):
        raise ConfigError("say what to add: files and folders, or --text, or - for standard input")
    files = [Path(path) for path in paths if path != "-"]
    own = file_of(settings)
    for path in files:
        if not path.exists():
            raise ConfigError(f"there is nothing at {path}: check the path")
        if own and own.exists() and path.samefile(own):
            raise ConfigError(f"{path} is the store itself; `waylore export` writes what is in it")
    return files


def _add(memory: Waylore, path: Path, labels: Sequence[str], metadata: Any, prune: bool) -> Added:
    with progressing(f"adding {shown.line(path.name or str(path))}") as show:

        def so_far(progress: Progress) -> None:
            counts = f"{progress.files:,}/{progress.of_files:,} files  {progress.passages:,} passages"
            show(progress.bytes, progress.of_bytes, counts)

        return memory.add_files(path, labels=labels, metadata=metadata, prune=prune, progress=so_far)


def _added(parts: Sequence[Added]) -> Added:
    """What adding several came to."""
    counts = ("files", "unchanged", "documents", "passages", "facts", "forgotten", "seconds")
    sums = {name: sum(getattr(part, name) for part in parts) for name in counts}
    return replace(Added(**sums), refusals=tuple(refusal for part in parts for refusal in part.refusals))


def _summary(added: Added) -> str:
    what = f"{shown.many(added.passages, 'passage')}, {shown.many(added.facts, 'fact')}"
    new = f"{shown.many(added.documents, 'document')} added ({what})" if added.documents else "nothing new"
    gone = f", {shown.many(added.forgotten, 'document')} forgotten" if added.forgotten else ""
    same = f", {added.unchanged:,} unchanged" if added.unchanged else ""
    return f"{shown.many(added.files, 'file')}: {new}{same}{gone}, in {added.seconds:.1f} s"


# -- import --------------------------------------------------------------------------------------------


def _formats(incomplete: str) -> list[str]:
    return [name for name in (AUTO, EXPORT, *FORMATS) if name.startswith(incomplete)]


def import_(
    file: Annotated[Path, typer.Argument(help="A file, or a folder of GraphRAG's.", show_default=False)],
    format_: Annotated[
        str,
        typer.Option("--format", "-f", help=f"{', '.join((AUTO, EXPORT, *FORMATS))}.", autocompletion=_formats),
    ] = AUTO,
    label: Labels = [],  # noqa: B006
    metadata: Pairs = [],  # noqa: B006
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Add what another program knows, or an export of Waylore's own.

    Triples, papers, the graph of GraphRAG or LightRAG, an MCP memory. Importing the same again changes nothing.
    """
    with (
        using(store, collection) as memory,
        stoppable("Run the same again: what is there is left as it is."),
        progressing(f"importing {shown.line(file.name)}") as show,
    ):
        if format_ == EXPORT or (format_ == AUTO and is_export(file)):
            made = _restored(memory, file, label, metadata, show)
        else:
            about = metadata_of(metadata)
            made = memory.import_from(file, format_, labels=label, metadata=about, progress=_counting(show))
    with told_errors():
        tell(
            wire.Imported.of(made),
            Group(Text(_outcome(made)), *figures.refusals(made.refusals, made.refused)),
            as_json,
        )
        if not made.documents and made.refused:
            raise ConfigError(f"nothing of {file} could be imported")


def _restored(
    memory: Waylore, file: Path, labels: Sequence[str], metadata: Sequence[str], show: Show
) -> Imported:
    if labels or metadata:
        raise ConfigError("an export brings its own labels and metadata: leave --label and --metadata out")
    if not file.exists():
        raise ConfigError(f"there is nothing to import at {file}: check the path")
    seen = 0

    def so_far(done: int) -> None:
        nonlocal seen
        seen = done
        show(done, None, f"{done:,} documents")

    written = memory.import_(file, progress=so_far)
    return Imported(EXPORT, documents=seen, written=written)


def _counting(show: Show) -> Any:
    return lambda done: show(done, None, f"{done:,} documents")


def _outcome(made: Imported) -> str:
    refused = f", {made.refused:,} refused" if made.refused else ""
    repeated = f", {made.repeated:,} repeated" if made.repeated else ""
    form = f" ({made.format})" if made.format else ""
    return f"{shown.many(made.documents, 'document')}{form}: {made.written:,} new or changed{repeated}{refused}"
