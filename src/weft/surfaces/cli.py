"""The command line, through typer and rich: so far what operators of several cells need.

Tables for people, `--json` for programs; an error is one line on stderr that says what to do next, and the exit
code tells its kind. What a command does is done elsewhere: nothing here decides.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from weft.errors import ConfigError, NotFound, StoreUnavailable, WeftError
from weft.store import cells, open_catalogue
from weft.store.catalogue import Catalogue
from weft.store.moving import move

EXIT_CODES: dict[type[WeftError], int] = {ConfigError: 2, NotFound: 3, StoreUnavailable: 4}
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Memory and knowledge retrieval.")
cells_app = typer.Typer(no_args_is_help=True, help="The databases that collections live in.")
collections_app = typer.Typer(no_args_is_help=True, help="Collections, wherever they live.")
app.add_typer(cells_app, name="cells")
app.add_typer(collections_app, name="collections")

At = Annotated[str, typer.Option("--catalogue", help="sqlite:///FILE or postgresql://…: the list of cells.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


@cells_app.command("add")
def add_cell(name: str, url: str, catalogue: At, as_json: AsJson = False) -> None:
    """Add a cell, once it can be opened; add one that was drained to use it again."""
    with _catalogue(catalogue) as known:
        cell = cells.add(known, name, url)
    _tell({"cell": cell.name, "state": cell.state}, f"{cell.name} is {cell.state}", as_json)


@cells_app.command("list")
def list_cells(catalogue: At, as_json: AsJson = False) -> None:
    """The cells, and the collections in each."""
    with _catalogue(catalogue) as known:
        found = [(info.cell.name, info.cell.state, info.collections) for info in cells.listed(known)]
    table = Table("cell", "state", "collections")
    for name, state, collections in found:
        table.add_row(name, state, ", ".join(collections))
    rows = [{"cell": name, "state": state, "collections": list(these)} for name, state, these in found]
    _tell(rows, table, as_json)


@cells_app.command("drain")
def drain_cell(name: str, catalogue: At, as_json: AsJson = False) -> None:
    """Move everything out of a cell, and put nothing new into it; run again, it goes on."""
    with _catalogue(catalogue) as known, _working(f"draining {name}") as progress:
        moved = cells.drain(known, name, progress=progress)
    _tell({"cell": name, "moved": list(moved)}, f"{name} is empty, {len(moved)} moved", as_json)


@collections_app.command("move")
def move_collection(name: str, cell: str, catalogue: At, as_json: AsJson = False) -> None:
    """Move a collection to a cell while it is read and written; run again, it goes on."""
    with _catalogue(catalogue) as known, _working(f"moving {name} to {cell}"):
        move(known, name, cell)
    _tell({"collection": name, "cell": cell}, f"{name} lives in {cell}", as_json)


@contextmanager
def _catalogue(url: str) -> Iterator[Catalogue]:
    """A catalogue; what goes wrong with it is told in one line."""
    try:
        with closing(open_catalogue(url)) as catalogue:
            yield catalogue
    except WeftError as error:
        typer.echo(f"weft: {error}", err=True)
        code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
        raise typer.Exit(code) from error


@contextmanager
def _working(what: str) -> Iterator[Callable[[str], None]]:
    """Says on stderr what goes on, where somebody looks."""
    with Console(stderr=True).status(what) as status:
        yield status.update


def _tell(facts: Any, for_people: Any, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        Console().print(for_people)
