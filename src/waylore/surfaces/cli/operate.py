"""`waylore cells` and `waylore collections`: what operators of several databases need.

What is done is done by `store.cells` and `store.moving`; this asks for it and tells it.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import typer
from rich.table import Table

from waylore.cells import admin
from waylore.cells.catalogue.protocol import Catalogue
from waylore.cells.move import move
from waylore.cells.open import open_catalogue
from waylore.surfaces.terminal.output import AsJson, stoppable, tell, told_errors, working

cells_app = typer.Typer(no_args_is_help=True, help="The databases that collections live in.")
collections_app = typer.Typer(no_args_is_help=True, help="Collections, wherever they live.")

GO_ON = "Run the same again: it goes on where it stopped."
At = Annotated[str, typer.Option("--catalogue", help="sqlite:///FILE or postgresql://…: the list of cells.")]


@cells_app.command("add")
def add_cell(name: str, url: str, catalogue: At, as_json: AsJson = False) -> None:
    """Add a cell, once it can be opened; add one that was drained to use it again."""
    with _catalogue(catalogue) as known:
        cell = admin.add(known, name, url)
    tell({"cell": cell.name, "state": cell.state}, f"{cell.name} is {cell.state}", as_json)


@cells_app.command("list")
def list_cells(catalogue: At, as_json: AsJson = False) -> None:
    """The cells, and the collections in each."""
    with _catalogue(catalogue) as known:
        found = [(info.cell.name, info.cell.state, info.collections) for info in admin.listed(known)]
    table = Table("cell", "state", "collections")
    for name, state, collections in found:
        table.add_row(name, state, ", ".join(collections))
    rows = [{"cell": name, "state": state, "collections": list(these)} for name, state, these in found]
    tell(rows, table, as_json)


@cells_app.command("drain")
def drain_cell(name: str, catalogue: At, as_json: AsJson = False) -> None:
    """Move everything out of a cell, and put nothing new into it; run again, it goes on."""
    with _catalogue(catalogue) as known, stoppable(GO_ON), working(f"draining {name}") as progress:
        moved = admin.drain(known, name, progress=progress)
    tell({"cell": name, "moved": list(moved)}, f"{name} is empty, {len(moved)} moved", as_json)


@collections_app.command("move")
def move_collection(name: str, cell: str, catalogue: At, as_json: AsJson = False) -> None:
    """Move a collection to a cell while it is read and written; run again, it goes on."""
    with _catalogue(catalogue) as known, stoppable(GO_ON), working(f"moving {name} to {cell}"):
        move(known, name, cell)
    tell({"collection": name, "cell": cell}, f"{name} lives in {cell}", as_json)


@contextmanager
def _catalogue(url: str) -> Iterator[Catalogue]:
    """A catalogue; what goes wrong with it is told in one line."""
    with told_errors(), closing(open_catalogue(url)) as catalogue:
        yield catalogue
