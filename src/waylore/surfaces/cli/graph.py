"""`waylore search`, `ask-why`, `graph`, `facts` and `stats`: what is known, and why it was found.

They ask the engine, and `cli_shown` or `wire` says it; they change nothing but counts of use.
"""

from typing import Annotated

import typer

from waylore.settings.load import without_password
from waylore.surfaces import wire
from waylore.surfaces.cli.options import (
    AsOf,
    InCollection,
    Labels,
    StoreAt,
    file_of,
    filter_of,
    looking_at,
    settings_of,
)
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, tell

Name = Annotated[str, typer.Argument(help="A name or another name of it.", show_default=False)]


def graph(
    entity: Name,
    hops: Annotated[int, typer.Option(metavar="N", min=1, max=3, help="How far to look, 1 to 3.")] = 1,
    most: Annotated[int, typer.Option(metavar="N", min=1, help="The most facts to show.")] = 100,
    label: Labels = [],  # noqa: B006
    as_of: AsOf = None,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Show what stands around an entity, as a tree of facts."""
    with looking_at(store, collection) as memory:
        around = memory.graph(entity, hops=hops, most=most, as_of=as_of, where=filter_of(label, ()))
        people = shown.graph(around) if around else _unknown(entity)
        tell([wire.Surroundings.of(each) for each in around], people, as_json)


def facts(
    entity: Name,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The most facts to show.")] = 100,
    label: Labels = [],  # noqa: B006
    as_of: AsOf = None,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """List what is known of an entity.

    All of it, each fact with its end, or what held at a time.
    """
    with looking_at(store, collection) as memory:
        known = memory.facts(entity, as_of=as_of, limit=limit, where=filter_of(label, ()))
        people = shown.facts(known) if known else _unknown(entity)
        tell([wire.Fact.of(fact) for fact in known], people, as_json)


def stats(store: StoreAt = "", collection: InCollection = "", as_json: AsJson = False) -> None:
    """Tell how much a collection holds, and its model."""
    with looking_at(store, collection) as memory:
        known, settings = memory.stats(), settings_of(store, collection)
        file = file_of(settings)
        size = file.stat().st_size if file else None
        place = without_password(settings.store)
        people = figures.statistics(known, store=place, collection=settings.collection, size=size)
        tell(wire.Statistics.of(known), people, as_json)


def _unknown(entity: str) -> str:
    return (
        f"nothing is known of {shown.line(entity)!r}: `waylore search` finds texts, and the names that they use"
    )
