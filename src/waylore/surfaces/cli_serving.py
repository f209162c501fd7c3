"""`waylore serve` and `waylore keys`: the HTTP service from a terminal, and the keys that open it.

Options reach the processes that answer through the environment, which is where each of them reads its settings.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from waylore.errors import ConfigError, NotFound
from waylore.store import is_on_server, open_registry
from waylore.store.registry import EVERY, SCOPES, Key, Registry, Scope
from waylore.surfaces.cli_options import given
from waylore.surfaces.cli_terminal import AsJson, tell, told_errors
from waylore.surfaces.extras import needing
from waylore.surfaces.http_callers import is_loopback
from waylore.surfaces.settings import Settings, hand_on, load

FACTORY = "waylore.surfaces.http:from_environment"
CONNECTIONS = 1_000  # that one process holds; beyond them requests are refused
FINISH_SECONDS = 30  # that requests have to end when the service is told to
keys_app = typer.Typer(no_args_is_help=True, help="API keys of the HTTP service.")

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
            from waylore.surfaces.http_service import opened_service  # noqa: PLC0415
        with opened_service(settings) as service:  # what cannot be opened is told here, in a line
            has_keys = bool(service.registry.keys(limit=1))
        if settings.http.auth and not has_keys:
            typer.echo("there is no key yet; make one: waylore keys create NAME --scope admin", err=True)
        _run(settings)


@keys_app.command("create")
def create_key(
    name: KeyName,
    collection: Opens = None,
    scope: Allows = "read",
    label: Reads = None,
    expires: Days = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Make a key; its token is shown this once."""
    from waylore.surfaces.http_tokens import issued  # noqa: PLC0415

    with _registry(store) as registry:
        ends = None if expires is None else datetime.now(UTC) + timedelta(days=expires)
        key, token = issued(
            name, collections=collection or [EVERY], scope=_scope(scope), labels=label, expires=ends
        )
        registry.set_key(key)
    _tell_token(key, token, as_json)


@keys_app.command("list")
def list_keys(store: Store = None, as_json: AsJson = False) -> None:
    """The keys, the oldest first."""
    with _registry(store) as registry:
        keys = list(_all_keys(registry))
    table = Table(Column("key", no_wrap=True), "name", "scope", "opens", "last used", "state")
    for key in keys:
        table.add_row(key.id, key.name, key.scope, _opens(key), _day(key.used), _state(key))
    tell([_plain(key) for key in keys], table, as_json)


@keys_app.command("rotate")
def rotate_key(key: KeyId, grace: Grace = 24.0, store: Store = None, as_json: AsJson = False) -> None:
    """Give a key a new token, shown this once; the former one works for a while longer."""
    from waylore.surfaces.http_tokens import rotated  # noqa: PLC0415

    with _registry(store) as registry:
        after, token = rotated(_known(registry, key), grace=timedelta(hours=grace))
        registry.set_key(after)
    _tell_token(after, token, as_json)


@keys_app.command("revoke")
def revoke_key(key: KeyId, store: Store = None, as_json: AsJson = False) -> None:
    """End a key for good, within seconds."""
    from waylore.surfaces.http_tokens import revoked  # noqa: PLC0415

    with _registry(store) as registry:
        after = revoked(_known(registry, key))
        registry.set_key(after)
    tell(_plain(after), f"{after.name} ({after.id}) opens nothing any more", as_json)


# -- serving -------------------------------------------------------------------------------------------


def _check(settings: Settings) -> None:
    http = settings.http
    if not http.auth and not is_loopback(http.host):
        raise ConfigError(
            f"without keys anyone who reaches {http.host} may do anything: listen on 127.0.0.1, or leave "
            "http.auth on"
        )
    if http.workers > 1 and not is_on_server(settings.store):
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
        http="waylore.surfaces.http_connections:Impatient",
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
    from waylore.surfaces.telemetry_metrics import shared  # noqa: PLC0415

    return shared()


# -- keys ----------------------------------------------------------------------------------------------


@contextmanager
def _registry(store: str | None) -> Iterator[Registry]:
    with told_errors():
        settings = load(**given(store=store or ""))
        with closing(open_registry(settings.store)) as registry:
            yield registry


def _all_keys(registry: Registry) -> Iterator[Key]:
    page = registry.keys()
    while page:
        yield from page
        page = registry.keys(after=page[-1])


def _scope(name: str) -> Scope:
    known = next((scope for scope in SCOPES if scope == name), None)
    if known is None:
        raise ConfigError(f"there is no scope {name!r}: use {', '.join(SCOPES)}")
    return known


def _known(registry: Registry, id_: str) -> Key:
    key = registry.key(id_)
    if key is None:
        raise NotFound(f"there is no key {id_!r}: waylore keys list shows them")
    return key


def _tell_token(key: Key, token: str, as_json: bool) -> None:
    kept = f"{key.name} ({key.id}), shown this once; send it as Authorization: Bearer …"
    if as_json:
        tell({**_plain(key), "token": token}, "", as_json)
    else:
        typer.echo(kept, err=True)
        typer.echo(token)


def _plain(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scope": key.scope,
        "collections": sorted(key.collections),
        "labels": None if key.labels is None else sorted(key.labels),
        "created": key.created.isoformat(),
        "expires": key.expires and key.expires.isoformat(),
        "revoked": key.revoked and key.revoked.isoformat(),
        "used": key.used and key.used.isoformat(),
    }


def _opens(key: Key) -> str:
    labels = "" if key.labels is None else f" (labels: {', '.join(sorted(key.labels)) or 'none'})"
    return ", ".join(sorted(key.collections)) + labels


def _state(key: Key) -> str:
    if key.revoked:
        return "revoked"
    if key.expires is None:
        return "good"
    return f"until {_day(key.expires)}" if key.expires > datetime.now(UTC) else "expired"


def _day(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else "never"
