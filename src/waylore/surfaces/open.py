"""Open the objects that the settings name: an embedder, an extractor, a reranker, and a collection with them.

A model is imported when it is created, so that a surface needs only the extras that it uses. Nothing here reads the
environment (`settings` does). The caller closes the opened objects.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from waylore.engine.waylore import RULES, Waylore
from waylore.errors import ConfigError
from waylore.plugins import list_plugins, load_plugin
from waylore.protocols import Embedder, Extractor, Observer, Reranker
from waylore.providers.embedders.deferred import DeferredEmbedder
from waylore.providers.extractors.budget import Budget
from waylore.recipes import AUTO, CHAIN, RECIPES, Recipe, resolve_method
from waylore.settings.sections import (
    EmbeddingSettings,
    ExtractionSettings,
    RerankingSettings,
    SearchSettings,
    Settings,
)
from waylore.surfaces.telemetry.setup import CompositeObserver, instrument

if TYPE_CHECKING:
    from waylore.providers.extractors.llm import LLMExtractor

DEFAULT_MODELS = {"fastembed": "BAAI/bge-small-en-v1.5", "model2vec": "minishlab/potion-base-8M"}
DEFAULT_RERANKER = "Xenova/ms-marco-MiniLM-L-6-v2"


def open_collection(
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    collection: str = "",
    observer: Observer | None = None,
) -> Waylore:
    """Open the collection of the settings, or another one of the same store. Given models are not created again."""
    name = collection or settings.collection
    model, recorder = instrument(settings.telemetry, name, embedder or create_embedder(settings.embedding))
    observers = [each for each in (recorder, observer) if each]
    return Waylore.open(
        settings.store,
        collection=name,
        embedder=model,
        extractor=create_extractor(settings.extraction),
        single_valued=settings.single_valued,
        timezone=settings.timezone,
        observer=CompositeObserver(observers) if len(observers) > 1 else next(iter(observers), None),
        scrub=settings.secrets.is_scrubbed(name),
        reranker=reranker or create_reranker(settings),
        **read_search_options(settings.search),
    )


def read_search_options(search: SearchSettings) -> dict[str, Any]:
    """Return the defaults of `search` as arguments of `Waylore.open`."""
    name = resolve_method(search.method)
    recipe = CHAIN.name if name == AUTO else name  # `auto` has no values, but its default recipe has
    method: str | Recipe = change_recipe(recipe, search.recipe) if search.recipe else name
    return {"method": method, "top_k": search.top_k or None}


def create_embedder(wanted: EmbeddingSettings) -> Embedder | None:
    """Create the embedder that the settings name. If they name none, return None: only words are searched."""
    if create := EMBEDDERS.get(wanted.provider) or load_plugin("waylore.embedders", wanted.provider):
        embedder: Embedder | None = create(wanted)
        return embedder
    raise _report_unknown("embedding.provider", wanted.provider, EMBEDDERS, "waylore.embedders")


def defer_embedder(wanted: EmbeddingSettings) -> Embedder | None:
    """Return the embedder that the settings name; a local model is loaded when the first text is embedded.

    A library or a directory that is missing is reported at once, as by `create_embedder`.
    """
    if wanted.provider not in LOCAL_MODELS or find_spec(wanted.provider) is None:
        return create_embedder(wanted)
    name_model, load = LOCAL_MODELS[wanted.provider]
    try:
        return DeferredEmbedder(name_model(wanted), partial(load, wanted))
    except OSError:
        return load(wanted)


def create_extractor(wanted: ExtractionSettings) -> Extractor | None:
    """Create the extractor that the settings name. If they name none, return None: texts are stored without facts."""
    if create := EXTRACTORS.get(wanted.provider) or load_plugin("waylore.extractors", wanted.provider):
        extractor: Extractor | None = create(wanted)
        return extractor
    raise _report_unknown("extraction.provider", wanted.provider, EXTRACTORS, "waylore.extractors")


def create_reranker(settings: Settings) -> Reranker | None:
    """Create the reranker that the settings name; None if they name none. Its first use loads a local model."""
    name = settings.search.reranker
    if not name:
        return None
    if name in RERANKERS:
        return RERANKERS[name](settings.reranking)
    if create := load_plugin("waylore.rerankers", name):
        reranker: Reranker = create()
        return reranker
    raise _report_unknown("search.reranker", name, RERANKERS, "waylore.rerankers")


def check_providers(settings: Settings) -> None:
    """Raise an error if the settings name an embedder, extractor or reranker that does not exist; load nothing."""
    known: tuple[tuple[str, str, Iterable[str], str], ...] = (
        ("embedding.provider", settings.embedding.provider, EMBEDDERS, "waylore.embedders"),
        ("extraction.provider", settings.extraction.provider, EXTRACTORS, "waylore.extractors"),
        ("search.reranker", settings.search.reranker, ("", *RERANKERS), "waylore.rerankers"),
    )
    for name, provider, built_in, group in known:
        if provider not in (*built_in, *list_plugins(group)):
            raise _report_unknown(name, provider, built_in, group)


def _report_unknown(name: str, value: str, known: Iterable[str], group: str) -> ConfigError:
    names = ", ".join(filter(None, [*known, *list_plugins(group)]))
    return ConfigError(f"{name} must be one of {names}, got {value!r}")


def _fastembed(wanted: EmbeddingSettings) -> Embedder:
    from waylore.providers.embedders.fastembed import FastEmbedder  # noqa: PLC0415

    name = wanted.model or DEFAULT_MODELS["fastembed"]
    return FastEmbedder(name, path=wanted.path, threads=wanted.threads or None)


def _name_fastembed(wanted: EmbeddingSettings) -> str:
    from waylore.providers.embedders.fastembed import name_model  # noqa: PLC0415

    return name_model(wanted.model or DEFAULT_MODELS["fastembed"], wanted.path)


def _model2vec(wanted: EmbeddingSettings) -> Embedder:
    from waylore.providers.embedders.model2vec import Model2VecEmbedder  # noqa: PLC0415

    return Model2VecEmbedder(wanted.path or wanted.model or DEFAULT_MODELS["model2vec"])


def _name_model2vec(wanted: EmbeddingSettings) -> str:
    from waylore.providers.embedders.model2vec import name_model  # noqa: PLC0415

    return name_model(wanted.path or wanted.model or DEFAULT_MODELS["model2vec"])


def _openai(wanted: EmbeddingSettings) -> Embedder:
    from waylore.providers.embedders.openai import OpenAIEmbedder  # noqa: PLC0415

    if not wanted.model:
        raise ConfigError("embedding.model is empty: name the model that the server should embed with")
    return OpenAIEmbedder(wanted.model, base_url=wanted.base_url, api_key=wanted.api_key.get_secret_value())


def _hashing(_: EmbeddingSettings) -> Embedder:
    from waylore.providers.embedders.hashing import HashingEmbedder  # noqa: PLC0415

    return HashingEmbedder(quiet=True)


def _spacy(wanted: ExtractionSettings) -> Extractor:
    from waylore.providers.extractors.spacy import SpacyExtractor  # noqa: PLC0415

    folder = Path(wanted.model)
    return SpacyExtractor(folder if folder.is_dir() else wanted.model or "en_core_web_sm")


def create_llm_extractor(wanted: ExtractionSettings) -> "LLMExtractor":
    """Create the extractor with the language model of the settings, also if they name another provider."""
    from waylore.providers.extractors.llm import LLMExtractor  # noqa: PLC0415

    if not wanted.model:
        raise ConfigError("extraction.model is empty: name the model that the server should read with")
    return LLMExtractor(
        wanted.model,
        base_url=wanted.base_url,
        api_key=wanted.api_key.get_secret_value(),
        budget=Budget(tokens=wanted.max_tokens),
        cache=wanted.cache,
    )


def _fastembed_reranker(wanted: RerankingSettings) -> Reranker:
    from waylore.providers.rerankers.fastembed import FastReranker  # noqa: PLC0415

    name = wanted.model or DEFAULT_RERANKER
    return FastReranker(name, path=wanted.path, threads=wanted.threads or None)


def _endpoint_reranker(wanted: RerankingSettings) -> Reranker:
    from waylore.providers.rerankers.endpoint import EndpointReranker  # noqa: PLC0415

    for name in ("model", "base_url"):
        if not getattr(wanted, name):
            raise ConfigError(f"reranking.{name} is empty: name the model and the address of the server that reranks")
    return EndpointReranker(wanted.model, base_url=wanted.base_url, api_key=wanted.api_key.get_secret_value())


EMBEDDERS: dict[str, Callable[[EmbeddingSettings], Embedder | None]] = {
    "none": lambda _: None,
    "fastembed": _fastembed,
    "model2vec": _model2vec,
    "openai": _openai,
    "hashing": _hashing,
}
# Providers whose library has the same name and takes a second to load a model: how to name it, how to load it.
LOCAL_MODELS: dict[str, tuple[Callable[[EmbeddingSettings], str], Callable[[EmbeddingSettings], Embedder]]] = {
    "fastembed": (_name_fastembed, _fastembed),
    "model2vec": (_name_model2vec, _model2vec),
}
EXTRACTORS: dict[str, Callable[[ExtractionSettings], Extractor | None]] = {
    "none": lambda _: None,
    "rules": lambda _: RULES,
    "spacy": _spacy,
    "llm": create_llm_extractor,
}


RERANKERS: dict[str, Callable[[RerankingSettings], Reranker]] = {
    "fastembed": _fastembed_reranker,
    "endpoint": _endpoint_reranker,
}


# -- recipes -------------------------------------------------------------------------------------------


def change_recipe(method: str, changes: Sequence[str]) -> Recipe:
    """Return the recipe of a method with changed values, each written as `walk.max_hops=2`."""
    if method not in RECIPES:
        raise ConfigError(f"values of a recipe can be changed for one of {', '.join(RECIPES)}, not for {method}")
    changed: Recipe = RECIPES[method]
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"{change} must be written as part.name=value, such as walk.max_hops=2")
        changed = _change(changed, name.split("."), value, name)
    return replace(changed, name=f"{method} with {', '.join(changes)}")


def _change(part: Any, path: Sequence[str], value: str, name: str) -> Any:
    first, *rest = path
    hints = get_type_hints(type(part))
    if first not in hints:
        raise ConfigError(f"unknown recipe value {name}; use {', '.join(field.name for field in fields(part))}")
    is_part = is_dataclass(getattr(part, first))
    if rest and is_part:
        return replace(part, **{first: _change(getattr(part, first), rest, value, name)})
    if rest or is_part:
        raise ConfigError(f"{name} must be written as part.name=value, such as walk.max_hops=2")
    return replace(part, **{first: _to_value(hints[first], value, name)})


def _to_value(kind: Any, value: str, name: str) -> Any:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 (not for a search without changes)

    try:
        return TypeAdapter(kind).validate_python(value.split(",") if "tuple" in str(kind) else _to_scalar(value))
    except ValidationError as error:
        raise ConfigError(f"{name}={value}: {error.errors()[0]['msg']}") from error


def _to_scalar(value: str) -> Any:
    """Return the number, boolean or None that a text spells, else the text."""
    try:
        return json.loads(value)
    except ValueError:
        return value
