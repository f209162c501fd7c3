"""`waylore mcp`: serve a collection to an agent, and write it into the settings of a client.

Over stdio only the protocol is written to stdout. The store is opened by the first request, so a client with wrong
settings gets an error as an answer instead of a dead process.
"""

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Annotated, Any

import typer

from waylore.engine.waylore import Waylore
from waylore.providers.optional import require_extra
from waylore.settings.load import find_user_file, load
from waylore.settings.sections import Settings
from waylore.surfaces.cli.options import CollectionName, StoreUrl, keep_given, read_labels
from waylore.surfaces.mcp import clients
from waylore.surfaces.open import check_providers, open_collection
from waylore.surfaces.terminal.output import report_errors
from waylore.surfaces.tools.tools import Agent, Tool, choose_tools

mcp_app = typer.Typer(help="Serve the collection to an agent (MCP).")

Labels = Annotated[
    list[str],
    typer.Option("--label", "-l", help="Label of the agent, for its reads and its documents."),
]
AgentUser = Annotated[str, typer.Option("--user", "-u", metavar="NAME", help="User whose memory the agent has.")]
TextOnly = Annotated[bool, typer.Option("--text", help="Answer with text only, for clients that would show JSON.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Do not let the agent add or forget.")]


@mcp_app.callback(invoke_without_command=True)
def mcp(
    context: typer.Context,
    store: StoreUrl = "",
    collection: CollectionName = "",
    label: Labels = [],  # noqa: B006 (typer's way)
    user: AgentUser = "",
    read_only: ReadOnly = False,
    text: TextOnly = False,
    deep_research: Annotated[
        bool, typer.Option("--deep-research", help="Also list search and fetch, as deep-research clients expect.")
    ] = False,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP at /mcp instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "",
    port: Annotated[int | None, typer.Option(help="Port to listen on.", min=0, max=65_535)] = None,
    allow_host: Annotated[
        list[str], typer.Option(help="Host name that clients may use for this machine, as memory.example.")
    ] = [],  # noqa: B006
) -> None:
    """Serve the collection to an agent: on stdin and stdout, as MCP clients start it, or over HTTP.

    Example: `waylore mcp --read-only`
    """
    if context.invoked_subcommand:
        return
    listen = keep_given(host=host) | ({} if port is None else {"port": port})
    with report_errors():
        given = {"http": listen, "mcp": keep_given(text=text, deep_research=deep_research)}
        settings = load(**keep_given(store=store, collection=collection, **given))
        check_providers(settings)
        logging.basicConfig(level=settings.telemetry.log_level.upper(), stream=sys.stderr)
        serve = _prepare_http(settings, allow_host) if http else _serve_stdio
        with _open_lazily(settings, label, user, may_write=not read_only) as agent:
            serve(agent, choose_tools(settings.mcp, may_write=not read_only))


@mcp_app.command()
def install(
    client: Annotated[clients.Name, typer.Option(help="Client to set up.")],
    name: Annotated[str, typer.Option(help="Name of the server in the client.")] = clients.DEFAULT_NAME,
    store: StoreUrl = "",
    collection: CollectionName = "",
    label: Labels = [],  # noqa: B006
    user: AgentUser = "",
    read_only: ReadOnly = False,
    uvx: Annotated[bool, typer.Option("--uvx", help="Start the server with uvx instead of this Python.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Show the entry without writing it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking for confirmation.")] = False,
) -> None:
    """Add Waylore to the settings of a client, after showing the entry and asking.

    Example: `waylore mcp install --client claude`
    """
    with report_errors():
        options = keep_given(store=store, collection=collection)
        to = clients.CLIENTS[client]()
        labels = [part for one in label for part in ("--label", one)]
        arguments = ["--text", *labels, *(["--user", user] if user else []), *(["--read-only"] * read_only)]
        made = clients.make_entry(to, load(**options), options, arguments, uvx)
        typer.echo(json.dumps({to.key: {name: made.start}}, indent=2, ensure_ascii=False))
        for variable in made.secrets:
            typer.echo(f"waylore: {variable} is secret and not in the entry; put it into {find_user_file()}", err=True)
        if not only_print:
            _install(to, name, made, yes)


def _install(to: clients.Client, name: str, made: clients.Entry, yes: bool) -> None:
    content = clients.merge_entry(to, name, made.start)
    if not yes:
        typer.confirm(f"Write this to {to.file}?", abort=True, err=True)
    kept = clients.write(to.file, content)
    backup = f"; the old file is {kept}" if kept else ""
    typer.echo(f"wrote {to.file}{backup}. Restart the client to use it.", err=True)


def _serve_stdio(agent: Callable[[], Agent], tools: Sequence[Tool[Any, Any]]) -> None:
    with require_extra("the MCP server needs", "mcp"):
        import anyio  # noqa: PLC0415

        from waylore.surfaces.mcp.server import create_server, serve_stdio  # noqa: PLC0415
    if sys.stdin.isatty():
        typer.echo("waylore: this server reads MCP on stdin; set up a client with `waylore mcp install`", err=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that reads stdin would not end
    anyio.run(serve_stdio, create_server(lambda _: agent(), tools))


def _prepare_http(settings: Settings, names: Sequence[str]) -> Callable[[Callable[[], Agent], Sequence[Any]], None]:
    """Return a function that serves over HTTP at the address of the settings, without keys."""
    with require_extra("the MCP server needs", "mcp"):
        import uvicorn  # noqa: PLC0415

        from waylore.surfaces.mcp.server import LOOPBACK, create_application, create_server  # noqa: PLC0415
    host, port = settings.http.host, settings.http.port
    known = [*settings.http.hosts, *names]

    def serve(agent: Callable[[], Agent], tools: Sequence[Tool[Any, Any]]) -> None:
        agent()  # report errors of the store now
        if host not in LOOPBACK:
            typer.echo(
                "waylore: everyone who can reach this address can use it; `waylore serve` requires keys", err=True
            )
        app = create_application(create_server(lambda _: agent(), tools), hosts=[*LOOPBACK, host, *known])
        typer.echo(f"waylore: MCP at http://{host}:{port}/mcp", err=True)
        uvicorn.run(app, host=host, port=port, log_level=settings.telemetry.log_level)

    return serve


@contextmanager
def _open_lazily(
    settings: Settings, labels: Sequence[str], user: str, may_write: bool
) -> Iterator[Callable[[], Agent]]:
    """Yield a function that returns the agent; its first call opens the collection."""
    memories: list[Waylore] = []
    opening = Lock()

    def agent() -> Agent:
        with opening:
            if not memories:
                memories.append(open_collection(settings))
        return Agent(memories[0], read_labels(labels), may_write, user)

    try:
        yield agent
    finally:
        for memory in memories:
            memory.close()
