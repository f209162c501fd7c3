"""`waylore mcp`: serves the memory to an agent, and `waylore mcp install` tells a client of it.

Over stdio nothing but the protocol is written to stdout, and the store is opened when it is first asked for: a
client that starts us in the wrong way is told so in an answer, instead of finding a dead process.
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
from waylore.providers.optional import needing
from waylore.settings.load import Settings, load, users_own
from waylore.surfaces.cli.options import InCollection, StoreAt, given, seen_by
from waylore.surfaces.mcp import clients
from waylore.surfaces.open import opened
from waylore.surfaces.terminal.output import told_errors
from waylore.surfaces.tools.tools import READING, RESEARCH, TOOLS, Agent

mcp_app = typer.Typer(help="Serve the memory to an agent (MCP).")

Labels = Annotated[
    list[str],
    typer.Option("--label", "-l", help="The agent sees what these labels may see, and what it adds has them."),
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="The agent may neither add nor forget.")]


@mcp_app.callback(invoke_without_command=True)
def mcp(
    context: typer.Context,
    store: StoreAt = "",
    collection: InCollection = "",
    label: Labels = [],  # noqa: B006 (typer's way)
    read_only: ReadOnly = False,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP at /mcp, not on stdin and stdout.")
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "",
    port: Annotated[int | None, typer.Option(help="The port to listen on.", min=0, max=65_535)] = None,
    allow_host: Annotated[
        list[str], typer.Option(help="A name that clients may call this machine by, as memory.example.")
    ] = [],  # noqa: B006
) -> None:
    """Serve the memory to an agent: on stdin and stdout, as MCP clients start it, or over HTTP."""
    if context.invoked_subcommand:
        return
    listen = given(host=host) | ({} if port is None else {"port": port})
    with told_errors():
        settings = load(**given(store=store, collection=collection), **({"http": listen} if listen else {}))
        logging.basicConfig(level=settings.telemetry.level.upper(), stream=sys.stderr)
        serve = _over_http(settings, allow_host) if http else _over_stdio
        with _opened_when_asked(settings, label, may_write=not read_only) as agent:
            serve(agent, read_only)


@mcp_app.command()
def install(
    client: Annotated[clients.Name, typer.Option(help="Who should use the memory.")],
    name: Annotated[str, typer.Option(help="What the client calls it.")] = "waylore",
    store: StoreAt = "",
    collection: InCollection = "",
    label: Labels = [],  # noqa: B006
    read_only: ReadOnly = False,
    uvx: Annotated[bool, typer.Option("--uvx", help="Start it with uvx, not with this Python.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Show what would be written, and leave.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
) -> None:
    """Write Waylore into a client's settings, beside what is there; shows it first, and asks."""
    with told_errors():
        options = given(store=store, collection=collection)
        to = clients.CLIENTS[client]()
        arguments = [*(part for one in label for part in ("--label", one)), *(["--read-only"] * read_only)]
        made = clients.entry(to, load(**options), options, arguments, uvx)
        typer.echo(json.dumps({to.key: {name: made.start}}, indent=2, ensure_ascii=False))
        for variable in made.secrets:
            typer.echo(
                f"waylore: {variable} is secret, so it is not in it: put it into {users_own()}", err=True
            )
        if not only_print:
            _install(to, name, made, yes)


def _install(to: clients.Client, name: str, made: clients.Entry, yes: bool) -> None:
    content = clients.merged(to, name, made.start)
    if not yes:
        typer.confirm(f"Write this to {to.file}?", abort=True, err=True)
    kept = clients.write(to.file, content)
    was = f"; what it was is in {kept}" if kept else ""
    typer.echo(f"{to.file} is written{was}. Restart the client to use it.", err=True)


def _over_stdio(agent: Callable[[], Agent], read_only: bool) -> None:
    with needing("the MCP server needs", "mcp"):
        import anyio  # noqa: PLC0415

        from waylore.surfaces.mcp.server import over_stdio, server  # noqa: PLC0415
    if sys.stdin.isatty():
        typer.echo("waylore: a client speaks to this on stdin; `waylore mcp install` sets one up", err=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that waits for stdin would wait on
    anyio.run(over_stdio, server(lambda _: agent(), _tools(read_only)))


def _over_http(settings: Settings, names: Sequence[str]) -> Callable[[Callable[[], Agent], bool], None]:
    """Serves where the settings say; whoever can reach that can use it, for there are no keys here."""
    with needing("the MCP server needs", "mcp"):
        import uvicorn  # noqa: PLC0415

        from waylore.surfaces.mcp.server import LOOPBACK, application, server  # noqa: PLC0415
    host, port = settings.http.host, settings.http.port

    def serve(agent: Callable[[], Agent], read_only: bool) -> None:
        agent()  # what is wrong with the store is told now
        if host not in LOOPBACK:
            typer.echo("waylore: everyone who reaches this can use it; `waylore serve` asks for keys", err=True)
        app = application(server(lambda _: agent(), _tools(read_only)), hosts=[*LOOPBACK, host, *names])
        typer.echo(f"waylore: MCP at http://{host}:{port}/mcp", err=True)
        uvicorn.run(app, host=host, port=port, log_level=settings.telemetry.level)

    return serve


def _tools(read_only: bool) -> Sequence[Any]:
    return (*READING, *RESEARCH) if read_only else TOOLS


@contextmanager
def _opened_when_asked(
    settings: Settings, labels: Sequence[str], may_write: bool
) -> Iterator[Callable[[], Agent]]:
    """The agent of this process; its memory is opened once, by the first who asks."""
    memories: list[Waylore] = []
    opening = Lock()

    def agent() -> Agent:
        with opening:
            if not memories:
                memories.append(opened(settings))
        return Agent(memories[0], seen_by(labels), may_write)

    try:
        yield agent
    finally:
        for memory in memories:
            memory.close()
