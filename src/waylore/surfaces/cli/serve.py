"""`waylore serve`, `explore`, `worker` and `migrate`: run the HTTP service and its jobs, prepare their database.

Options are passed to the worker processes through the environment; each process reads its settings from it.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from socket import IPPROTO_TCP, TCP_NODELAY
from threading import Thread
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from waylore.errors import ConfigError
from waylore.providers.optional import require_extra
from waylore.service.callers import is_loopback
from waylore.settings.load import export_options, load
from waylore.settings.sections import Settings, TelemetrySettings
from waylore.store.urls import parse_url
from waylore.surfaces.cli.options import CollectionName, keep_given, load_existing
from waylore.surfaces.terminal.output import AsJson, print_result, report_errors

if TYPE_CHECKING:
    from fastapi import FastAPI

FACTORY = "waylore.surfaces.http.app:from_environment"
MAX_CONNECTIONS = 1_000  # per process; further requests are refused
SHUTDOWN_SECONDS = 30  # time for running requests to finish
STARTUP_SECONDS = 60  # time for a worker process to import everything; uvicorn's 5 s kill it on a busy machine
ALONE = {"host": "127.0.0.1", "workers": 1, "auth": True, "hosts": (), "cors_origins": ()}  # settings of `explore`

Store = Annotated[str | None, typer.Option(help="Store: a file, postgresql://… or cells+…")]
Host = Annotated[str | None, typer.Option(help="Address to listen on; http.host if absent.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on, 0 for any; http.port if absent.")]
Workers = Annotated[int | None, typer.Option(help="Number of processes; http.workers if absent.")]
NoAuth = Annotated[bool, typer.Option("--no-auth", help="Require no key; on loopback only.")]


def serve(
    store: Store = None,
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
    no_auth: NoAuth = False,
) -> None:
    """Run the HTTP service until it is interrupted; running requests are finished.

    Example: `waylore serve --port 8080`
    """
    with report_errors():
        http = {"host": host, "port": port, "workers": workers, "auth": False if no_auth else None}
        export_options({"store": store, **{f"http_{name}": value for name, value in http.items()}})
        settings = load()
        _check(settings)
        with require_extra("the HTTP service needs", "http"):
            from waylore.surfaces.http.app import open_configured_service  # noqa: PLC0415
        with open_configured_service(settings) as service:  # report errors before the processes start
            has_keys = bool(service.registry.list_keys(limit=1))
        if settings.http.auth and not has_keys:
            typer.echo("no API key exists yet; create one with `waylore keys create NAME --scope admin`", err=True)
        _run(settings, FACTORY, _announce_service)


def _announce_service(url: str) -> None:
    typer.echo(
        f"listening on {url} (explorer at /, API at /docs; telemetry.log_level = info logs each request)", err=True
    )


ExploredFile = Annotated[
    str, typer.Argument(metavar="[FILE]", help="File of the store; that of the settings if absent.")
]
FreePort = Annotated[int, typer.Option(help="Port to listen on, 0 for any.", min=0, max=65_535)]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Print the address only, and open no browser.")]


def explore(
    file: ExploredFile = "", collection: CollectionName = "", port: FreePort = 0, no_open: NoOpen = False
) -> None:
    """Explore a store in the browser: ask, and see the path to each answer. Only this machine can reach the page.

    Example: `waylore explore memory.waylore`
    """
    with report_errors(), suppress(KeyboardInterrupt):
        settings = load_existing(file, collection, http={**ALONE, "port": port})
        with require_extra("the explorer needs", "http"):
            from waylore.surfaces.explorer.ticket import add_ticket  # noqa: PLC0415
            from waylore.surfaces.http.app import create_app, open_configured_service  # noqa: PLC0415
        with open_configured_service(settings):
            app = create_app(settings)
        place = f"/#ticket={add_ticket(app).word}&collection={quote(settings.collection, safe='')}"
        _run(settings, app, partial(_announce_page, place, not no_open))


def _announce_page(place: str, opens_browser: bool, url: str) -> None:
    address = f"{url}{place}"
    typer.echo(f"explore at {address} (works once; Ctrl-C ends)", err=True)
    if opens_browser:
        import webbrowser  # noqa: PLC0415

        Thread(target=webbrowser.open, args=(address,), daemon=True).start()  # a browser in the terminal would block


def _check(settings: Settings) -> None:
    http = settings.http
    if not http.auth and not is_loopback(http.host):
        raise ConfigError(
            f"http.auth is off and {http.host} is not loopback; listen on 127.0.0.1, or leave http.auth on"
        )
    if not http.auth and "*" in http.cors_origins:
        raise ConfigError("http.auth is off and http.cors_origins allows every page; name the origins, or leave it on")
    if http.workers > 1 and not parse_url(settings.store).is_server:
        raise ConfigError("a file can be served by one process only; set http.workers to 1, or use PostgreSQL")


def _run(settings: Settings, app: "str | FastAPI", announce: Callable[[str], None]) -> None:
    """Run uvicorn like `uvicorn.run`, but print the address before the first request is answered."""
    import uvicorn  # noqa: PLC0415
    from uvicorn.supervisors import Multiprocess  # noqa: PLC0415

    config = uvicorn.Config(
        app,
        factory=isinstance(app, str),
        host=settings.http.host,
        port=settings.http.port,
        workers=settings.http.workers,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=STARTUP_SECONDS,
        http="waylore.surfaces.http.limits:IdleTimeoutProtocol",
        limit_concurrency=MAX_CONNECTIONS,
        server_header=False,
        log_config=None,
    )
    socket = config.bind_socket()
    socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # asyncio sets this only on its own sockets; it saves 40 ms
    socket.listen(config.backlog)  # requests wait while the store is opened
    host, port = socket.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    announce(f"http://{shown}:{port}")
    if config.workers > 1:
        _log_processes(settings.telemetry)
        with _share_metrics(settings):
            Multiprocess(config, sockets=[socket]).run()
        return
    server = uvicorn.Server(config)
    server.run(sockets=[socket])
    if not server.started:
        raise typer.Exit(1)


def _log_processes(telemetry: TelemetrySettings) -> None:
    """Log the messages of the parent process, such as a worker that died. uvicorn writes them at level INFO."""
    if telemetry == TelemetrySettings():
        logging.basicConfig(format="waylore: %(message)s")
    else:
        with require_extra("telemetry needs", "telemetry"):
            from waylore.surfaces.telemetry import logs  # noqa: PLC0415
        logs.set_up(telemetry.log_format, telemetry.log_level)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)


def _share_metrics(settings: Settings) -> AbstractContextManager[None]:
    """Let the processes share their metrics, if metrics are on."""
    if not settings.telemetry.metrics:
        return nullcontext()
    from waylore.surfaces.telemetry.metrics import share_metrics  # noqa: PLC0415

    return share_metrics()


ServerStore = Annotated[str | None, typer.Option("--store", help="Store: postgresql://… or cells+postgresql://…")]
Concurrency = Annotated[int, typer.Option("--jobs", min=1, help="Number of jobs to run at once.")]


def worker(store: ServerStore = None, jobs: Concurrency = 2) -> None:
    """Run background jobs until interrupted. An unfinished job is resumed by the next worker.

    Example: `waylore worker --jobs 4`
    """
    with report_errors():
        settings = load(**keep_given(store=store or ""), jobs={"concurrency": jobs})
        _check_worker(settings)
        asyncio.run(_run_jobs(settings))


def _check_worker(settings: Settings) -> None:
    if not parse_url(settings.store).is_server:
        raise ConfigError(
            "the service itself runs the jobs of a file; run `waylore serve`, or use a store in PostgreSQL"
        )


async def _run_jobs(settings: Settings) -> None:
    from waylore.indexing.blocks import Limits  # noqa: PLC0415
    from waylore.service.background import Background, open_background  # noqa: PLC0415
    from waylore.service.jobs.work import JobResources  # noqa: PLC0415
    from waylore.service.open_collections import OpenCollections  # noqa: PLC0415
    from waylore.surfaces.open import create_embedder, create_reranker, open_collection  # noqa: PLC0415

    @contextmanager
    def open_jobs() -> Iterator[Background]:
        embedder = create_embedder(settings.embedding)
        open_one = partial(open_collection, settings, embedder=embedder, reranker=create_reranker(settings))
        collections = OpenCollections(lambda name: open_one(collection=name), max_idle=settings.jobs.concurrency)
        try:
            limits = Limits(seconds=settings.files.seconds)
            resources = JobResources(collections.borrow, settings.store, embedder, limits)
            with open_background(settings, resources) as background:
                yield background
        finally:
            collections.close()

    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: loop.call_soon_threadsafe(ended.set))  # not every loop can add handlers
    with open_jobs() as background:
        async with background.run():
            typer.echo(f"running up to {settings.jobs.concurrency} jobs at once", err=True)
            await ended.wait()


def migrate(store: ServerStore = None, as_json: AsJson = False) -> None:
    """Create or upgrade the tables of a service and its store. Run it as their owner, before the service.

    The service itself can then run as a role that may only read and write rows.

    Example: `waylore migrate --store postgresql://owner@localhost/waylore`
    """
    with report_errors():
        settings = load(**keep_given(store=store or ""))
        names = list(_migrate(settings))
    print_result({"migrated": names}, f"up to date: {', '.join(names)}", as_json)


def _migrate(settings: Settings) -> Iterator[str]:
    from waylore.cells.open import open_catalogue  # noqa: PLC0415
    from waylore.service.registry.open import open_registry  # noqa: PLC0415
    from waylore.store.urls import open_store  # noqa: PLC0415

    parsed = parse_url(settings.store)
    stores = {"store": settings.store}
    if parsed.is_cells:
        with closing(open_catalogue(settings.store)) as catalogue:
            stores = {f"cell {cell.name}": cell.url for cell in catalogue.get_cells().values()}
    for name, url in stores.items():
        open_store(url, settings.collection).close()
        yield name
    open_registry(settings.store).close()
    yield "registry"
    if parsed.is_server:
        from waylore.service.jobs.postgres import PostgresJobs  # noqa: PLC0415 (optional driver)

        PostgresJobs(parsed.location).close()
        yield "jobs"
