"""`waylore list`, `show`, `related`, `connect`, `entities`, `facts` and `stats`: browse a collection."""

from contextlib import AbstractContextManager, suppress
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.fence import to_line
from waylore.store.urls import without_password
from waylore.surfaces.cli.options import (
    AsOf,
    CollectionName,
    Labels,
    Limit,
    StoreUrl,
    UserName,
    Where,
    build_filter,
    find_documents,
    find_file,
    load_settings,
    open_for_search,
    open_without_models,
)
from waylore.surfaces.terminal import documents, figures, relations
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, print_result
from waylore.types.knowledge import Document
from waylore.types.plain import dump_document, dump_fact, dump_indexed_document
from waylore.types.relations import Direction, Related

EntityName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the entity.", show_default=False)]


def list_(
    under: Annotated[
        str, typer.Argument(metavar="[ADDRESS]", help="Only addresses that begin with this.", show_default=False)
    ] = "",
    after: Annotated[str, typer.Option(metavar="ID", help="Start after this document.")] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Number of documents.")] = 100,
    label: Labels = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    user: UserName = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """List documents by address.

    Example: `waylore list docs/ --limit 20`
    """
    with open_without_models(store, collection) as memory:
        visible = build_filter(label, where)
        last = memory.get(after, where=visible, user=user).document if after else None
        found = memory.documents(under=under, after=last, limit=limit + 1, where=visible, user=user)
        people = documents.render_documents(found[:limit], has_more=len(found) > limit)
        print_result([dump_document(document) for document in found[:limit]], people, as_json)


def show(
    name: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="Id, address or path; or the id of a passage.", show_default=False)
    ],
    user: UserName = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show a document with its passages and facts.

    Example: `waylore show docs/login.md`
    """
    with open_without_models(store, collection) as memory:
        found = [memory.get(each.id, user=user, include_expired=True) for each in _find_shown(memory, name, user)]
        people = Group(*(part for each in found for part in (documents.render_document(each), Text())))
        print_result([dump_indexed_document(each) for each in found], people, as_json)


def _find_shown(memory: Waylore, name: str, user: str) -> list[Document]:
    """Return the documents of an id, address or path, or the document of a passage."""
    try:
        return find_documents(memory, name, user)
    except NotFound:
        with suppress(NotFound):
            return [memory.get_passage(name, user=user)[1]]
        raise


def related(
    name: EntityName,
    predicate: Annotated[
        list[str],
        typer.Option("--predicate", "-p", metavar="WORDS", help="Only facts that state this, also in other words."),
    ] = [],  # noqa: B006
    direction: Annotated[
        Direction, typer.Option(metavar="WAY", help="Facts to it (in), from it (out), or both.")
    ] = "both",
    hops: Annotated[int, typer.Option(metavar="N", min=1, max=6, help="Distance in facts, 1 to 6.")] = 1,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1_000, help="Number of facts to show.")] = 50,
    label: Labels = [],  # noqa: B006
    as_of: AsOf = None,
    user: UserName = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show the facts of an entity as a tree, and whether these are all.

    An entity with several names is one thing. If several things share the name, they are listed with their ids.

    Example: `waylore related Quarry --predicate "depends on" --direction in --hops 3`
    """
    with _open(store, collection, has_predicate=bool(predicate)) as memory:
        answer = memory.related(
            name,
            predicates=predicate,
            direction=direction,
            hops=hops,
            limit=limit,
            as_of=as_of,
            where=build_filter(label, ()),
            user=user,
        )
        print_result(answer.to_dict(), relations.render_related(answer), as_json)


def connect(
    name: EntityName,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Name of the other entity.", show_default=False)],
    max_hops: Annotated[int, typer.Option(metavar="N", min=1, max=6, help="Length of a path in steps, 1 to 6.")] = 4,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Number of paths.")] = 3,
    label: Labels = [],  # noqa: B006
    as_of: AsOf = None,
    user: UserName = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show how two entities are connected: the shortest paths, step by step.

    A step is a fact, or a sentence that names both.

    Example: `waylore connect Ledger "Mara Lindqvist"`
    """
    with open_without_models(store, collection) as memory:
        where = build_filter(label, ())
        answer = memory.connect(name, other, max_hops=max_hops, limit=limit, as_of=as_of, where=where, user=user)
        print_result(answer.to_dict(), relations.render_connection(answer), as_json)


def entities(
    type_: Annotated[str, typer.Option("--type", "-t", metavar="TYPE", help="Only of this type.")] = "",
    predicate: Annotated[
        str, typer.Option("--predicate", "-p", metavar="WORDS", help="Only subjects of facts that state this.")
    ] = "",
    about: Annotated[
        str, typer.Option("--object", "-o", metavar="NAME", help="Only entities that a fact relates to this entity.")
    ] = "",
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="Only with this name or alias.")] = "",
    after: Annotated[str, typer.Option(metavar="CURSOR", help="Cursor of the previous page.")] = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1_000, help="Number of entities.")] = 50,
    label: Labels = [],  # noqa: B006
    as_of: AsOf = None,
    user: UserName = "",
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """List entities by type, name or relation, and count them.

    Example: `waylore entities --predicate owns --object Quarry`
    """
    with _open(store, collection, has_predicate=bool(predicate)) as memory:
        answer = memory.list_entities(
            type=type_,
            predicate=predicate,
            object=about,
            name=name,
            after=after,
            limit=limit,
            as_of=as_of,
            where=build_filter(label, ()),
            user=user,
        )
        print_result(answer.to_dict(), relations.render_entities(answer, about), as_json)


def _open(store: str, collection: str, *, has_predicate: bool) -> AbstractContextManager[Waylore]:
    """Open a collection, with its embedder if it has to compare predicates."""
    return open_for_search(store, collection, "") if has_predicate else open_without_models(store, collection)


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
        where = build_filter(label, ())
        known = memory.facts(name, as_of=as_of, limit=limit, where=where, user=user)
        around = None if known else memory.related(name, limit=1, where=where, user=user)
        people = _report_no_facts(around) if around else shown.render_facts(known)
        print_result([dump_fact(fact) for fact in known], people, as_json)


def stats(store: StoreUrl = "", collection: CollectionName = "", as_json: AsJson = False) -> None:
    """Show the size of the collection, its growth, and its embedding model.

    Example: `waylore stats`
    """
    with open_without_models(store, collection) as memory:
        known, growth, settings = memory.stats(), memory.growth(), load_settings(store, collection)
        file = find_file(settings)
        size = file.stat().st_size if file else None
        place = without_password(settings.store)
        people = figures.render_statistics(known, growth, store=place, collection=settings.collection, size=size)
        print_result({**known.to_dict(), "growth": [each.to_dict() for each in growth]}, people, as_json)


def _report_no_facts(answer: Related) -> RenderableType:
    """Report that an entity has no facts, or that no entity has the name."""
    if not answer.entities:
        return relations.render_related(answer)
    return f"no facts of {to_line(answer.name)!r}; `waylore search` finds the passages that name it"
