"""`waylore worker`: does jobs of the HTTP service, and answers nobody.

For a service on PostgreSQL whose jobs should not share a process with its answers: set `http.jobs` to 0 there,
and run as many of these as you like, on machines that see the same spool folder.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated

import typer

from waylore.errors import ConfigError
from waylore.store import is_on_server
from waylore.surfaces.cli_options import given
from waylore.surfaces.cli_terminal import told_errors
from waylore.surfaces.settings import Settings, load

Store = Annotated[str | None, typer.Option(help="postgresql://…, or cells+ a catalogue there.")]
Count = Annotated[int, typer.Option("--jobs", min=1, help="Jobs to do at the same time.")]


def worker(store: Store = None, jobs: Count = 2) -> None:
    """Do jobs until told to stop; a job that is stopped is gone on with by whoever comes next."""
    with told_errors():
        known = load(**given(store=store or ""))
        settings = known.model_copy(update={"http": known.http.model_copy(update={"jobs": jobs})})
        _check(settings)
        asyncio.run(_worked(settings))


def _check(settings: Settings) -> None:
    if not is_on_server(settings.store):
        raise ConfigError(
            "the jobs of a file are done by the service itself: run `waylore serve`, or use a store in PostgreSQL"
        )


async def _worked(settings: Settings) -> None:
    from waylore.surfaces.http_open import OpenCollections  # noqa: PLC0415
    from waylore.surfaces.jobs_background import Background, opened_background  # noqa: PLC0415
    from waylore.surfaces.jobs_doing import Bench  # noqa: PLC0415
    from waylore.surfaces.opening import embedder_of, opened  # noqa: PLC0415

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
