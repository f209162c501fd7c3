"""`waylore serve` and `waylore keys`: the HTTP service from a terminal, and the keys that open it.

Options reach the processes that answer through the environment, which is where each of them reads its settings.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import Annotated

import typer

from waylore.errors import ConfigError
from waylore.providers.optional import needing
from waylore.service.callers import is_loopback
from waylore.settings.load import Settings, hand_on, load
from waylore.store.urls import parse_url
from waylore.surfaces.cli.options import given
from waylore.surfaces.terminal.output import told_errors

FACTORY = "waylore.surfaces.http.app:from_environment"
CONNECTIONS = 1_000  # that one process holds; beyond them requests are refused
FINISH_SECONDS = 30  # that requests have to end when the service is told to

Store = Annotated[str | None, typer.Option(help="A file, postgresql://…, or cells+ a catalogue.")]
Host = Annotated[str | None, typer.Option(help="The address to listen on; http.host if absent.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on, 0 for any; http.port if absent.")]
Workers = Annotated[int | None, typer.Option(help="Processes that answer; http.workers if absent.")]
NoAuth = Annotated[bool, typer.Option("--no-auth", help="Let anyone do anything; on loopback only.")]
KeyName = Annotated[str, typer.Argument(help="What you call it.")]
KeyId = Annotated[str, typer.Argument(help="Its identity, as `waylore keys list` shows it.")]
Opens = Annotated[list[str] | None, typer.Option("--collection", help="One that it opens; all, if absent.")]
Reads = Annotated[list[str] | None, typer.Option("--label", help="A label that it reads; all, if absent.")]
Days = Annotated[
    float | None, typer.Option("--expires", min=0, help="In how many days it ends; never, if absent.")
]
Grace = Annotated[float, typer.Option(min=0, help="Hours that the former secret goes on working.")]
Allows = Annotated[str, typer.Option("--scope", help="read, write or admin; each allows the ones before it.")]


def serve(
    store: Store = None,
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
    no_auth: NoAuth = False,
) -> None:
    """Answer over HTTP until told to stop; requests that are under way are finished."""
    with told_errors():
        http = {"host": host, "port": port, "workers": workers, "auth": False if no_auth else None}
        hand_on({"store": store, **{f"http_{name}": value for name, value in http.items()}})
        settings = load()
        _check(settings)
        with needing("the HTTP service needs", "http"):
            from waylore.surfaces.http.app import open_service  # noqa: PLC0415
        with open_service(settings) as service:  # what cannot be opened is told here, in a line
            has_keys = bool(service.registry.keys(limit=1))
        if settings.http.auth and not has_keys:
            typer.echo("there is no key yet; make one: waylore keys create NAME --scope admin", err=True)
        _run(settings)


# -- serving -------------------------------------------------------------------------------------------


def _check(settings: Settings) -> None:
    http = settings.http
    if not http.auth and not is_loopback(http.host):
        raise ConfigError(
            f"without keys anyone who reaches {http.host} may do anything: listen on 127.0.0.1, or leave "
            "http.auth on"
        )
    if http.workers > 1 and not parse_url(settings.store).is_server:
        raise ConfigError("a file is served by one process: set http.workers to 1, or use PostgreSQL")


def _run(settings: Settings) -> None:
    """As `uvicorn.run` does, but the port is known and told before anything is answered."""
    import uvicorn  # noqa: PLC0415
    from uvicorn.supervisors import Multiprocess  # noqa: PLC0415

    config = uvicorn.Config(
        FACTORY,
        factory=True,
        host=settings.http.host,
        port=settings.http.port,
        workers=settings.http.workers,
        timeout_graceful_shutdown=FINISH_SECONDS,
        http="waylore.surfaces.http.limits:Impatient",
        limit_concurrency=CONNECTIONS,
        server_header=False,
        log_config=None,
    )
    socket = config.bind_socket()
    socket.setsockopt(
        IPPROTO_TCP, TCP_NODELAY, 1
    )  # asyncio does so only for sockets that it made: 40 ms an answer
    socket.listen(config.backlog)  # who comes while the store is being opened waits
    host, port = socket.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"listening on http://{shown}:{port} (its reference: /docs)", err=True)
    if config.workers > 1:
        with _counting_together(settings):
            Multiprocess(config, sockets=[socket]).run()
        return
    server = uvicorn.Server(config)
    server.run(sockets=[socket])
    if not server.started:
        raise typer.Exit(1)


def _counting_together(settings: Settings) -> AbstractContextManager[None]:
    """Processes that answer together count together, where anything is counted."""
    if not settings.telemetry.metrics:
        return nullcontext()
    from waylore.surfaces.telemetry.metrics import shared  # noqa: PLC0415

    return shared()


Store_worker = Annotated[str | None, typer.Option(help="postgresql://…, or cells+ a catalogue there.")]
Count = Annotated[int, typer.Option("--jobs", min=1, help="Jobs to do at the same time.")]


def worker(store: Store_worker = None, jobs: Count = 2) -> None:
    """Do jobs until told to stop; a job that is stopped is gone on with by whoever comes next."""
    with told_errors():
        known = load(**given(store=store or ""))
        settings = known.model_copy(update={"http": known.http.model_copy(update={"jobs": jobs})})
        _check_worker(settings)
        asyncio.run(_worked(settings))


def _check_worker(settings: Settings) -> None:
    if not parse_url(settings.store).is_server:
        raise ConfigError(
            "the jobs of a file are done by the service itself: run `waylore serve`, or use a store in PostgreSQL"
        )


async def _worked(settings: Settings) -> None:
    from waylore.service.background import Background, opened_background  # noqa: PLC0415
    from waylore.service.jobs.work import Bench  # noqa: PLC0415
    from waylore.service.open_collections import OpenCollections  # noqa: PLC0415
    from waylore.surfaces.open import embedder_of, opened  # noqa: PLC0415

    @contextmanager
    def ready() -> Iterator[Background]:
        embedder = embedder_of(settings.embedding)
        open_one = partial(opened, settings, embedder=embedder)
        collections = OpenCollections(lambda name: open_one(collection=name), most=settings.http.jobs)
        try:
            bench = Bench(collections.lent, settings.store, embedder)
            with opened_background(settings, bench) as background:
                yield background
        finally:
            collections.close()

    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ended.set)
    with ready() as background:
        async with background.working():
            typer.echo(f"doing jobs, {settings.http.jobs} at a time", err=True)
            await ended.wait()
