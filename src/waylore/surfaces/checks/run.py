"""The checks of `waylore doctor`: functions that yield findings, each with its remedy.

They check settings, models, store, collection and disk. They create no file and upgrade no schema. They examine the
stored content only with `--deep`, but compare every page of a file with its checksum.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, ModelError, WayloreError
from waylore.project import PROJECT, find_project_file
from waylore.protocols import Embedder
from waylore.settings.files import collect_unknown
from waylore.settings.load import (
    list_old_settings,
    list_settings,
    load,
    suggest,
)
from waylore.settings.names import PREFIX
from waylore.settings.sections import Settings
from waylore.surfaces.checks.content import check_content, check_structure
from waylore.surfaces.checks.findings import COMPACT, ENABLE_CHECKSUMS, Finding
from waylore.surfaces.checks.index import check_index
from waylore.surfaces.checks.store import check_store
from waylore.surfaces.open import create_embedder, create_extractor, create_reranker
from waylore.surfaces.terminal.hits import count

FORMATS = {"markdown_it": "Markdown", "lxml": "HTML", "pypdf": "PDF", "docx": "DOCX", "pathspec": ".gitignore"}


def run_checks(is_deep: bool = False, /, **options: Any) -> Iterator[Finding]:
    """Run all checks on this machine, these settings and this store; the deep ones read every document."""
    yield from _check_old_settings()
    settings, of_settings = _check_settings(options)
    yield from of_settings
    if settings is None:
        return
    yield from _check_readers()
    embedder, of_models = _check_models(settings)
    yield from of_models
    of_store = list(check_store(settings.store))
    yield from of_store
    if all(finding.state == "good" or finding.remedy in (COMPACT, ENABLE_CHECKSUMS) for finding in of_store):
        yield from _check_collection(settings, embedder)
        yield from check_index(settings)
        if is_deep:
            yield from check_content(settings)
            yield from check_structure(settings.store)


def _check_old_settings() -> Iterator[Finding]:
    """Yield variables and files with the old name of this product; they are not read."""
    for old, new in list_old_settings():
        yield Finding("settings", "note", f"{old} is not read", f"rename it to {new}")


def _check_settings(options: Mapping[str, Any]) -> tuple[Settings | None, list[Finding]]:
    """Return the settings, if they can be used, and the findings about them."""
    settings = None
    with collect_unknown() as unknown:
        try:
            settings = load(**options)
            verdict = Finding("settings", "good", _describe_source(settings, options))
        except ConfigError as error:
            is_untrusted = "`waylore trust" in str(error)
            edit = "edit the file or variable that it names"
            remedy = "trust only files whose origin you know" if is_untrusted else edit
            verdict = Finding("settings", "wrong", str(error), remedy)
    return settings, [*map(_describe_unknown, unknown), verdict]


def _describe_unknown(name: str) -> Finding:
    setting = suggest(name.removeprefix(PREFIX).lower().replace("_", ".", 1))
    meant = f"did you mean {PREFIX}{setting.replace('.', '_').upper()}?"
    return Finding("settings", "wrong", f"unknown setting {name}", meant if setting else "list them: `waylore config`")


def _check_readers() -> Iterator[Finding]:
    """Yield formats whose library is not installed."""
    missing = [form for module, form in FORMATS.items() if find_spec(module) is None]
    if missing:
        yield Finding("files", "note", f"{', '.join(missing)} cannot be read", "pip install 'waylore[files]'")


# -- models --------------------------------------------------------------------------------------------


def _check_models(settings: Settings) -> tuple[Embedder | None, list[Finding]]:
    """Return the embedder, if it can be loaded, and the findings about it and the extractor."""
    found: list[Finding] = []
    embedder = None
    try:
        embedder = create_embedder(settings.embedding)
    except (ModelError, ConfigError) as error:
        remedy = "correct [embedding] in waylore.toml, or choose another; none searches words only"
        found.append(Finding("model", "wrong", _get_first_line(error), remedy))
    else:
        found.append(_describe_embedder(embedder))
    try:
        create_extractor(settings.extraction)
    except (ModelError, ConfigError) as error:
        found.append(Finding("extraction", "wrong", _get_first_line(error), "correct [extraction] in waylore.toml"))
    return embedder, found + list(_check_reranker(settings))


def _check_reranker(settings: Settings) -> Iterator[Finding]:
    """Let the reranker score a pair of words, if the settings name one."""
    try:
        reranker = create_reranker(settings)
        if reranker:
            reranker.rerank("test", ["test"])
            yield Finding("reranker", "good", getattr(reranker, "name", settings.search.reranker))
    except Exception as error:  # noqa: BLE001 (a plugin may raise any)
        remedy = "correct search.reranker and [reranking] in waylore.toml; until then hits keep their order"
        yield Finding("reranker", "wrong", _get_first_line(error), remedy)


def _describe_embedder(embedder: Embedder | None) -> Finding:
    if embedder is None:
        installed = "" if find_spec("fastembed") else "pip install 'waylore[local]', then "
        remedy = f'{installed}set embedding.provider = "fastembed" in waylore.toml'
        return Finding("model", "note", "no embedder: only words are searched", remedy)
    return Finding("model", "good", f"{embedder.name}, {embedder.dimension} dimensions")


# -- the collection ------------------------------------------------------------------------------------


def _check_collection(settings: Settings, embedder: Embedder | None) -> Iterator[Finding]:
    """Check that the collection was made with the model of the settings."""
    name = settings.collection
    try:
        with Waylore.open(settings.store, collection=name) as memory:
            known = memory.stats()
    except WayloreError as error:
        yield Finding("collection", "wrong", str(error))
        return
    if not known.documents:
        yield Finding("collection", "note", f"{name} is empty", "add to it with `waylore add PATH`")
    elif known.model and embedder is None:
        message = f"{name} was embedded with {known.model}, but no embedder is set, so only words are searched"
        yield Finding("collection", "wrong", message, "set embedding.provider and model in waylore.toml")
    elif embedder and known.model != embedder.name:
        message = f"{name} was embedded with {known.model or 'no model'}, the settings name {embedder.name}"
        yield Finding("collection", "wrong", message, "set that model in waylore.toml, or run `waylore reembed`")
    else:
        yield Finding(
            "collection", "good", f"{name}: {count(known.documents, 'document')}, {count(known.facts, 'fact')}"
        )


def _get_first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _describe_source(settings: Settings, options: Mapping[str, Any]) -> str:
    """Return the place of the settings, and the place of the store if it is another one."""
    file = find_project_file()
    place = next(each.source for each in list_settings(settings, **options) if each.name == "store")
    general = f"from {file}" if file.is_file() else f"no {PROJECT}; defaults and variables are used"
    return general if place in (str(file), "default") else f"{general}; the store is from: {place}"
