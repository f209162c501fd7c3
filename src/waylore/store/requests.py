"""A read request as data: the name of a reading method of a store, and its arguments. `store.reads` runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class ReadRequest(Generic[T]):
    """A reading method of a store by its name, with positional and keyword arguments."""

    verb: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]


def make_request(verb: Callable[Concatenate[Any, P], T], *arguments: P.args, **options: P.kwargs) -> ReadRequest[T]:
    """Make a request for a method of a store: `make_request(Store.dense, vector, top_k=5)`."""
    return ReadRequest(verb.__name__, arguments, options)
