"""Every error that Waylore raises, one root, each naming what to do next.

(A value that makes no sense, such as a claim without a subject, is Python's own ValueError.)

WayloreError
 ├── ConfigError                a setting or argument cannot be used
 ├── QueryError                 a question cannot be asked that way
 ├── StoreError                 the database said no
 │    ├── StoreUnavailable      it cannot be reached, opened or locked
 │    ├── SchemaOutdated        its schema is not the one this Waylore speaks
 │    ├── NotFound              something asked for by identity is not there
 │    └── Forbidden             the caller may not do that
 └── ModelError                 a model said no
      ├── ModelUnavailable      it cannot be reached or loaded
      ├── ModelMismatch         the collection was made with another embedding model
      └── DimensionMismatch     vectors have the wrong length

A class's docstring is its default message. A driver's error is wrapped once and kept as the cause.
Nothing found by a search is a result, not an error.
"""


class WayloreError(Exception):
    """Waylore failed. The cause, if there is one, is attached to this error."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__class__.__doc__)


class ConfigError(WayloreError):
    """A setting or argument cannot be used; the message says which values can."""


class QueryError(WayloreError):
    """The question cannot be asked that way; the message says how it can."""


class StoreError(WayloreError):
    """The database refused; see the cause, and run `waylore doctor`."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, opened or locked; check the address and who else holds it."""


class SchemaOutdated(StoreError):
    """The store's schema is not the one this version of Waylore speaks; upgrade Waylore or the store."""


class NotFound(StoreError):
    """Nothing is stored under that identity; list what is there with `stats` or `search`."""


class Forbidden(StoreError):
    """The caller may not do that; use a key with the right collection and scope."""


class ModelError(WayloreError):
    """The model refused; see the cause."""


class ModelUnavailable(ModelError):
    """The model cannot be reached or loaded; check its address, its name and its extra."""


class ModelMismatch(ModelError):
    """The collection was made with another embedding model; open it with that one or reembed it."""


class DimensionMismatch(ModelError):
    """The vectors have the wrong length for this collection; use the model it was made with."""
