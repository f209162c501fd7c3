"""Operate stores: `waylore trust`, `backup`, `restore`, `cells` and `collections`.

`settings.trust`, `service.backups`, `cells.admin` and `cells.move` do the work.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column

from waylore.cells import admin
from waylore.cells.catalogue.protocol import Catalogue
from waylore.cells.move import move_collection
from waylore.cells.open import create_catalogue, open_catalogue
from waylore.errors import ConfigError, NotFound
from waylore.project import PROJECT
from waylore.service.backups.dispatch import back_up, verify_backup
from waylore.service.backups.dispatch import restore as restore_backup
from waylore.service.backups.manifest import Manifest
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import Registry
from waylore.settings.files import DOTENV, trust_file
from waylore.settings.load import find_trust_record, load
from waylore.store.sqlite.file import list_collections
from waylore.store.urls import parse_url, without_password
from waylore.surfaces.cli.options import StoreUrl, require_file
from waylore.surfaces.terminal.output import AsJson, handle_interrupt, print_result, report_errors, show_status
from waylore.surfaces.terminal.tables import make_table

cells_app = typer.Typer(no_args_is_help=True, help="Databases that hold collections.")
collections_app = typer.Typer(no_args_is_help=True, help="Collections and the cells that hold them.")

RESUME = "Run the same command again to continue."
CatalogueUrl = Annotated[
    str,
    typer.Option(
        "--catalogue",
        metavar="URL",
        help="Catalogue of cells: sqlite:///FILE or postgresql://…; the store of the settings if absent.",
    ),
]
CellName = Annotated[str, typer.Argument(metavar="CELL", help="Name of the cell.")]


def trust(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with waylore.toml or .env.")],
    as_json: AsJson = False,
) -> None:
    """Trust the settings of a folder: let them choose where keys and texts are sent, and the callers of the service.

    Read the files first. The trust ends when a file changes.

    Example: `waylore trust .`
    """
    with report_errors():
        record = find_trust_record()
        files = [file for file in (folder / PROJECT, folder / DOTENV) if file.is_file()]
        if not files:
            raise NotFound(f"no waylore.toml and no .env in {folder}; name the folder that has one")
        trusted = {str(file): [".".join(name) for name in trust_file(file, record)] for file in files}
        needed = [f"{file}: {', '.join(names)}" for file, names in trusted.items() if names]
        people = "\n".join(["trusted until it changes:", *needed]) if needed else f"nothing in {folder} needs trust"
        print_result({"record": str(record), "trusted": trusted}, people, as_json)


@cells_app.command("add")
def add_cell(
    name: CellName,
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the database.")],
    catalogue: CatalogueUrl = "",
    as_json: AsJson = False,
) -> None:
    """Add a cell, or reactivate a drained cell. The database must be reachable. A missing catalogue is created.

    Example: `waylore cells add west postgresql://west/waylore --catalogue sqlite:///cells.db`
    """
    with _open(catalogue, create_catalogue) as known:
        cell = admin.add_cell(known, name, url)
    print_result({"cell": cell.name, "state": cell.state}, f"{cell.name} is {cell.state}", as_json)


@cells_app.command("list")
def list_cells(catalogue: CatalogueUrl = "", as_json: AsJson = False) -> None:
    """List the cells, and the collections in each.

    Example: `waylore cells list --catalogue sqlite:///cells.db`
    """
    with _open(catalogue) as known:
        found = [(info.cell, info.collections) for info in admin.list_cells(known)]
    table = make_table("cell", "state", Column("MB", justify="right"), "collections")
    for cell, collections in found:
        table.add_row(cell.name, cell.state, f"{cell.bytes / 1e6:,.1f}", ", ".join(collections))
    rows = [{"cell": c.name, "state": c.state, "bytes": c.bytes, "collections": list(these)} for c, these in found]
    print_result(rows, table, as_json)


@cells_app.command("drain")
def drain_cell(
    name: CellName,
    at_once: Annotated[int, typer.Option(help="Collections that move at a time.", min=1)] = 4,
    catalogue: CatalogueUrl = "",
    as_json: AsJson = False,
) -> None:
    """Move every collection out of a cell, and place no new one in it.

    Example: `waylore cells drain west --catalogue sqlite:///cells.db`
    """
    with _open(catalogue) as known, handle_interrupt(RESUME), show_status(f"draining {name}") as progress:
        moved = admin.drain_cell(known, name, at_once=at_once, progress=progress)
    print_result({"cell": name, "moved": list(moved)}, f"{name} is empty, {len(moved)} moved", as_json)


@collections_app.command("list")
def list_all(store: StoreUrl = "", as_json: AsJson = False) -> None:
    """List collections: of a file with their sizes, of a catalogue of cells, or of the registry of a service.

    Example: `waylore collections list`
    """
    with report_errors():
        address = store or load().store
        rows = _list_collections(address)
    table = make_table("collection", Column("documents", justify="right"), Column("passages", justify="right"))
    for row in rows:
        table.add_row(*map(str, row.values()))
    print_result(rows, table if rows else f"no collections in {without_password(address)}", as_json)


def _list_collections(address: str) -> list[dict[str, str | int]]:
    """Return the collections of a store by name. On PostgreSQL, a role sees only its own collection."""
    parsed = parse_url(address)
    if parsed.is_cells:
        with closing(open_catalogue(address)) as catalogue:
            return [{"collection": name} for name in catalogue.list_collections()]
    if parsed.is_file:
        require_file(parsed.path)
        found = list_collections(parsed.location)
        return [{"collection": name, "documents": docs, "passages": parts} for name, docs, parts in found]
    with closing(open_registry(address)) as registry:
        return [{"collection": name} for name in _list_registered(registry)]


def _list_registered(registry: Registry) -> Iterator[str]:
    """Yield the collections that a service has registered, by name."""
    page = registry.list_collections()
    while page:
        yield from (each.name for each in page)
        page = registry.list_collections(after=page[-1].name)


@collections_app.command("move")
def move_to_cell(
    name: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    cell: CellName,
    catalogue: CatalogueUrl = "",
    as_json: AsJson = False,
) -> None:
    """Move a collection to a cell while it is read and written.

    Example: `waylore collections move team west --catalogue sqlite:///cells.db`
    """
    with _open(catalogue) as known, handle_interrupt(RESUME), show_status(f"moving {name} to {cell}"):
        move_collection(known, name, cell)
    print_result({"collection": name, "cell": cell}, f"{name} is in {cell}", as_json)


BackupFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the backup.")]


def backup(
    folder: BackupFolder,
    store: StoreUrl = "",
    verify: Annotated[bool, typer.Option("--verify", help="Only try to restore an existing backup.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy a store into a new folder while it is read and written, and verify the copy.

    With `--verify`, a backup is restored as a trial: into a temporary file, or into the empty database of `--store`,
    where the trial is rolled back.

    Example: `waylore backup backups/monday`
    """
    if verify:
        _verify(folder, store, as_json)
        return
    with report_errors(), handle_interrupt(RESUME), show_status("backing up") as progress:
        saved = back_up(store or load().store, folder, progress=progress)
    print_result(asdict(saved), f"{folder}: {_describe_backup(saved)}", as_json)


def _verify(folder: Path, store: str, as_json: bool) -> None:
    with report_errors(), handle_interrupt(RESUME), show_status("verifying") as progress:
        saved, is_restored = verify_backup(folder, store, progress=progress)
    if is_restored:
        people = f"{folder}: {_describe_backup(saved)}, restored as a trial"
    else:
        trial = "to restore it as a trial, name an empty database with --store"
        people = f"{folder}: every part has its hash, as of {saved.created_at}; {trial}"
    print_result({**asdict(saved), "restored": is_restored}, people, as_json)


def restore(
    folder: BackupFolder,
    store: Annotated[str, typer.Option("--store", metavar="FILE|URL", help="New file, or database without a store.")],
    as_json: AsJson = False,
) -> None:
    """Restore a backup as a new store, and verify it.

    Example: `waylore restore backups/monday --store memory.waylore`
    """
    with report_errors(), handle_interrupt(RESUME), show_status("restoring") as progress:
        saved = restore_backup(folder, store, progress=progress)
    print_result(asdict(saved), f"{without_password(store)}: {_describe_backup(saved)}", as_json)


def _describe_backup(saved: Manifest) -> str:
    sizes = [f"{name} ({each.documents} documents)" for name, each in saved.collections.items()]
    return f"verified, {', '.join(sizes) or 'no collections'}, as of {saved.created_at}"


@contextmanager
def _open(url: str, open_: Callable[[str], Catalogue] = open_catalogue) -> Iterator[Catalogue]:
    """Open the catalogue of an option, or of the settings."""
    with report_errors():
        address = url or load().store
        if not url and not parse_url(address).is_cells:
            raise ConfigError("no catalogue: name one with --catalogue, or set store to cells+…")
        with closing(open_(address)) as catalogue:
            yield catalogue
