"""What a running service holds: its settings, its registry, one embedder, open collections, and threads.

The engine is synchronous, so what it does is done in threads: a bounded number at a time, and with a bounded
number of requests waiting for their turn. Routes ask `Service.ask`; nothing here knows HTTP.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from cachetools import TTLCache

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, StoreError, StoreUnavailable, WayloreError
from waylore.protocols import Embedder
from waylore.service.background import Background, opened_background
from waylore.service.callers import NAME, Caller, Keyholders, no_collection
from waylore.service.jobs.runner import Jobs
from waylore.service.jobs.work import Bench
from waylore.service.keys import MARK
from waylore.service.oidc import Bearers
from waylore.service.open_collections import OpenCollections
from waylore.service.rate_limits import Rates
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import Collection, Registry
from waylore.settings.load import Settings

log = logging.getLogger(__name__)
ENGINES = 8  # threads that ask collections: more make Python slower, not faster
CLERKS = 4  # threads that look into the registry, so that nobody waits for a search to show a key
WAITING = 256  # requests that may wait for a thread
SWEEP_SECONDS = 600.0
SHOWN_SECONDS = 2.0  # for which a collection is believed to be there by those who read
OPEN = 64  # collections that stay open when nobody uses them
T = TypeVar("T")


@dataclass(slots=True)
class Service:
    """A running service; `opened_service` makes one."""

    settings: Settings
    registry: Registry
    embedder: Embedder | None
    collections: OpenCollections
    keyholders: Keyholders
    bearers: Bearers
    rates: Rates
    engines: ThreadPoolExecutor
    clerks: ThreadPoolExecutor
    background: Background
    waiting: int = 0
    has_embedded: bool = False
    shown: TTLCache[str, Collection] = field(default_factory=lambda: TTLCache(4_096, SHOWN_SECONDS))
    secret: bytes = field(init=False, repr=False)  # that cursors are signed with

    def __post_init__(self) -> None:
        self.secret = self.registry.secret()

    async def ask(self, collection: str, verb: Callable[[Waylore], T]) -> T:
        """What a collection answers; whoever waits too long, or behind too many, is told to come again."""
        if self.waiting >= WAITING:
            raise StoreUnavailable(f"{self.waiting} requests are waiting already: try again in a second")
        self.waiting += 1
        try:
            return await _run(self.engines, partial(self._asked, collection, verb))
        finally:
            self.waiting -= 1

    async def look(self, verb: Callable[[Registry], T]) -> T:
        """What the registry answers."""
        return await _run(self.clerks, partial(verb, self.registry))

    async def file(self, verb: Callable[[Jobs], T]) -> T:
        """What is known of the jobs, or becomes of them."""
        return await _run(self.clerks, partial(verb, self.background.jobs))

    async def keep_tidy(self) -> None:
        """Drop kept answers that are too old, every now and then, until cancelled."""
        while True:
            await _run(self.clerks, partial(_uncritical, lambda: self.registry.sweep(time.time())))
            await asyncio.sleep(SWEEP_SECONDS)

    async def known(self, token: str) -> Caller:
        """Who holds an API key, or bears a token of the OpenID provider."""
        if caller := self.keyholders.remembered(token):
            return caller
        holders = self.keyholders if token.startswith(MARK) else self.bearers
        return await _run(self.clerks, partial(holders.caller, token))

    async def collection(self, caller: Caller, name: str) -> Collection:
        """A collection, if it is there for this caller."""
        found = await self.look(lambda registry: registry.collection(name)) if caller.sees(name) else None
        if found is None:
            self.shown.pop(name, None)
            raise no_collection(name)
        self.shown[name] = found
        return found

    async def collection_of_late(self, caller: Caller, name: str) -> Collection:
        """The same for those who only read: one that was there a moment ago is believed to be there."""
        known = self.shown.get(name) if caller.sees(name) else None
        return known or await self.collection(caller, name)

    async def reaches_store(self) -> bool:
        """Whether the database answers."""
        return await _run(self.clerks, partial(_succeeds, self.registry.secret))

    async def reaches_model(self) -> bool:
        """Whether the embedder has embedded something, or there is none; it is asked until it has."""
        if self.embedder and not self.has_embedded:
            self.has_embedded = await _run(
                self.clerks, partial(_succeeds, partial(self.embedder.embed_query, "?"))
            )
        return self.has_embedded or self.embedder is None

    def _asked(self, collection: str, verb: Callable[[Waylore], T]) -> T:
        with self.collections.lent(collection) as waylore:
            return verb(waylore)


@contextmanager
def opened_service(
    settings: Settings, embedder: Embedder | None, open_collection: Callable[[str], Waylore]
) -> Iterator[Service]:
    """Open a service that is ready to answer, and close it when all of its threads are done."""
    collections = OpenCollections(open_collection, most=OPEN)
    with ExitStack() as stack:
        registry = stack.enter_context(closing(open_registry(settings.store)))
        stack.callback(collections.close)
        engines = stack.enter_context(ThreadPoolExecutor(ENGINES, thread_name_prefix="waylore-engine"))
        clerks = stack.enter_context(ThreadPoolExecutor(CLERKS, thread_name_prefix="waylore-clerk"))
        keyholders = Keyholders(registry, lambda act: clerks.submit(_uncritical, act))
        _show(registry, settings.collection)
        bearers, rates = Bearers(settings.oidc), Rates(settings.http.rate)
        bench = Bench(collections.lent, settings.store, embedder)
        background = stack.enter_context(opened_background(settings, bench))
        people = (keyholders, bearers, rates)
        yield Service(settings, registry, embedder, collections, *people, engines, clerks, background)


def _show(registry: Registry, collection: str) -> None:
    """The collection that the settings name is there from the beginning."""
    if not re.fullmatch(NAME, collection):
        raise ConfigError(
            f"a collection called {collection!r} cannot stand in an address: set `collection` to letters, "
            "digits, dots, dashes and underscores"
        )
    if registry.collection(collection) is None:
        registry.set_collection(Collection(collection, "", datetime.now(UTC)))


def _uncritical(act: Callable[[], None]) -> None:
    """Do what is worth doing, but not worth an error."""
    try:
        act()
    except StoreError as error:
        log.warning("left undone: %s", error)


def _succeeds(act: Callable[[], object]) -> bool:
    try:
        act()
    except WayloreError as error:
        log.warning("not ready: %s", error)
        return False
    return True


async def _run(threads: ThreadPoolExecutor, act: Callable[[], T]) -> T:
    """What a function gives, run in a thread that knows the request's context."""
    return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, act)
