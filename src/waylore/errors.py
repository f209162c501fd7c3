"""Every error that Waylore raises: one root, and each message names the remedy.

WayloreError
 ├── ConfigError                a setting cannot be used
 ├── ArgumentError              an argument of a call is wrong (also a ValueError)
 ├── ClosedError                the collection was closed before the call
 ├── DeadlineExceeded           the time limit of a request passed
 ├── StoreError                 the database refused
 │    ├── StoreUnavailable      it cannot be reached, opened or locked
 │    ├── DamagedStore          its file does not have the bytes that were written
 │    ├── SchemaOutdated        its schema is not the one that this version reads
 │    ├── NotFound              no such document, passage, file or collection
 │    └── Forbidden             the caller may not do that
 └── ModelError                 a model refused
      ├── ModelUnavailable      it cannot be reached or loaded
      ├── ModelMismatch         the collection was made with another embedding model
      └── DimensionMismatch     vectors have the wrong length

The docstring of a class is its default message. An error of a driver is wrapped once and attached as the cause.
A search without hits is a result, not an error.
"""


class WayloreError(Exception):
    """Waylore failed. The cause, if there is one, is attached to this error."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__class__.__doc__)


class ConfigError(WayloreError):
    """A setting cannot be used; the message lists the accepted values."""


class ArgumentError(WayloreError, ValueError):
    """An argument is wrong; the message names it and the accepted values."""


class ClosedError(WayloreError):
    """The collection is closed; open it again with Waylore.open(url)."""


class DeadlineExceeded(WayloreError):
    """The time limit passed and nothing was changed; ask for less, or try again later."""


class StoreError(WayloreError):
    """The database refused; see the cause, and run `waylore doctor`."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, opened or locked; check its address and which other process uses it."""


class DamagedStore(StoreError):
    """The file or database of the store is damaged; restore a copy of it, and see `waylore doctor`."""


class SchemaOutdated(StoreError):
    """The schema of the store has a number that this version of Waylore cannot read; upgrade Waylore or the store."""


class NotFound(StoreError):
    """No such item; list documents with `documents()` or find them with `search()`."""


class Forbidden(StoreError):
    """The caller may not do that; use a key with the right collection and scope."""


class ModelError(WayloreError):
    """The model refused; see the cause."""


class ModelUnavailable(ModelError):
    """The model cannot be reached or loaded; check its address, its name and its extra."""


class ModelMismatch(ModelError):
    """The collection was made with another embedding model; open it with that model, or re-embed it."""


class DimensionMismatch(ModelError):
    """The vectors have the wrong length for this collection; use the model that the collection was made with."""
