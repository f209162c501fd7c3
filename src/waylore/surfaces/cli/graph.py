"""`waylore graph`, `facts` and `stats`: browse what is stored. They search nothing and change nothing."""

from typing import Annotated

import typer

from waylore.fence import to_line
from waylore.store.urls import without_password
from waylore.surfaces.cli.options import (
    AsOf,
    CollectionName,
    Labels,
    Limit,
    StoreUrl,
    UserName,
    build_filter,
    find_file,
    load_settings,
    open_without_models,
)
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, print_result
from waylore.types.plain import dump_fact

EntityName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the entity.", show_default=False)]


def graph(
    name: EntityName,
    hops: Annotated[int, typer.Option(metavar="N", min=1, max=3, help="Distance in facts, 1 to 3.")] = 1,
    limit: Limit = 100,
    label: Labels = [],  # noqa: B006
    as_of: AsOf = None,
    user: UserName = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show the facts around an entity, as a tree.

    Example: `waylore graph "Mara Lindqvist" --hops 2`
    """
    with open_without_models(store, collection) as memory:
        around = memory.graph(name, hops=hops, limit=limit, as_of=as_of, where=build_filter(label, ()), user=user)
        people = shown.render_graph(around) if around else _report_unknown(name)
        print_result([each.to_dict() for each in around], people, as_json)


def facts(
    name: EntityName,
    limit: Limit = 100,
    label: Labels = [],  # noqa: B006
    as_of: AsOf = None,
    user: UserName = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """List the facts of an entity, strongest first.

    Without --as-of all facts are listed, each with its period.

    Example: `waylore facts "Mara Lindqvist" --as-of 2024-06-30`
    """
    with open_without_models(store, collection) as memory:
        known = memory.facts(name, as_of=as_of, limit=limit, where=build_filter(label, ()), user=user)
        is_named = bool(known) or bool(memory.graph(name, limit=1, where=build_filter(label, ()), user=user))
        people = shown.render_facts(known) if known else _report_no_facts(name) if is_named else _report_unknown(name)
        print_result([dump_fact(fact) for fact in known], people, as_json)


def stats(store: StoreUrl = "", collection: CollectionName = "", as_json: AsJson = False) -> None:
    """Show the size of the collection, and its embedding model.

    Example: `waylore stats`
    """
    with open_without_models(store, collection) as memory:
        known, settings = memory.stats(), load_settings(store, collection)
        file = find_file(settings)
        size = file.stat().st_size if file else None
        place = without_password(settings.store)
        people = figures.render_statistics(known, store=place, collection=settings.collection, size=size)
        print_result(known.to_dict(), people, as_json)


def _report_no_facts(name: str) -> str:
    return f"no facts of {to_line(name)!r}; `waylore search` finds the passages that name it"


def _report_unknown(name: str) -> str:
    return f"no entity {to_line(name)!r}; `waylore search` finds passages, and the names that they use"
