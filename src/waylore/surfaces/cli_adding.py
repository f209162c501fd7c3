"""`waylore init`, `add` and `import`: how a collection comes to be, and what goes into it.

`init` writes settings and loads the model once; adding is the engine's. All of it may be stopped at any moment
and run again.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.text import Text

from waylore.engine import Waylore
from waylore.errors import ConfigError
from waylore.indexing.exchange import is_export
from waylore.indexing.importing import AUTO, FORMATS, Imported
from waylore.indexing.progress import Added, Progress
from waylore.surfaces import cli_figures, wire
from waylore.surfaces import cli_shown as shown
from waylore.surfaces.cli_options import InCollection, StoreAt, file_of, metadata_of, settings_of, using
from waylore.surfaces.cli_terminal import AsJson, Show, progressing, stoppable, tell, told_errors
from waylore.surfaces.opening import DEFAULT_MODELS, opened
from waylore.surfaces.settings import EMBEDDERS, PROJECT, Settings, load, told, without_password

HEADER = "# Settings of Waylore for this folder; `waylore config` shows all of them."
WRITTEN = ("store", "collection", "embedding.provider", "embedding.model", "embedding.path")
EXPORT = "waylore"  # the format of our own exports
Labels = Annotated[
    list[str], typer.Option("--label", "-l", metavar="LABEL", help="Who may read it: everyone, without one.")
]
Pairs = Annotated[list[str], typer.Option("--metadata", metavar="KEY=VALUE", help="What is known of it.")]


# -- init ----------------------------------------------------------------------------------------------


def init(
    embedder: Annotated[
        EMBEDDERS | None,
        typer.Option(metavar="NAME", help="Who makes vectors: none, fastembed, model2vec, openai or hashing."),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="The model's name.")] = "",
    model_path: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder with its files, for use without a network.")
    ] = None,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Begin here: write waylore.toml, fetch the model, make the store.

    Run again, it changes nothing. The embedder is fastembed if that is installed, else none: then only words
    are searched, until you `pip install 'waylore[local]'`.
    """
    with told_errors():
        wanted = _wanted(embedder, model, model_path, store, collection)
        is_new = not PROJECT.exists()
        settings = load(**wanted) if is_new else _unchanged(wanted)
        text = _toml(settings, wanted)
        with stoppable("Run `waylore init` again."):
            _announce(settings)
            with opened(settings) as memory:
                known = memory.stats()
        if is_new:
            PROJECT.write_text(text, encoding="utf-8")
        made = {"settings": str(PROJECT), "is_new": is_new, "store": without_password(settings.store)}
        provider = settings.embedding.provider
        tell({**made, "embedder": provider}, _begun(settings, text, is_new, known.documents), as_json)


def _wanted(
    embedder: str | None, model: str, model_path: Path | None, store: str, collection: str
) -> dict[str, Any]:
    """What the options say, as settings have it; the first time, with an embedder that is installed."""
    folder = model_path and model_path.resolve()
    provider = embedder or _provider(model, folder)
    named = model or ("" if folder or PROJECT.exists() else DEFAULT_MODELS.get(provider, ""))
    embedding = {"provider": provider, "model": named, "path": folder}
    said = {"store": store, "collection": collection, "embedding": {k: v for k, v in embedding.items() if v}}
    return {name: value for name, value in said.items() if value}


def _provider(model: str, folder: Path | None) -> str:
    """Who is to make vectors where that is not said; nothing, if the settings say it."""
    if folder:
        return "fastembed" if any(folder.rglob("*.onnx")) else "model2vec"
    if model:
        return "fastembed"
    is_open = not PROJECT.exists() and load().embedding.provider == "none"
    return "fastembed" if is_open and find_spec("fastembed") else ""


def _unchanged(wanted: dict[str, Any]) -> Settings:
    """The settings that are there; options that say otherwise are refused."""
    there, asked = load(), load(**wanted)
    differing = [
        one.name for one, other in zip(told(there), told(asked), strict=True) if one.value != other.value
    ]
    if differing:
        raise ConfigError(
            f"{PROJECT} is here already, with another {differing[0]}: edit it, or remove it first"
        )
    return there


def _announce(settings: Settings) -> None:
    wanted = settings.embedding
    if wanted.provider in DEFAULT_MODELS:
        name = wanted.model or wanted.path or DEFAULT_MODELS[wanted.provider]
        fetched = "" if wanted.path else "; it is fetched the first time"
        Console(stderr=True, highlight=False).print(Text(f"loading {name}{fetched}", "dim"))


def _toml(settings: Settings, options: dict[str, Any]) -> str:
    """The file that says what was chosen, without what the environment says; a JSON string is one of TOML."""
    chosen = [one for one in told(settings, **options) if one.source in ("option", "default")]
    values = {one.name: one.value for one in chosen if one.value}
    values["store"] = settings.store if "store" in values else ""  # a password in it is not masked here
    lines = {
        name: f"{name.split('.')[-1]} = {json.dumps(values[name], ensure_ascii=False)}"
        for name in WRITTEN
        if values.get(name)
    }
    embedding = [text for name, text in lines.items() if name.startswith("embedding.")]
    top = [text for name, text in lines.items() if not name.startswith("embedding.")]
    return "\n".join([HEADER, *top, *(["", "[embedding]", *embedding] if embedding else []), ""])


def _begun(settings: Settings, text: str, is_new: bool, documents: int) -> Group:
    said = Text(f"wrote {PROJECT}:" if is_new else f"{PROJECT} is here already; nothing was changed", "bold")
    lines = [said, *([Text(f"\n{without_password(text)}", "dim")] if is_new else [])]
    if settings.embedding.provider == "none":
        lines.append(Text("Without an embedder only words are searched. For meaning too:", "yellow"))
        lines.append(Text("  pip install 'waylore[local]', remove waylore.toml, and run `waylore init` again"))
    following = 'waylore search "…"' if documents else "waylore add PATH"
    return Group(*lines, Text.assemble("next: ", (following, "bold green")))


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
                Group(Text(_summary(added)), *cli_figures.refusals(added.refusals)),
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
            Group(Text(_outcome(made)), *cli_figures.refusals(made.refusals, made.refused)),
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
