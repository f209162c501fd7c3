"""Optional dependencies: what is imported only when it is asked for, and what to say where it is not there."""

from collections.abc import Iterator
from contextlib import contextmanager

from waylore.errors import ConfigError


@contextmanager
def needing(who_needs: str, extra: str) -> Iterator[None]:
    """Imports of an extra: `needing("the MCP server needs", "mcp")`."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{who_needs} {error.name}: pip install 'waylore[{extra}]'") from error
