"""`waylore init`, `add` and `import`: how a collection comes to be, and what goes into it.

`init` writes settings and loads the model once; adding is the engine's. All of it may be stopped at any moment
and run again.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.text import Text

from waylore.errors import ConfigError
from waylore.settings.load import PROJECT, Settings, load, told, without_password
from waylore.settings.sections import EMBEDDERS
from waylore.surfaces.cli.options import InCollection, StoreAt
from waylore.surfaces.open import DEFAULT_MODELS, opened
from waylore.surfaces.terminal.output import AsJson, stoppable, tell, told_errors

HEADER = "# Settings of Waylore for this folder; `waylore config` shows all of them."
WRITTEN = ("store", "collection", "embedding.provider", "embedding.model", "embedding.path")


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
