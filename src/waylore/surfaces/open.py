"""Opens what the settings name: an embedder, an extractor, a collection with both.

Models are imported when they are asked for, so that a surface needs only the extras it uses. Nothing here reads
the environment (`settings` does) or keeps what it opened.
"""

from collections.abc import Callable
from pathlib import Path

from waylore.engine.waylore import RULES, Waylore
from waylore.errors import ConfigError
from waylore.protocols import Embedder, Extractor
from waylore.providers.extractors.budget import Budget
from waylore.settings.load import Settings
from waylore.settings.sections import Embedding, Extraction
from waylore.surfaces.telemetry.setup import watched

DEFAULT_MODELS = {"fastembed": "BAAI/bge-small-en-v1.5", "model2vec": "minishlab/potion-base-8M"}


def opened(settings: Settings, *, embedder: Embedder | None = None, collection: str = "") -> Waylore:
    """The collection that the settings name, or another of the same store; `embedder` saves loading one."""
    name = collection or settings.collection
    model, observer = watched(settings.telemetry, name, embedder or embedder_of(settings.embedding))
    return Waylore.open(
        settings.store,
        collection=name,
        embedder=model,
        extractor=extractor_of(settings.extraction),
        functional=settings.functional,
        observer=observer,
    )


def embedder_of(wanted: Embedding) -> Embedder | None:
    """The embedder that the settings name, or None: then only words are searched."""
    return EMBEDDERS[wanted.provider](wanted)


def extractor_of(wanted: Extraction) -> Extractor | None:
    """Who finds names and facts in what is added, or None: then texts are kept as they are."""
    return EXTRACTORS[wanted.provider](wanted)


def _fastembed(wanted: Embedding) -> Embedder:
    from waylore.providers.embedders.fastembed import FastEmbedder  # noqa: PLC0415

    name = wanted.model or DEFAULT_MODELS["fastembed"]
    return FastEmbedder(name, path=wanted.path, threads=wanted.threads or None)


def _model2vec(wanted: Embedding) -> Embedder:
    from waylore.providers.embedders.model2vec import Model2VecEmbedder  # noqa: PLC0415

    return Model2VecEmbedder(wanted.path or wanted.model or DEFAULT_MODELS["model2vec"])


def _openai(wanted: Embedding) -> Embedder:
    from waylore.providers.embedders.openai import OpenAIEmbedder  # noqa: PLC0415

    if not wanted.model:
        raise ConfigError("embedding.model is empty: name the model that the server should embed with")
    return OpenAIEmbedder(wanted.model, base_url=wanted.url, api_key=wanted.key.get_secret_value())


def _hashing(_: Embedding) -> Embedder:
    from waylore.providers.embedders.hashing import HashingEmbedder  # noqa: PLC0415

    return HashingEmbedder(quiet=True)


def _spacy(wanted: Extraction) -> Extractor:
    from waylore.providers.extractors.spacy import SpacyExtractor  # noqa: PLC0415

    folder = Path(wanted.model)
    return SpacyExtractor(folder if folder.is_dir() else wanted.model or "en_core_web_sm")


def _llm(wanted: Extraction) -> Extractor:
    from waylore.providers.extractors.llm import LLMExtractor  # noqa: PLC0415

    if not wanted.model:
        raise ConfigError("extraction.model is empty: name the model that the server should read with")
    return LLMExtractor(
        wanted.model,
        base_url=wanted.url,
        api_key=wanted.key.get_secret_value(),
        budget=Budget(tokens=wanted.tokens),
        cache=wanted.cache,
    )


EMBEDDERS: dict[str, Callable[[Embedding], Embedder | None]] = {
    "none": lambda _: None,
    "fastembed": _fastembed,
    "model2vec": _model2vec,
    "openai": _openai,
    "hashing": _hashing,
}
EXTRACTORS: dict[str, Callable[[Extraction], Extractor | None]] = {
    "none": lambda _: None,
    "rules": lambda _: RULES,
    "spacy": _spacy,
    "llm": _llm,
}
