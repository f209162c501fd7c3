"""What all commands share: how an answer, an error and progress are told at a terminal.

Tables and trees for people, JSON for programs; colours only where somebody looks (rich leaves them out in a
pipe). An error is one line on stderr that says what to do next, and the exit code tells its kind.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console

from weft.errors import WeftError
from weft.surfaces.kinds import kind_of

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def tell(facts: Any, for_people: Any, as_json: bool) -> None:
    """Print an answer: models, or lists and dicts of them, as JSON; anything that rich can print for people."""
    if as_json:
        typer.echo(json.dumps(facts, default=_plain, ensure_ascii=False))
    else:
        Console().print(for_people)


@contextmanager
def told_errors() -> Iterator[None]:
    """What goes wrong within is one line on stderr and an exit code."""
    try:
        yield
    except (WeftError, ValueError) as error:
        typer.echo(f"weft: {error}", err=True)
        raise typer.Exit(kind_of(error).exit_code) from error


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Says on stderr what goes on, where somebody looks."""
    with Console(stderr=True).status(what) as status:
        yield status.update


def _plain(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot go over the wire")
