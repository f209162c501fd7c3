"""`weft serve`, and `weft keys`: the HTTP service from a terminal, and the keys that open it."""

from ipaddress import ip_address
from typing import Annotated

import typer

from weft.errors import ConfigError
from weft.surfaces.settings import Settings, load
from weft.surfaces.terminal import told_errors

FACTORY = "weft.surfaces.http:from_environment"
FINISH_SECONDS = 30  # that requests have to end when the service is told to

Host = Annotated[str | None, typer.Option(help="The address to listen on.", show_default=False)]
Port = Annotated[int | None, typer.Option(help="The port to listen on.", show_default=False)]
Workers = Annotated[int | None, typer.Option(help="Processes that answer.", show_default=False)]
NoAuth = Annotated[bool, typer.Option("--no-auth", help="Let anyone do anything; on loopback only.")]


def serve(host: Host = None, port: Port = None, workers: Workers = None, no_auth: NoAuth = False) -> None:
    """Answer over HTTP until told to stop."""
    import uvicorn  # noqa: PLC0415

    with told_errors():
        given = {"host": host, "port": port, "workers": workers, "auth": False if no_auth else None}
        options = {name: value for name, value in given.items() if value is not None}
        settings = load(http=options)
        _check(settings)
        uvicorn.run(
            FACTORY,
            factory=True,
            host=settings.http.host,
            port=settings.http.port,
            workers=settings.http.workers,
            timeout_graceful_shutdown=FINISH_SECONDS,
            log_config=None,
        )


def _check(settings: Settings) -> None:
    if not settings.http.auth and not _is_loopback(settings.http.host):
        raise ConfigError(
            f"without keys anyone who reaches {settings.http.host} may do anything: listen on 127.0.0.1, or "
            "leave http.auth on"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
