"""Open a store over many databases, by the URL of the catalogue that lists them."""

from waylore.cells.catalogue.protocol import Catalogue
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.store import open_federated
from waylore.errors import ConfigError, StoreUnavailable
from waylore.store.protocol import Store
from waylore.store.sqlite.file import require_catalogue
from waylore.store.urls import open_store, parse_url, require_driver


def open_cells(url: str, collection: str) -> Store:
    """Open one or several collections of a catalogue's cells. Closing the store closes the catalogue."""
    federation = Federation(open_catalogue(url), open_cell)
    try:
        return open_federated(federation, collection, on_close=federation.close)
    except BaseException:
        federation.close()
        raise


def open_catalogue(url: str) -> Catalogue:
    """Open an existing catalogue at the URL of a file or a server, with or without `cells+`."""
    parsed = parse_url(url)
    if parsed.is_file:
        require_catalogue(parsed.location)
    return create_catalogue(url)


def create_catalogue(url: str) -> Catalogue:
    """Open the catalogue at a URL, and create it if it does not exist, to add the first cell."""
    parsed = parse_url(url)
    if parsed.is_server:
        with require_driver():
            from waylore.cells.catalogue.postgres import PostgresCatalogue  # noqa: PLC0415 (optional driver)
        return PostgresCatalogue(parsed.location)
    if not parsed.is_file:
        raise ConfigError(f"a catalogue cannot be opened at {parsed.scheme}://…; use sqlite:///FILE or postgresql://…")
    return SqliteCatalogue(parsed.location)


def open_cell(url: str, collection: str) -> Store:
    """Open a collection in an existing cell. Raise StoreUnavailable if the file of the cell is missing."""
    parsed = parse_url(url)
    if parsed.is_file and not parsed.path.exists():  # SQLite would create an empty file
        raise StoreUnavailable(f"{parsed.path} does not exist; restore the file of this cell from a backup")
    return open_store(url, collection)
