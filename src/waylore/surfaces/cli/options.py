"""Options that several commands have, and what they come to: a collection, a filter, a moment, a recipe.

It opens what a command works on and closes it again; what is asked of it is the command's own affair.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from pydantic import TypeAdapter, ValidationError

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, NotFound, QueryError
from waylore.recipes import RECIPES, Recipe
from waylore.settings.load import Settings, load
from waylore.store.urls import parse_url
from waylore.surfaces.open import opened
from waylore.surfaces.terminal.output import told_errors
from waylore.types.knowledge import Metadata, Scalar
from waylore.types.search import Filter

ALIASES = {"graph": "chain", "agentic": "auto"}  # what the specification calls them
METHODS = ("auto", *RECIPES, *ALIASES)


def _methods(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


def moment(text: str) -> datetime:
    """A date or a time as ISO 8601 has it; without a zone it is UTC."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no date: write 2024-06-30, or 2024-06-30T12:00+02:00") from error
    return read if read.tzinfo else read.replace(tzinfo=UTC)


StoreAt = Annotated[
    str, typer.Option("--store", metavar="URL", help="A file, postgresql://…, or cells+ a catalogue.")
]
InCollection = Annotated[
    str, typer.Option("--collection", "-c", metavar="NAME", help="The body of knowledge to use.")
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help=f"{', '.join(name for name in METHODS if name not in ALIASES)}; "
        "graph is another name for chain, agentic for auto.",
        autocompletion=_methods,
    ),
]
Numbers = Annotated[
    list[str],
    typer.Option(
        "--recipe", metavar="PART=VALUE", help="Change a number of the method's recipe: walk.max_hops=2."
    ),
]
Top = Annotated[int | None, typer.Option("--top", "-n", metavar="N", min=1, help="How many hits, at least.")]
Labels = Annotated[
    list[str],
    typer.Option(
        "--label", "-l", metavar="LABEL", help="See what these labels may see; without one, everything."
    ),
]
Where = Annotated[
    list[str],
    typer.Option("--where", "-w", metavar="KEY=VALUE", help="Only documents with this metadata."),
]
AsOf = Annotated[
    datetime | None,
    typer.Option("--as-of", metavar="DATE", parser=moment, help="With the facts that held then."),
]


def settings_of(store: str, collection: str) -> Settings:
    """The settings, where options win."""
    return load(**given(store=store, collection=collection))


def given(**options: str) -> dict[str, str]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value}


@contextmanager
def using(store: str, collection: str) -> Iterator[Waylore]:
    """The collection with its models, made if need be, for what adds; errors within are told."""
    with told_errors(), opened(settings_of(store, collection)) as memory:
        yield memory


@contextmanager
def asking(store: str, collection: str, method: str) -> Iterator[Waylore]:
    """The collection with the models that a method needs, which may take a while; errors within are told."""
    recipe = RECIPES.get(method_of(method))
    with told_errors():
        settings = _of_a_store(store, collection)
        by_words = recipe is not None and not recipe.hybrid.vector_weight
        with _without_models(settings) if by_words else opened(settings) as memory:
            yield memory


@contextmanager
def looking_at(store: str, collection: str) -> Iterator[Waylore]:
    """The collection without its models; errors within are told."""
    with told_errors(), _without_models(_of_a_store(store, collection)) as memory:
        yield memory


def _without_models(settings: Settings) -> Waylore:
    return Waylore.open(settings.store, collection=settings.collection, functional=settings.functional)


def _of_a_store(store: str, collection: str) -> Settings:
    """The settings; a file that is not there is not made by looking into it."""
    settings = settings_of(store, collection)
    file = file_of(settings)
    if file and not file.exists():
        raise NotFound(f"there is no store at {file}: `waylore init` makes one, --store names another")
    return settings


def file_of(settings: Settings) -> Path | None:
    """The store's file, where it is one."""
    parsed = parse_url(settings.store)
    return parsed.path if parsed.is_file and not parsed.is_cells else None


def filter_of(labels: Sequence[str], where: Sequence[str]) -> Filter:
    """What the caller may see and wants to see; a value may be meant as a number or as a text."""
    wanted: dict[str, list[Scalar]] = defaultdict(list)
    for key, value in map(_pair, where):
        wanted[key] += dict.fromkeys((value, scalar(value)))
    return Filter(labels=seen_by(labels), metadata=dict(wanted))


def seen_by(labels: Sequence[str]) -> frozenset[str] | None:
    """Whose eyes to see with: those that see everything, if there are none; an empty one is nobody's."""
    return frozenset(filter(None, labels)) if labels else None


def metadata_of(pairs: Sequence[str]) -> Metadata:
    """What is known of a document; a key that comes more than once has several values."""
    told: dict[str, list[Scalar]] = defaultdict(list)
    for key, value in map(_pair, pairs):
        told[key].append(scalar(value))
    return {key: values if len(values) > 1 else values[0] for key, values in told.items()}


def scalar(text: str) -> Scalar:
    """A number or a truth value as JSON writes it, else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _pair(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not (key and found):
        raise ConfigError(f"{text!r} is no pair: write key=value")
    return key, value


def method_of(name: str) -> str:
    """A method by its own name."""
    return ALIASES.get(name, name)


def recipe_of(method: str, numbers: Sequence[str]) -> Recipe | None:
    """The method's recipe with other numbers; None, if none are given."""
    if not numbers:
        return None
    if method not in RECIPES:
        raise ConfigError(f"--recipe changes one recipe: name it, --method {'|'.join(RECIPES)}")
    changed: Recipe = RECIPES[method]
    for path, value in map(_pair, numbers):
        changed = _changed(changed, path.split("."), value, path)
    return replace(changed, name=f"{method} with {', '.join(numbers)}")


def _changed(part: Any, path: Sequence[str], value: str, told: str) -> Any:
    first, *rest = path
    hints = get_type_hints(type(part))
    if first not in hints:
        raise ConfigError(f"there is no {told}: use {', '.join(field.name for field in fields(part))}")
    if rest and hasattr(getattr(part, first), "__dataclass_fields__"):
        return replace(part, **{first: _changed(getattr(part, first), rest, value, told)})
    if rest or hasattr(getattr(part, first), "__dataclass_fields__"):
        raise ConfigError(f"{told} is no number: write part.name=value, as in walk.max_hops=2")
    return replace(part, **{first: _read(hints[first], value, told)})


def _read(kind: Any, value: str, told: str) -> Any:
    plain = value.split(",") if "tuple" in str(kind) else scalar(value)
    try:
        return TypeAdapter(kind).validate_python(plain)
    except ValidationError as error:
        raise QueryError(f"{told}={value}: {error.errors()[0]['msg']}") from error
