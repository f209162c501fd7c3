"""Print results, errors and progress, the same way for all commands.

Results are tables and trees for people and JSON for programs. Colours are used only at a terminal (rich leaves them
out in a pipe). An error is one line on stderr that names the remedy; the exit code gives its kind.
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
from waylore.fence import neutralize
from waylore.surfaces.error_kinds import find_kind

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
INTERRUPTED = 130  # exit code that shells use for a command ended by Ctrl-C


class Show(Protocol):
    """Shows progress: the amount done, the total if it is known, and a few words."""

    def __call__(self, done: float, total: float | None = None, text: str = "") -> None:
        """Show the progress."""


def print_result(result: Any, for_people: Any, as_json: bool) -> None:
    """Print a result: models, or lists and dicts of them, as JSON; for people a text, or an object of rich."""
    if as_json:
        typer.echo(json.dumps(result, default=_to_json, ensure_ascii=False))
    elif isinstance(for_people, str):
        typer.echo(neutralize(for_people).text)
    else:
        _print(for_people)


def _print(renderable: RenderableType) -> None:
    """Print an object of rich; in a pipe without trailing spaces."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable)
    else:
        with console.capture() as printed:
            console.print(renderable)
        typer.echo("\n".join(map(str.rstrip, printed.get().rstrip("\n").split("\n"))))


@contextmanager
def report_errors() -> Iterator[None]:
    """Print errors as one line on stderr and exit with the code of their kind."""
    try:
        yield
    except (WayloreError, ValueError) as error:
        typer.echo(f"waylore: {neutralize(str(error)).text}", err=True)
        raise typer.Exit(find_kind(error).exit_code) from error
    except KeyboardInterrupt as error:
        typer.echo("waylore: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from error


@contextmanager
def handle_interrupt(remedy: str) -> Iterator[None]:
    """End the process at once on Ctrl-C, and print how to continue.

    Use it only around work that a power cut cannot harm: threads that embed for a minute are not waited for.
    """

    def stop(*_: object) -> None:
        Console(stderr=True).show_cursor()
        typer.echo(f"\nwaylore: interrupted; everything written so far is complete. {remedy}", err=True)
        sys.stdout.flush()
        os._exit(INTERRUPTED)

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def show_progress(what: str) -> Iterator[Show]:
    """Show a progress bar on stderr, which disappears at the end; nothing outside of a terminal."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(24),
        TextColumn("{task.fields[text]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None, text="")

        def show(done: float, total: float | None = None, text: str = "") -> None:
            bar.update(task, completed=done, total=total, text=text)

        yield show


@contextmanager
def show_status(what: str) -> Iterator[Callable[[str], None]]:
    """Show the current activity on stderr, at a terminal."""
    with Console(stderr=True).status(what) as status:
        yield status.update


def _to_json(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
