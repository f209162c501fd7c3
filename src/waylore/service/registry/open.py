"""Open the registry of a service, in the file or database of its store, or of the catalogue of its cells."""

from waylore.errors import ConfigError
from waylore.service.registry.protocol import Registry
from waylore.service.registry.sqlite import open_sqlite
from waylore.store.sqlite.file import require_catalogue
from waylore.store.urls import parse_url, require_driver


def open_registry(url: str) -> Registry:
    """Open the registry in the database of the store with this URL."""
    parsed = parse_url(url)
    if parsed.is_server:
        with require_driver():
            from waylore.service.registry.postgres import open_postgres  # noqa: PLC0415 (optional driver)
        return open_postgres(parsed.location)
    if not parsed.is_file:
        raise ConfigError(f"a registry cannot be opened at {parsed.scheme}://…; use a file or postgresql://…")
    if parsed.is_cells:
        require_catalogue(parsed.location)
    return open_sqlite(parsed.location)
