"""`waylore search`, `ask-why`, `graph`, `facts` and `stats`: what is known, and why it was found.

They ask the engine, and `cli_shown` or `wire` says it; they change nothing but counts of use.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from waylore.config import Context
from waylore.errors import NotFound
from waylore.retrieval.context import Style
from waylore.surfaces import wire
from waylore.surfaces.cli.options import (
    AsOf,
    InCollection,
    Labels,
    Method,
    Numbers,
    StoreAt,
    Top,
    Where,
    asking,
    filter_of,
    method_of,
    recipe_of,
)
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, tell
from waylore.types.search import Found

Question = Annotated[str, typer.Argument(help="What you want to know.", show_default=False)]


def search(
    question: Question,
    method: Method = "chain",
    recipe: Numbers = [],  # noqa: B006 (typer copies it)
    top: Top = None,
    label: Labels = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    as_of: AsOf = None,
    explain: Annotated[bool, typer.Option("--explain", "-e", help="Say why each hit was found.")] = False,
    context: Annotated[bool, typer.Option("--context", help="The text to hand to a model instead.")] = False,
    style: Annotated[
        Style, typer.Option(metavar="NAME", help="How it is written: passages, graph or narrative.")
    ] = "graph",
    tokens: Annotated[int, typer.Option(metavar="N", min=1, help="The most tokens that it may take.")] = 4_000,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Find what bears on a question, each hit with the path to it.

    The method `chain` walks facts from what the question names; `hybrid` is plain search, `auto` chooses by
    the question. What the graph finds is added to what plain search finds, it takes nothing away.
    """
    with asking(store, collection, method) as memory:
        began = time.perf_counter()
        found = memory.search(question, **_asked(method, recipe, top, label, where, as_of))
        if context:
            made = memory.context(found, style=style, config=Context(max_tokens=tokens))
            tell(wire.Context.of(made), shown.plain(made.text), as_json)
        else:
            people = shown.answer(found, time.perf_counter() - began, explained=explain)
            tell(wire.Found.of(found), people, as_json)
        if not found.hits and not memory.stats().documents:
            typer.echo("waylore: the collection is empty: `waylore add PATH` fills it", err=True)


def ask_why(
    question: Question,
    hit: Annotated[str, typer.Argument(help="Its place among the hits, or its passage's identity.")] = "1",
    method: Method = "chain",
    recipe: Numbers = [],  # noqa: B006
    top: Top = None,
    label: Labels = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    as_of: AsOf = None,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Say why a hit was found, as a tree.

    What each search made of it, the facts of its path, the gate's decision, the time of each stage.
    """
    with asking(store, collection, method) as memory:
        began = time.perf_counter()
        found = memory.search(question, **_asked(method, recipe, top, label, where, as_of), count_use=False)
        seconds = time.perf_counter() - began
        rank = _rank(found, hit)
        of_hit = wire.Found.of(found).model_copy(update={"hits": [wire.Hit.of(found.hits[rank - 1])]})
        tell({"rank": rank, "found": of_hit}, shown.why(found, rank, seconds), as_json)


def _asked(
    method: str,
    numbers: Sequence[str],
    top: int | None,
    labels: Sequence[str],
    where: Sequence[str],
    as_of: datetime | None,
) -> dict[str, Any]:
    """How to search, as the engine takes it."""
    name = method_of(method)
    return {
        "top_k": top,
        "where": filter_of(labels, where),
        "method": name,
        "recipe": recipe_of(name, numbers),
        "as_of": as_of,
    }


def _rank(found: Found, hit: str) -> int:
    """The place of a hit that is named by its place or its passage."""
    ids = [each.passage.id for each in found.hits]
    rank = next((at for at, id_ in enumerate(ids, 1) if len(hit) > 6 and id_.startswith(hit)), 0)
    rank = rank or (int(hit) if hit.isdecimal() else 0)
    if not 1 <= rank <= len(ids):
        raise NotFound(f"there is no hit {hit} among {len(ids)}: give its place, or ask for more with --top")
    return rank
