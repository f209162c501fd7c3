"""The kinds of errors, as each surface tells them: one table for exit codes, HTTP and MCP.

An error is of the nearest kind that is listed. The text is always the error's own, which says what to do next.
"""

from typing import NamedTuple

from waylore.errors import (
    ConfigError,
    Forbidden,
    ModelError,
    ModelMismatch,
    NotFound,
    QueryError,
    SchemaOutdated,
    StoreError,
    StoreUnavailable,
    WayloreError,
)


class Kind(NamedTuple):
    """What an error is called, the exit code of a command that met it, and the status of an HTTP answer."""

    name: str
    title: str
    exit_code: int
    status: int


KINDS: dict[type[Exception], Kind] = {
    ConfigError: Kind("config", "A setting or argument cannot be used", 2, 400),
    QueryError: Kind("query", "The question cannot be asked that way", 2, 400),
    NotFound: Kind("not-found", "There is nothing under that name", 3, 404),
    StoreUnavailable: Kind("store-unavailable", "The store cannot be reached", 4, 503),
    SchemaOutdated: Kind("schema-outdated", "The store has another schema", 5, 503),
    Forbidden: Kind("forbidden", "You may not do that", 6, 403),
    ModelMismatch: Kind("model-mismatch", "The collection was made with another model", 7, 409),
    ModelError: Kind("model", "The model cannot be used", 8, 503),
    StoreError: Kind("store", "The database refused", 1, 500),
    WayloreError: Kind("error", "Waylore failed", 1, 500),
    ValueError: Kind("value", "A value makes no sense", 2, 422),
}


def kind_of(error: Exception) -> Kind:
    """The nearest kind that is listed; an error that nobody foresaw is the last but one."""
    listed = (KINDS[kind] for kind in type(error).__mro__ if kind in KINDS)
    return next(listed, KINDS[WayloreError])
