"""One read request as data: a reading verb of a store, and its arguments. `store.reads` runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """A reading verb of a store, and what it is asked with."""

    verb: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]


def ask(verb: Callable[Concatenate[Any, P], T], *arguments: P.args, **options: P.kwargs) -> Ask[T]:
    """A verb that is to be asked: `ask(Store.dense, vector, top_k=5)`."""
    return Ask(verb.__name__, arguments, options)
