"""A running service: its settings, registry, embedder, open collections, threads and background jobs.

The engine is synchronous, so its calls run in threads: a bounded number at a time, with a bounded number of
waiting requests. HTTP routes call `Service.run_on_collection`; this module does not know HTTP.
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
from waylore.indexing.blocks import Limits
from waylore.protocols import Embedder
from waylore.service.background import Background, open_background
from waylore.service.callers import COLLECTION_NAME_PATTERN, ApiKeys, Caller, make_not_found_error
from waylore.service.jobs.runner import JobRunner
from waylore.service.jobs.work import JobResources
from waylore.service.keys import KEY_PREFIXES
from waylore.service.oidc import OidcTokens
from waylore.service.open_collections import OpenCollections
from waylore.service.rate_limits import RateLimiter
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import RegisteredCollection, Registry
from waylore.settings.sections import Settings
from waylore.types.author import Author

log = logging.getLogger(__name__)
ENGINE_THREADS = 8  # threads that call collections: more make Python slower, not faster
REGISTRY_THREADS = 4  # threads of their own for the registry, so that authentication never waits for a search
MAX_QUEUED_REQUESTS = 256  # requests that run in a thread or wait for one
SWEEP_SECONDS = 600.0  # between two deletions of expired responses
COLLECTION_CACHE_SECONDS = 2.0  # readers may still see a deleted collection for this long
MAX_IDLE_COLLECTIONS = 64  # collections that stay open when nobody uses them
T = TypeVar("T")


@dataclass(slots=True)
class Service:
    """A running service. Create it with `open_service`."""

    settings: Settings
    registry: Registry
    embedder: Embedder | None
    collections: OpenCollections
    api_keys: ApiKeys
    oidc_tokens: OidcTokens
    rate_limiter: RateLimiter
    engine_threads: ThreadPoolExecutor
    registry_threads: ThreadPoolExecutor
    background: Background
    queued_requests: int = 0
    has_embedded: bool = False
    collection_cache: TTLCache[str, RegisteredCollection] = field(
        default_factory=lambda: TTLCache(4_096, COLLECTION_CACHE_SECONDS)
    )
    secret: bytes = field(init=False, repr=False)  # signs the cursors of pages

    def __post_init__(self) -> None:
        self.secret = self.registry.get_secret()

    async def run_on_collection(self, collection: str, call: Callable[[Waylore], T], *, author: Author) -> T:
        """Run a call on a collection, as an author, in an engine thread.

        Raise StoreUnavailable if the queue is full.
        """
        if self.queued_requests >= MAX_QUEUED_REQUESTS:
            raise StoreUnavailable(f"{self.queued_requests} requests are waiting; try again in a second")
        self.queued_requests += 1
        try:
            return await _run(self.engine_threads, partial(self._call, collection, call, author))
        finally:
            self.queued_requests -= 1

    async def run_on_registry(self, call: Callable[[Registry], T]) -> T:
        """Run a call on the registry in a registry thread."""
        return await _run(self.registry_threads, partial(call, self.registry))

    async def run_on_jobs(self, call: Callable[[JobRunner], T]) -> T:
        """Run a call on the jobs in a registry thread."""
        return await _run(self.registry_threads, partial(call, self.background.jobs))

    async def keep_sweeping(self) -> None:
        """Delete expired responses from the registry at intervals, until cancelled."""
        while True:
            sweep = partial(_log_errors, lambda: self.registry.delete_expired_responses(time.time()))
            await _run(self.registry_threads, sweep)
            await asyncio.sleep(SWEEP_SECONDS)

    async def authenticate(self, token: str) -> Caller:
        """Return the caller of an API key, or of a token of the OpenID provider."""
        if caller := self.api_keys.find_cached(token):
            return caller
        method = self.api_keys if token.startswith(KEY_PREFIXES) else self.oidc_tokens
        return await _run(self.registry_threads, partial(method.authenticate, token))

    async def get_collection(self, caller: Caller, name: str) -> RegisteredCollection:
        """Return a collection of the registry. Raise NotFound if it does not exist for this caller."""
        collection = None
        if caller.can_see(name):
            collection = await self.run_on_registry(lambda registry: registry.get_collection(name))
        if collection is None:
            self.collection_cache.pop(name, None)
            raise make_not_found_error(name)
        self.collection_cache[name] = collection
        return collection

    async def get_cached_collection(self, caller: Caller, name: str) -> RegisteredCollection:
        """Return a collection from the cache, or from the registry if it is not cached. For readers only."""
        cached = self.collection_cache.get(name) if caller.can_see(name) else None
        return cached or await self.get_collection(caller, name)

    async def is_store_available(self) -> bool:
        """Return whether the database answers."""
        return await _run(self.registry_threads, partial(_succeeds, self.registry.get_secret))

    async def is_model_available(self) -> bool:
        """Return whether the embedder has embedded something, or there is none. Try it until it has."""
        if self.embedder and not self.has_embedded:
            embed = partial(self.embedder.embed_query, "?")
            self.has_embedded = await _run(self.registry_threads, partial(_succeeds, embed))
        return self.has_embedded or self.embedder is None

    def _call(self, collection: str, call: Callable[[Waylore], T], author: Author) -> T:
        with self.collections.borrow(collection, author) as waylore:
            return call(waylore)


@contextmanager
def open_service(
    settings: Settings, embedder: Embedder | None, open_collection: Callable[[str], Waylore]
) -> Iterator[Service]:
    """Open a service that is ready to answer, and close it when all of its threads have ended."""
    collections = OpenCollections(open_collection, max_idle=MAX_IDLE_COLLECTIONS)
    with ExitStack() as stack:
        registry = stack.enter_context(closing(open_registry(settings.store)))
        stack.callback(collections.close)
        engine_threads = stack.enter_context(ThreadPoolExecutor(ENGINE_THREADS, thread_name_prefix="waylore-engine"))
        registry_threads = stack.enter_context(
            ThreadPoolExecutor(REGISTRY_THREADS, thread_name_prefix="waylore-registry")
        )
        _register_default(registry, settings.collection)
        limits = Limits(seconds=settings.files.seconds)
        resources = JobResources(collections.borrow, settings.store, embedder, limits)
        background = stack.enter_context(open_background(settings, resources))
        yield Service(
            settings,
            registry,
            embedder,
            collections,
            api_keys=ApiKeys(registry, lambda call: registry_threads.submit(_log_errors, call)),
            oidc_tokens=OidcTokens(settings.oidc),
            rate_limiter=RateLimiter(settings.http.rate_limit),
            engine_threads=engine_threads,
            registry_threads=registry_threads,
            background=background,
        )


def _register_default(registry: Registry, collection: str) -> None:
    """Add the collection that the settings name to the registry, if it is not there."""
    if not re.fullmatch(COLLECTION_NAME_PATTERN, collection):
        raise ConfigError(
            f"collection {collection!r} cannot be part of a URL; set `collection` to a name of letters, "
            "digits, dots, dashes and underscores"
        )
    if registry.get_collection(collection) is None:
        registry.set_collection(RegisteredCollection(collection, "", datetime.now(UTC)))


def _log_errors(call: Callable[[], None]) -> None:
    """Run a call whose failure does not matter to a caller. Log an error of the store."""
    try:
        call()
    except StoreError as error:
        log.warning("skipped: %s", error)


def _succeeds(call: Callable[[], object]) -> bool:
    try:
        call()
    except WayloreError as error:
        log.warning("not ready: %s", error)
        return False
    return True


async def _run(threads: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """Run a call in a thread, with the context variables of the request."""
    return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, call)
