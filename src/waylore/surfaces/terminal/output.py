"""What all commands share: how an answer, an error and progress are told at a terminal.

Tables and trees for people, JSON for programs; colours only where somebody looks (rich leaves them out in a
pipe). An error is one line on stderr that says what to do next, and the exit code tells its kind.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import typer
from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from waylore.errors import WayloreError
from waylore.surfaces.error_kinds import kind_of

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
INTERRUPTED = 130  # what shells give a command that Ctrl-C ended


class Show(Protocol):
    """Tells how far something is: how much is done, of how much if that is known, and a few words."""

    def __call__(self, done: float, of: float | None = None, told: str = "") -> None:
        """Show it."""


def tell(facts: Any, for_people: Any, as_json: bool) -> None:
    """Print an answer: models, or lists and dicts of them, as JSON; a text as it is, or what rich can print."""
    if as_json:
        typer.echo(json.dumps(facts, default=_plain, ensure_ascii=False))
    elif isinstance(for_people, str):
        typer.echo(for_people)
    else:
        _print(for_people)


def _print(renderable: RenderableType) -> None:
    """Print it; in a pipe without the spaces that fill a terminal's lines."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable)
    else:
        with console.capture() as printed:
            console.print(renderable)
        typer.echo("\n".join(map(str.rstrip, printed.get().rstrip("\n").split("\n"))))


@contextmanager
def told_errors() -> Iterator[None]:
    """What goes wrong within is one line on stderr and an exit code."""
    try:
        yield
    except (WayloreError, ValueError) as error:
        typer.echo(f"waylore: {error}", err=True)
        raise typer.Exit(kind_of(error).exit_code) from error
    except KeyboardInterrupt as error:
        typer.echo("waylore: stopped", err=True)
        raise typer.Exit(INTERRUPTED) from error


@contextmanager
def stoppable(how_to_go_on: str) -> Iterator[None]:
    """Ctrl-C within ends the process at once and says how to go on.

    Only around what a power cut could not harm either: threads that embed for a minute are not waited for.
    """

    def stop(*_: object) -> None:
        Console(stderr=True).show_cursor()
        typer.echo(f"\nwaylore: stopped; what is written is whole. {how_to_go_on}", err=True)
        sys.stdout.flush()
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progressing(what: str) -> Iterator[Show]:
    """A bar on stderr that goes when it is done; nothing where nobody looks."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(24),
        TextColumn("{task.fields[told]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None, told="")

        def show(done: float, of: float | None = None, told: str = "") -> None:
            bar.update(task, completed=done, total=of, told=told)

        yield show


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Says on stderr what goes on, where somebody looks."""
    with Console(stderr=True).status(what) as status:
        yield status.update


def _plain(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot go over the wire")
