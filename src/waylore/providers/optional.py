"""Optional dependencies: what is imported only when it is asked for, and what to say where it is not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from waylore.errors import ConfigError, ModelUnavailable


@contextmanager
def needing(who_needs: str, extra: str) -> Iterator[None]:
    """Imports of an extra: `needing("the MCP server needs", "mcp")`."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{who_needs} {error.name}: pip install 'waylore[{extra}]'") from error


def require(module: str, *, extra: str) -> Any:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ModelUnavailable(f"{module} is not installed; run `pip install 'waylore[{extra}]'`") from error
