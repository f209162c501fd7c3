"""`waylore search` and `waylore explain`: find passages, and show why a passage was found.

The engine searches; `terminal.hits` renders the result for people, and `to_dict` for programs. Only use counts change.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

import typer

from waylore.errors import NotFound
from waylore.retrieval.context.block import Layout
from waylore.retrieval.context.render import count_hits
from waylore.surfaces.cli.options import (
    AsOf,
    CollectionName,
    Grouping,
    Labels,
    Method,
    MinSimilarity,
    RecipeValues,
    Rerank,
    SessionName,
    Since,
    StoreUrl,
    TopK,
    Until,
    UserName,
    Where,
    build_filter,
    choose_method,
    open_for_search,
)
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, print_result
from waylore.types.search import SearchResult

MIN_ID_LENGTH = 7  # minimum length of an argument that may be the beginning of a passage's id
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="The question, or keywords.", show_default=False)]


def search(
    question: Question,
    method: Method = "",
    recipe: RecipeValues = [],  # noqa: B006 (typer copies it)
    top_k: TopK = None,
    label: Labels = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    as_of: AsOf = None,
    user: UserName = "",
    session: SessionName = "",
    since: Since = None,
    until: Until = None,
    group_by: Grouping = "turn",
    min_similarity: MinSimilarity = None,
    rerank: Rerank = None,
    explain: Annotated[bool, typer.Option("--explain", "-e", help="Show scores and facts for each hit.")] = False,
    context: Annotated[bool, typer.Option("--context", help="Print the text for a model instead of hits.")] = False,
    layout: Annotated[
        Layout, typer.Option(metavar="NAME", help="Layout of that text: passages, graph or narrative.")
    ] = "passages",
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", metavar="N", min=1, help="Length of that text in tokens.")
    ] = 4_000,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Search the collection and show the best passages, each with the path that led to it.

    The method `graph` follows facts from the entities that the question names, `hybrid` is plain search, and `auto`,
    the default, chooses by the question and the collection. The graph adds hits to those of plain search and removes
    none.

    Example: `waylore search "Who owns the session service?" -k 5`
    """
    with open_for_search(store, collection, method, rerank=rerank) as memory:
        started = time.perf_counter()
        scope = {"user": user, "session": session, "since": since, "until": until, "group_by": group_by}
        hits = count_hits(max_tokens) if context and top_k is None else top_k
        options = _read_options(method, recipe, hits, label, where, as_of, min_similarity) | scope | {"rerank": rerank}
        result = memory.search(question, **options)
        if context:
            made = memory.context(result, layout=layout, max_tokens=max_tokens)
            print_result(made.to_dict() if as_json else None, made.text, as_json)
            if result.hits and not made.text:
                typer.echo(f"waylore: no passage fits into {max_tokens} tokens; pass a larger --max-tokens", err=True)
        else:
            people = shown.render_result(result, time.perf_counter() - started, explained=explain)
            print_result(result.to_dict(explain=explain) if as_json else None, people, as_json)
        if not result.hits and not memory.stats().documents:
            typer.echo("waylore: the collection is empty; add to it with `waylore add PATH`", err=True)


def explain(
    question: Question,
    hit: Annotated[str, typer.Argument(metavar="RANK", help="Rank of the hit, or the id of its passage.")] = "1",
    method: Method = "",
    recipe: RecipeValues = [],  # noqa: B006
    top_k: TopK = None,
    label: Labels = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    as_of: AsOf = None,
    user: UserName = "",
    session: SessionName = "",
    since: Since = None,
    until: Until = None,
    group_by: Grouping = "turn",
    min_similarity: MinSimilarity = None,
    rerank: Rerank = None,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show why a hit was found, as a tree.

    The tree has the hit's rank in each search, the facts of its path, the decision of the gate, and the time of each
    stage.

    Example: `waylore explain "Who owns the session service?" 2`
    """
    with open_for_search(store, collection, method, rerank=rerank) as memory:
        started = time.perf_counter()
        scope = {"user": user, "session": session, "since": since, "until": until, "group_by": group_by}
        options = _read_options(method, recipe, top_k, label, where, as_of, min_similarity) | scope | {"rerank": rerank}
        result = memory.search(question, **options, record_use=False)
        seconds = time.perf_counter() - started
        rank = _find_rank(result, hit)
        of_hit = replace(result, hits=result.hits[rank - 1 : rank]).to_dict(explain=True)
        people = shown.render_explanation(result, rank, seconds)
        print_result({"rank": rank, "result": of_hit}, people, as_json)


def _read_options(
    method: str,
    values: Sequence[str],
    top_k: int | None,
    labels: Sequence[str],
    where: Sequence[str],
    as_of: datetime | None,
    min_similarity: float | None,
) -> dict[str, Any]:
    """Return the options of a search as the engine takes them."""
    return {
        "top_k": top_k,
        "where": build_filter(labels, where),
        "method": choose_method(method, values),
        "as_of": as_of,
        "min_similarity": min_similarity,
    }


def _find_rank(result: SearchResult, hit: str) -> int:
    """Return the rank of a hit, given by rank or by the id of its passage."""
    ids = [each.passage.id for each in result.hits]
    is_id = len(hit) >= MIN_ID_LENGTH
    rank = next((at for at, id_ in enumerate(ids, 1) if is_id and id_.startswith(hit)), 0)
    rank = rank or (int(hit) if hit.isdecimal() else 0)
    if not 1 <= rank <= len(ids):
        raise NotFound(f"no hit {hit} among {len(ids)}; give a rank from 1 on, or get more hits with --top-k")
    return rank
