"""`waylore init`: write `waylore.toml`, load the model once, and create the store.

`surfaces.cli.setup` does the work. This module has the options and the report.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.text import Text

from waylore.project import PROJECT
from waylore.settings.load import load
from waylore.store.urls import without_password
from waylore.surfaces.cli.options import CollectionName, StoreUrl
from waylore.surfaces.cli.setup import SetUp, choose_options, needs_model, set_up, write_value
from waylore.surfaces.open import DEFAULT_MODELS
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, print_result, report_errors


def init(
    embedder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Embedder: none, fastembed, model2vec, openai or hashing."),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="Name of the model.")] = "",
    model_path: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder with the files of the model, for use without a network."),
    ] = None,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Set up this folder: write waylore.toml, download the model, create the store.

    Running it again changes nothing. The embedder is fastembed if it is installed, else none: then only words are
    searched, until you `pip install 'waylore[local]'`. If the store has vectors of another model, run `waylore
    reembed` afterwards.

    Example: `waylore init --embedder fastembed`
    """
    with report_errors():
        options = choose_options(embedder, model, model_path, store, collection)
        _announce_model(options)
        made = set_up(options)
        result = {
            "settings": str(PROJECT),
            "is_new": made.is_new,
            "store": without_password(made.settings.store),
            "embedder": made.settings.embedding.provider,
            "reembed": made.known.passages if made.needs_reembedding else 0,
        }
        print_result(result, _summarise(made), as_json)


def _announce_model(options: dict[str, object]) -> None:
    """Print the name of a model that is about to be loaded."""
    settings = load(**options)
    embedding = settings.embedding
    if needs_model(settings, is_new=not PROJECT.exists()):
        name = embedding.model or embedding.path or DEFAULT_MODELS[embedding.provider]
        download = "" if embedding.path else " (downloaded the first time)"
        Console(stderr=True, highlight=False).print(Text(f"loading {name}{download}", "dim"))


def _mask(made: SetUp) -> str:
    """Return the text of the file without the password of the store."""
    return made.text.replace(write_value(made.settings.store), write_value(without_password(made.settings.store)))


def _summarise(made: SetUp) -> Group:
    head = Text(f"wrote {PROJECT}:" if made.is_new else f"{PROJECT} exists already; nothing was changed", "bold")
    lines = [head, *([Text(f"\n{_mask(made)}", "dim")] if made.is_new else [])]
    if made.settings.embedding.provider == "none":
        lines.append(Text("Without an embedder only words are searched. To search by meaning too:", "yellow"))
        lines.append(Text("  pip install 'waylore[local]', remove waylore.toml, and run `waylore init` again"))
    following = 'waylore search "…"' if made.known.documents else "waylore add PATH"
    if made.needs_reembedding:
        passages = shown.count(made.known.passages, "passage")
        old = made.known.model or "no model"
        lines.append(Text(f"The store was embedded with {old}: now run `waylore reembed` ({passages}).", "yellow"))
        following = "waylore reembed"
    return Group(*lines, Text.assemble("next: ", (following, "bold green")))
