"""Import optional dependencies when they are needed, and name the extra to install if they are missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from waylore.errors import ConfigError, ModelUnavailable


@contextmanager
def require_extra(who_needs: str, extra: str) -> Iterator[None]:
    """Import an extra inside a `with` block: `require_extra("the MCP server needs", "mcp")`."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{who_needs} the extra {extra}: pip install 'waylore[{extra}]'") from error


def require(module: str, *, extra: str) -> Any:
    """Import an optional dependency, or raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ModelUnavailable(f"{module} is not installed; run `pip install 'waylore[{extra}]'`") from error
