"""Open many databases as one store, by the address of the catalogue that lists them."""

from waylore.cells.catalogue.protocol import Catalogue
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.store import open_federated
from waylore.errors import ConfigError, StoreUnavailable
from waylore.store.protocol import Store
from waylore.store.urls import open_store, parse_url, require_driver


def open_cells(url: str, collection: str) -> Store:
    """Open a collection, or several, of the cells that a catalogue lists; the catalogue closes with the store."""
    federation = Federation(open_catalogue(url), open_cell)
    try:
        return open_federated(federation, collection, closing=federation.close)
    except BaseException:
        federation.close()
        raise


def open_catalogue(url: str) -> Catalogue:
    """Open the catalogue of cells at the address of a file or a server, with or without `cells+`."""
    parsed = parse_url(url)
    if parsed.is_server:
        with require_driver():
            from waylore.cells.catalogue.postgres import PostgresCatalogue  # noqa: PLC0415 (optional driver)
        return PostgresCatalogue(parsed.location)
    if not parsed.is_file:
        raise ConfigError(f"no catalogue for {parsed.scheme}://…: give sqlite:///FILE or postgresql://…")
    return SqliteCatalogue(parsed.location)


def open_cell(url: str, collection: str) -> Store:
    """Open a collection in an existing cell. A missing file is an error, never an empty store."""
    parsed = parse_url(url)
    if parsed.is_file and not parsed.path.exists():
        raise StoreUnavailable(f"{parsed.path} is gone: bring it back, or take it from a backup")
    return open_store(url, collection)
