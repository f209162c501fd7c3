"""Options that several commands share, and their conversion to settings, a collection, a filter or a recipe.

The functions here open the collection of a command and close it again. They do not work on it.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from waylore.dates import to_datetime
from waylore.engine.waylore import Waylore
from waylore.errors import ArgumentError, ConfigError, NotFound
from waylore.indexing.files.addresses import find_address
from waylore.protocols import Reranker
from waylore.recipes import ALIASES, METHODS, RECIPES, Recipe, resolve_method
from waylore.settings.load import load
from waylore.settings.sections import Settings
from waylore.store.sqlite.file import list_collections
from waylore.store.urls import parse_url
from waylore.surfaces.open import (
    change_recipe,
    create_reranker,
    defer_embedder,
    open_collection,
    read_search_options,
)
from waylore.surfaces.terminal.output import report_errors
from waylore.types.identity import get_file
from waylore.types.knowledge import Document, Metadata, Scalar
from waylore.types.search import Filter, GroupBy

T = TypeVar("T")
PAGE = 1_000  # documents in one page of a list


def _complete_method(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete.lower())]


def parse_date(text: str) -> datetime:
    """Parse a date or a time by the one rule for dates."""
    try:
        return to_datetime(text, "date")
    except ArgumentError as error:
        raise typer.BadParameter(str(error)) from error


StoreUrl = Annotated[str, typer.Option("--store", metavar="URL", help="Store: a file, postgresql://… or cells+…")]
CollectionName = Annotated[str, typer.Option("--collection", "-c", metavar="NAME", help="Collection to use.")]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help=f"{', '.join(name for name in METHODS if name not in ALIASES)}; graph is chain, agentic is auto. "
        "search.method if absent.",
        autocompletion=_complete_method,
        show_default=False,
    ),
]
RecipeValues = Annotated[
    list[str],
    typer.Option("--recipe", metavar="PART=VALUE", help="Override a value of the recipe, such as walk.max_hops=2."),
]
Grouping = Annotated[
    GroupBy, typer.Option("--group-by", metavar="KIND", help="turn, or session for the best turn of each session.")
]
TopK = Annotated[
    int | None, typer.Option("--top-k", "-k", metavar="N", min=1, help="Number of hits; search.top_k if absent.")
]
Labels = Annotated[
    list[str],
    typer.Option(
        "--label",
        "-l",
        metavar="LABEL",
        help="Search as a caller with this label; without it, everything is visible.",
    ),
]
Where = Annotated[
    list[str],
    typer.Option("--where", "-w", metavar="KEY=VALUE", help="Only documents with this metadata."),
]
AsOf = Annotated[
    datetime | None,
    typer.Option("--as-of", metavar="DATE", parser=parse_date, help="Use facts that were known and valid then."),
]
UserName = Annotated[str, typer.Option("--user", "-u", metavar="NAME", help="User whose memory it is.")]
SessionName = Annotated[str, typer.Option("--session", metavar="NAME", help="Session of a conversation.")]
At = Annotated[
    datetime | None, typer.Option("--at", metavar="DATE", parser=parse_date, help="Time of the statement or event.")
]
Expires = Annotated[
    datetime | None,
    typer.Option("--expires", metavar="DATE", parser=parse_date, help="From this date on it is hidden."),
]
Since = Annotated[
    datetime | None,
    typer.Option("--since", metavar="DATE", parser=parse_date, help="Only passages that were said from this date on."),
]
Until = Annotated[
    datetime | None,
    typer.Option("--until", metavar="DATE", parser=parse_date, help="Only passages that were said before this date."),
]
MinSimilarity = Annotated[
    float | None,
    typer.Option("--min-similarity", metavar="COSINE", min=-1, max=1, help="Minimum cosine of a hit and the question."),
]
Rerank = Annotated[
    bool | None,
    typer.Option(
        "--rerank/--no-rerank", help="Reorder the hits with a reranker; search.reranker if absent.", show_default=False
    ),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Number of facts.")]


def load_settings(store: str, collection: str, **sections: Any) -> Settings:
    """Load the settings; options and the given values of sections such as `http` override them."""
    return load(**keep_given(store=store, collection=collection), **sections)


def keep_given(**options: T) -> dict[str, T]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value}


@contextmanager
def open_for_writing(store: str, collection: str) -> Iterator[Waylore]:
    """Open the collection with its models, for commands that add; create it if it does not exist."""
    with report_errors():
        settings = load_settings(store, collection)
        with open_collection(settings, embedder=defer_embedder(settings.embedding)) as memory:
            yield memory


@contextmanager
def open_for_search(store: str, collection: str, method: str, *, rerank: bool | None = False) -> Iterator[Waylore]:
    """Open an existing collection with the models that a method needs, and the reranker unless `rerank` is false."""
    with report_errors():
        settings = load_existing(store, collection, **({"search": {"reranker": ""}} if rerank is False else {}))
        recipe = RECIPES.get(resolve_method(method or settings.search.method))
        by_words = recipe is not None and not recipe.hybrid.vector_weight
        with _open_plain(settings, create_reranker(settings)) if by_words else open_collection(settings) as memory:
            yield memory


@contextmanager
def open_for_change(store: str, collection: str, *, with_models: bool) -> Iterator[Waylore]:
    """Open an existing collection for a command that changes it, with its models if new texts need vectors."""
    with report_errors():
        settings = load_existing(store, collection)
        with open_collection(settings) if with_models else _open_plain(settings) as memory:
            yield memory


@contextmanager
def open_without_models(store: str, collection: str) -> Iterator[Waylore]:
    """Open an existing collection without its models."""
    with report_errors(), _open_plain(load_existing(store, collection)) as memory:
        yield memory


def _open_plain(settings: Settings, reranker: Reranker | None = None) -> Waylore:
    return Waylore.open(
        settings.store,
        collection=settings.collection,
        single_valued=settings.single_valued,
        timezone=settings.timezone,
        scrub=settings.secrets.is_scrubbed(settings.collection),
        reranker=reranker,
        **read_search_options(settings.search),
    )


def load_existing(store: str, collection: str, **sections: Any) -> Settings:
    """Load the settings of a store that exists: a command that reads must not create an empty file."""
    settings = load_settings(store, collection, **sections)
    file = find_file(settings)
    if file:
        require_file(file)
    names = [name for name, *_ in list_collections(str(file))] if file else []
    if names and settings.collection not in names:
        known = ", ".join(names)
        raise NotFound(
            f"{file} has no collection {settings.collection!r}; name one of these with --collection: {known}"
        )
    return settings


def require_file(file: Path) -> None:
    """Raise NotFound if the file of a store does not exist."""
    if not file.exists():
        raise NotFound(f"no store at {file}; create one with `waylore init`, or name another with --store")


def find_file(settings: Settings) -> Path | None:
    """Return the file of the store, if the store is a file."""
    parsed = parse_url(settings.store)
    return parsed.path if parsed.is_file and not parsed.is_cells else None


def build_filter(labels: Sequence[str], where: Sequence[str]) -> Filter:
    """Build the filter of a search. A value matches as a number and as text."""
    wanted: dict[str, list[Scalar]] = defaultdict(list)
    for key, value in map(_split_pair, where):
        wanted[key] += dict.fromkeys((value, parse_scalar(value)))
    return Filter(labels=read_labels(labels), metadata=dict(wanted))


def read_labels(labels: Sequence[str]) -> frozenset[str] | None:
    """Return the labels of the caller, without empty ones; None, which sees everything, if no option is given."""
    return frozenset(filter(None, labels)) if labels else None


def read_metadata(pairs: Sequence[str]) -> Metadata:
    """Return the metadata of a document; a repeated key has several values."""
    values: dict[str, list[Scalar]] = defaultdict(list)
    for key, value in map(_split_pair, pairs):
        values[key].append(parse_scalar(value))
    return {key: several if len(several) > 1 else several[0] for key, several in values.items()}


def parse_scalar(text: str) -> Scalar:
    """Return the number or boolean that a text is in JSON, else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _split_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ConfigError(f"{text!r} must be written as key=value")
    return key, value


def choose_method(method: str, values: Sequence[str]) -> str | Recipe | None:
    """Return the method of a search: a recipe if its values are overridden, None for the operator's default."""
    if not values:
        return resolve_method(method) if method else None
    return change_recipe(resolve_method(method or "graph"), values)


def find_documents(memory: Waylore, name: str, user: str) -> list[Document]:
    """Return the documents of an id, an address, a path (also the rows of a file) or a folder."""
    found = _find_at(memory, name, user) or _find_at(memory, find_address(name), user)
    if not found:
        try:
            found = [memory.get(name, user=user, include_expired=True).document]
        except NotFound as error:
            raise NotFound(f"no document {name}; `waylore list` shows addresses") from error
    return found


def _find_at(memory: Waylore, uri: str, user: str) -> list[Document]:
    listed = list(list_under(memory, uri, user))
    exact = [document for document in listed if uri in (document.uri, get_file(document.uri))]
    folder = uri if uri.endswith("/") else f"{uri}/"
    return exact or [document for document in listed if document.uri.startswith(folder)]


def list_under(memory: Waylore, under: str, user: str) -> Iterator[Document]:
    """Yield all documents whose addresses begin with `under`."""
    last: Document | None = None
    while page := memory.documents(under=under, after=last, limit=PAGE, user=user, include_expired=True):
        yield from page
        last = page[-1]
