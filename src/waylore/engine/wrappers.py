"""Wrap every public method of `Waylore`: check the call, notify the observer, and make an async twin."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from functools import wraps
from inspect import signature
from itertools import islice
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from waylore.errors import ArgumentError, ClosedError


class Facade(Protocol):
    """The part of `Waylore` that the wrappers use."""

    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        ...

    def observe_call(self, verb: str) -> AbstractContextManager[Callable[[object], None]] | None:
        """Return the observer's context around a call, or None without an observer."""
        ...


F = TypeVar("F", bound=Facade)
P = ParamSpec("P")
T = TypeVar("T")
BATCH_LINES = 100  # items that a thread reads at a time


def check_call(method: Callable[Concatenate[F, P], T]) -> Callable[Concatenate[F, P], T]:
    """Refuse calls after `close`, and calls whose arguments do not fit the signature."""
    known = signature(method)

    @wraps(method)
    def checked(self: F, /, *arguments: P.args, **options: P.kwargs) -> T:
        if self.is_closed():
            raise ClosedError
        try:
            known.bind(self, *arguments, **options)
        except TypeError as error:
            names = ", ".join(list(known.parameters)[1:])
            raise ArgumentError(f"{method.__name__}: {error}; its arguments are {names}, given by name") from error
        return method(self, *arguments, **options)

    return checked


def observe(method: Callable[Concatenate[F, P], T]) -> Callable[Concatenate[F, P], T]:
    """Check a call, and report its result to the observer, if there is one."""
    checked = check_call(method)

    @wraps(method)
    def observed(self: F, /, *arguments: P.args, **options: P.kwargs) -> T:
        watching = self.observe_call(method.__name__)
        if watching is None:
            return checked(self, *arguments, **options)
        with watching as report:
            result = checked(self, *arguments, **options)
            report(result)
            return result

    return observed


def make_async(method: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Return the method as a coroutine function that runs it in a thread."""

    @wraps(method)
    async def run(*arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(method, *arguments, **options)

    return run


def make_async_generator(method: Callable[P, Generator[T]]) -> Callable[P, AsyncGenerator[T]]:
    """Return the method as an asynchronous generator that runs it in threads, some items at a time."""

    @wraps(method)
    async def run(*arguments: P.args, **options: P.kwargs) -> AsyncGenerator[T]:
        items = await asyncio.to_thread(method, *arguments, **options)
        try:
            while batch := await asyncio.to_thread(lambda: list(islice(items, BATCH_LINES))):
                for item in batch:
                    yield item
        finally:
            items.close()

    return run
