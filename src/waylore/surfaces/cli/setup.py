"""`waylore init`: choose an embedder, load its model, create the store and write `waylore.toml`.

`waylore add`, `load` and `import` do the same if nothing is set.
"""

import json
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.text import Text

from waylore.errors import ConfigError, ModelUnavailable
from waylore.project import PROJECT, find_project_file
from waylore.protocols import Embedder
from waylore.settings.files import trust_file
from waylore.settings.load import find_trust_record, list_settings, load
from waylore.settings.sections import EmbeddingSettings, Settings
from waylore.store.urls import open_store, without_password
from waylore.surfaces.cli.options import CollectionName, StoreUrl, find_file, keep_given
from waylore.surfaces.open import DEFAULT_MODELS, create_extractor, create_reranker, defer_embedder, read_search_options
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, handle_interrupt, print_result, report_errors
from waylore.types.results import Statistics

HEADER = "# Settings of Waylore for this folder; `waylore config` shows all of them."
WRITTEN_SETTINGS = ("store", "collection", "embedding.provider", "embedding.model", "embedding.path")
WAYS_ON = """
Without a network, do one of these:
  waylore init --model-path FOLDER  with a folder of the model's files: {files}
  waylore init --embedder none      to search words only; set an embedder and run `waylore reembed` later
  copy {cache} from a computer on which `waylore init` has run to the same place here"""
MODEL_FILES = {
    "fastembed": "one .onnx file, tokenizer.json, tokenizer_config.json and config.json",
    "model2vec": "model.safetensors, tokenizer.json and config.json",
}


@dataclass(frozen=True, slots=True)
class SetUp:
    """A folder that is set up: its settings, the text of its file, and the state of its collection."""

    settings: Settings
    text: str
    is_new: bool
    known: Statistics
    needs_reembedding: bool


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

    Running it again changes nothing. The embedder is fastembed if it is installed, else none: without one, only words
    are searched, until you `pip install 'waylore[local]'`. If the store has vectors of another model, run `waylore
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


def set_up(options: dict[str, Any]) -> SetUp:
    """Set up the working folder with options of `waylore init`; change nothing if it is set up already."""
    is_new = not PROJECT.exists()
    settings = load(**options) if is_new else _check_unchanged(options)
    text = _write_toml(settings, options)
    with handle_interrupt("Run `waylore init` again."):
        embedder = _prepare_models(settings, is_new)
        known = _create_store(settings)
    if is_new:
        PROJECT.write_text(text, encoding="utf-8")
        trust_file(PROJECT, find_trust_record())
    has_other = embedder is not None and known.documents > 0 and known.model != embedder.name
    return SetUp(settings, text, is_new, known, has_other)


def set_up_if_unset(store: str, collection: str) -> None:
    """Set up the working folder as `waylore init` does, if neither a setting nor a store exists.

    Without an installed embedder no file is written, so that `waylore init` can set one later.
    """
    given = keep_given(store=store, collection=collection)
    settings = load(**given)
    file = find_file(settings)
    known = [one for one in list_settings(settings, **given) if one.name in WRITTEN_SETTINGS]
    if find_project_file().is_file() or (file and file.exists()) or any(one.source != "default" for one in known):
        return
    options = choose_options()
    if "embedding" not in options:
        typer.echo("waylore: no embedder is installed, so only words are added: pip install 'waylore[local]'", err=True)
        return
    model = options["embedding"]["model"]
    typer.echo(f"waylore: no {PROJECT}; setting up this folder with {model}, as `waylore init` does", err=True)
    set_up(options)


# -- options -------------------------------------------------------------------------------------------


def choose_options(
    embedder: str | None = None, model: str = "", model_path: Path | None = None, store: str = "", collection: str = ""
) -> dict[str, Any]:
    """Return the options as settings; the first time, add an installed embedder."""
    folder = model_path and model_path.resolve()
    provider = embedder or _choose_provider(model, folder)
    name = model or ("" if folder or PROJECT.exists() else DEFAULT_MODELS.get(provider, ""))
    embedding = {"provider": provider, "model": name, "path": folder}
    options = {"store": store, "collection": collection, "embedding": {k: v for k, v in embedding.items() if v}}
    return {name: value for name, value in options.items() if value}


def _choose_provider(model: str, folder: Path | None) -> str:
    """Return the embedder to set if no option names one; empty if the settings have one."""
    if folder:
        return "fastembed" if any(folder.rglob("*.onnx")) else "model2vec"
    if model:
        return "fastembed"
    is_open = not PROJECT.exists() and load().embedding.provider == "none"
    return "fastembed" if is_open and find_spec("fastembed") else ""


def _check_unchanged(options: dict[str, Any]) -> Settings:
    """Return the existing settings; refuse options that differ from them."""
    existing, changed = load(), load(**options)
    differing = [
        one.name
        for one, other in zip(list_settings(existing), list_settings(changed), strict=True)
        if one.value != other.value
    ]
    if differing:
        raise ConfigError(f"{PROJECT} exists already, with another {differing[0]}; edit it, or remove it first")
    return existing


def _write_toml(settings: Settings, options: dict[str, Any]) -> str:
    """Return the text of the file: options and defaults, without the environment."""
    chosen = [one for one in list_settings(settings, **options) if one.source in ("option", "default")]
    values = {one.name: one.value for one in chosen if one.value}
    values["store"] = settings.store if "store" in values else ""  # list_settings masks a password
    lines = {
        name: f"{name.split('.')[-1]} = {write_value(values[name])}" for name in WRITTEN_SETTINGS if values.get(name)
    }
    embedding = [text for name, text in lines.items() if name.startswith("embedding.")]
    top = [text for name, text in lines.items() if not name.startswith("embedding.")]
    return "\n".join([HEADER, *top, *(["", "[embedding]", *embedding] if embedding else []), ""])


def write_value(value: str) -> str:
    """Return a value as TOML; a JSON string is valid TOML."""
    return json.dumps(value, ensure_ascii=False)


# -- models and store ----------------------------------------------------------------------------------


def needs_model(settings: Settings, is_new: bool) -> bool:
    """Return whether the model must be loaded now: the first time, or if the store is not on this computer yet."""
    file = find_file(settings)
    return settings.embedding.provider in DEFAULT_MODELS and (is_new or (file is not None and not file.exists()))


def _prepare_models(settings: Settings, is_new: bool) -> Embedder | None:
    """Return the embedder of the settings. The first time, load its model, which may download it."""
    try:
        embedder = defer_embedder(settings.embedding)
        if embedder and needs_model(settings, is_new):
            embedder.embed_query("")
    except ModelUnavailable as error:
        raise _name_ways_on(settings.embedding, error) from error
    if is_new:
        create_extractor(settings.extraction)
        read_search_options(settings.search)
        create_reranker(settings)
    return embedder


def _name_ways_on(embedding: EmbeddingSettings, error: ModelUnavailable) -> ModelUnavailable:
    """Add the alternatives to the error of a model that cannot be downloaded; return other errors unchanged."""
    if embedding.path or embedding.provider not in MODEL_FILES or not find_spec(embedding.provider):
        return error
    problem = str(error).splitlines()[0].partition("; ")[0]
    cache = _find_cache(embedding.provider)
    return ModelUnavailable(problem + WAYS_ON.format(files=MODEL_FILES[embedding.provider], cache=cache))


def _find_cache(provider: str) -> Path:
    if provider == "fastembed":
        from waylore.providers.embedders.fastembed import find_cache  # noqa: PLC0415 (optional dependency)

        return find_cache()
    from huggingface_hub import constants  # noqa: PLC0415 (comes with model2vec)

    return Path(constants.HF_HUB_CACHE)


def _create_store(settings: Settings) -> Statistics:
    """Create the store, and the folder of its file, if they do not exist. Return the statistics of the store."""
    if file := find_file(settings):
        file.parent.mkdir(parents=True, exist_ok=True)
    with closing(open_store(settings.store, settings.collection)) as store:
        return store.statistics()


# -- the report ----------------------------------------------------------------------------------------


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
