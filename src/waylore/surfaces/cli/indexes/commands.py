"""The index of a collection on a Qdrant cluster: `waylore index create`, `feed`, `status` and `drop`.

`store.postgres.candidates` does the work.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from waylore.errors import ConfigError
from waylore.store.urls import parse_url, require_driver
from waylore.surfaces.cli.options import CollectionName, StoreUrl, load_settings
from waylore.surfaces.terminal.output import AsJson, handle_interrupt, print_result, report_errors, show_progress

if TYPE_CHECKING:
    from waylore.store.postgres.candidates.admin import IndexAdmin, IndexStatus

index_app = typer.Typer(no_args_is_help=True, help="A search index on a Qdrant cluster, for one large collection.")
RESUME = "Run `waylore index feed` to continue."


@index_app.command("create")
def create_index(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="Address of Qdrant, or of each peer of a cluster, separated by commas."),
    ],
    shards: Annotated[int | None, typer.Option(min=1, help="Shards of a new collection of Qdrant.")] = None,
    replicas: Annotated[int | None, typer.Option(min=1, help="Copies of each shard.")] = None,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Give a collection on PostgreSQL an index on a Qdrant cluster, and build it. An API key is the URL's password.

    Example: `waylore index create http://localhost:6333 --collection team`
    """
    with _open(store, collection) as index:
        index.create(url, shards=shards, replicas=replicas)
        status = _feed(index)
    print_result(asdict(status), _describe(status), as_json)


@index_app.command("feed")
def feed_index(store: StoreUrl = "", collection: CollectionName = "", as_json: AsJson = False) -> None:
    """Send missing changes to the index. Processes that have the collection open do the same.

    Example: `waylore index feed --collection team`
    """
    with _open(store, collection) as index:
        status = _feed(index)
    print_result(asdict(status), _describe(status), as_json)


@index_app.command("status")
def show_index(store: StoreUrl = "", collection: CollectionName = "", as_json: AsJson = False) -> None:
    """Show the state of the index, and the number of missing changes.

    Example: `waylore index status --collection team`
    """
    with _open(store, collection) as index:
        status = index.read_status()
    print_result(asdict(status), _describe(status), as_json)


@index_app.command("drop")
def drop_index(
    force: Annotated[
        bool, typer.Option("--force", help="Also if the cluster does not answer; its points may then remain.")
    ] = False,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Remove the collection from its index. Searches use PostgreSQL alone again.

    Example: `waylore index drop --collection team`
    """
    with _open(store, collection) as index:
        index.drop(is_forced=force)
    print_result({"dropped": True}, "the index is dropped", as_json)


def _feed(index: "IndexAdmin") -> "IndexStatus":
    sent = 0
    with handle_interrupt(RESUME), show_progress("feeding the index") as show:
        for step in index.feed():
            sent += step.sent
            show(sent, sent + step.pending, f"{sent:,} items")
    return index.read_status()


def _describe(status: "IndexStatus") -> str:
    if status.problem:
        return f"{status.url}: {status.problem}; {status.pending:,} changes are waiting"
    state = "built" if status.is_built else "being built"
    lag = f"{status.pending:,} changes behind, the oldest {status.seconds:,.0f} s" if status.pending else "up to date"
    return f"{status.url}: {state}, {status.points:,} points for {status.items:,} items, {lag}"


@contextmanager
def _open(store: str, collection: str) -> "Iterator[IndexAdmin]":
    """Open the index of a collection on PostgreSQL."""
    with report_errors():
        settings = load_settings(store, collection)
        parsed = parse_url(settings.store)
        if parsed.is_cells or not parsed.is_server:
            raise ConfigError("only a collection on PostgreSQL can have an index; name its database with --store")
        with require_driver():
            from waylore.store.postgres.candidates.admin import IndexAdmin  # noqa: PLC0415 (optional driver)
        with closing(IndexAdmin(settings.store, settings.collection)) as index:
            yield index
