"""A running service: its settings, registry, embedder, open collections, threads and background jobs.

The engine is synchronous, so its calls run in threads, which callers share (`shares.py`). Reads and writes have
threads of their own, so a write that waits for a lock delays no read. HTTP routes call
`Service.run_on_collection`; this module does not know HTTP.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from cachetools import TTLCache

from waylore.deadline import wait_for_thread
from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, StoreError, StoreUnavailable
from waylore.indexing.blocks import Limits
from waylore.protocols import Embedder, Observer
from waylore.service.activity import Activity
from waylore.service.background import Background, open_background
from waylore.service.callers import COLLECTION_NAME_PATTERN, ApiKeys, Caller, make_not_found_error
from waylore.service.jobs.runner import JobRunner
from waylore.service.jobs.work import JobResources
from waylore.service.keys import KEY_PREFIXES
from waylore.service.oidc import OidcTokens
from waylore.service.open_collections import OpenCollections
from waylore.service.probes import START_SECONDS, Probe, run_until_passed
from waylore.service.rate_limits import RateLimiter
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import RegisteredCollection, Registry
from waylore.service.shares import SERVICE, SharedThreads
from waylore.settings.sections import Settings
from waylore.store.urls import parse_url
from waylore.types.author import Author

log = logging.getLogger(__name__)
READING_THREADS = 8  # threads that read collections: more make Python slower, not faster
WRITING_THREADS = 4  # threads that write to a server, which locks each collection; a file has one writer
REGISTRY_THREADS = 4  # threads that read the registry (as many write), so authentication never waits for a search
OIDC_THREADS = 2  # separate threads for tokens, because one may wait for the provider
MAX_WAITING_LOOK_UPS = 64  # checks of unknown keys per address
LOOK_UP_SECONDS = 0.5  # a known key is accepted if the registry does not answer in this time
SWEEP_SECONDS = 600.0  # interval between deletions of expired responses
COLLECTION_CACHE_SECONDS = 2.0  # readers may still see a deleted collection this long
MAX_IDLE_COLLECTIONS = 64  # unused collections that stay open
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServiceThreads:
    """The threads of a service by purpose."""

    reading: SharedThreads
    writing: SharedThreads
    registry: SharedThreads  # short reads of the registry, and jobs
    registry_writing: SharedThreads
    oidc: ThreadPoolExecutor


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
    threads: ServiceThreads
    probes: Mapping[str, Probe]  # by name: store, model and provider
    background: Background
    activity: Activity
    collection_cache: TTLCache[str, RegisteredCollection] = field(
        default_factory=lambda: TTLCache(4_096, COLLECTION_CACHE_SECONDS)
    )
    secret: bytes = field(init=False, repr=False)  # signs the cursors of pages

    def __post_init__(self) -> None:
        self.secret = self.registry.get_secret()

    async def run_on_collection(
        self, author: Author, collection: str, call: Callable[[Waylore], T], *, is_writing: bool = False
    ) -> T:
        """Run a call of an author on a collection in a thread. Raise TooManyWaiting if too many of its calls wait."""
        threads, alone = (self.threads.writing, collection) if is_writing else (self.threads.reading, "")
        return await threads.run(author.identity, partial(self._call, collection, call, author), alone=alone)

    async def run_on_registry(self, caller: str, call: Callable[[Registry], T], *, is_writing: bool = False) -> T:
        """Run a call of a caller on the registry in a thread."""
        threads = self.threads.registry_writing if is_writing else self.threads.registry
        return await threads.run(caller, partial(call, self.registry))

    async def run_on_jobs(self, caller: str, call: Callable[[JobRunner], T]) -> T:
        """Run a call of a caller on the jobs in a registry thread."""
        return await self.threads.registry.run(caller, partial(call, self.background.jobs))

    async def keep_sweeping(self) -> None:
        """Delete expired responses from the registry at intervals, until cancelled."""
        while True:
            sweep = partial(_log_errors, lambda: self.registry.delete_expired_responses(time.time()))
            await self.threads.registry_writing.run(SERVICE, sweep)
            await asyncio.sleep(SWEEP_SECONDS)

    async def authenticate(self, token: str, address: str = "") -> Caller:
        """Return the caller of an API key, or of a token of the OpenID provider, for a client at an address."""
        if caller := self.api_keys.find_cached(token):
            return caller
        if not token.startswith(KEY_PREFIXES):
            verify = partial(copy_context().run, wait_for_thread(partial(self.oidc_tokens.authenticate, token)))
            return await asyncio.get_running_loop().run_in_executor(self.threads.oidc, verify)
        known = self.api_keys.find_known(token)
        look_up = partial(self.api_keys.authenticate, token)
        if known is None:
            return await self.threads.registry.run(f"address:{address}", look_up, max_waiting=MAX_WAITING_LOOK_UPS)
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                return await self.threads.registry.run(known.id, look_up)
        except (TimeoutError, StoreUnavailable):
            self.api_keys.extend_cached(token)
            return known

    async def get_collection(self, caller: Caller, name: str) -> RegisteredCollection:
        """Return a collection of the registry. Raise NotFound if it does not exist for this caller."""
        collection = None
        if caller.can_see(name):
            collection = await self.run_on_registry(caller.id, lambda registry: registry.get_collection(name))
        if collection is None:
            self.collection_cache.pop(name, None)
            raise make_not_found_error(name)
        self.collection_cache[name] = collection
        return collection

    async def get_cached_collection(self, caller: Caller, name: str) -> RegisteredCollection:
        """Return a collection from the cache, or from the registry if it is not cached. For readers only."""
        cached = self.collection_cache.get(name) if caller.can_see(name) else None
        return cached or await self.get_collection(caller, name)

    def _call(self, collection: str, call: Callable[[Waylore], T], author: Author) -> T:
        with self.collections.borrow(collection, author) as waylore:
            return call(waylore)


@contextmanager
def open_service(
    settings: Settings, embedder: Embedder | None, open_collection: Callable[[str, Observer], Waylore]
) -> Iterator[Service]:
    """Open a service that is ready to answer; at the end of the block, wait for its threads and close it."""
    activity = Activity()
    collections = OpenCollections(lambda name: open_collection(name, activity.get(name)), max_idle=MAX_IDLE_COLLECTIONS)
    with ExitStack() as stack:
        registry = stack.enter_context(closing(open_registry(settings.store)))
        stack.callback(collections.close)
        threads = stack.enter_context(_open_threads(has_one_writer=not parse_url(settings.store).is_server))
        _register_default(registry, settings.collection)
        limits = Limits(seconds=settings.files.seconds)
        resources = JobResources(collections.borrow, settings.store, embedder, limits)
        background = stack.enter_context(open_background(settings, resources))
        oidc_tokens = OidcTokens(settings.oidc)
        yield Service(
            settings,
            registry,
            embedder,
            collections,
            api_keys=ApiKeys(
                registry, lambda call: threads.registry_writing.submit(SERVICE, partial(_log_errors, call))
            ),
            oidc_tokens=oidc_tokens,
            rate_limiter=RateLimiter(settings.http.rate_limit),
            threads=threads,
            probes=stack.enter_context(_open_probes(registry, embedder, oidc_tokens)),
            background=background,
            activity=activity,
        )


@contextmanager
def _open_threads(*, has_one_writer: bool) -> Iterator[ServiceThreads]:
    with ExitStack() as stack:

        def share(name: str, threads: int) -> SharedThreads:
            return stack.enter_context(closing(SharedThreads(f"waylore-{name}", threads)))

        yield ServiceThreads(
            reading=share("reading", READING_THREADS),
            writing=share("writing", 1 if has_one_writer else WRITING_THREADS),
            registry=share("registry", REGISTRY_THREADS),
            registry_writing=share("registry-writing", 1 if has_one_writer else REGISTRY_THREADS),
            oidc=stack.enter_context(ThreadPoolExecutor(OIDC_THREADS, thread_name_prefix="waylore-oidc")),
        )


@contextmanager
def _open_probes(
    registry: Registry, embedder: Embedder | None, oidc_tokens: OidcTokens
) -> Iterator[Mapping[str, Probe]]:
    """Start the probes and wait briefly for their first results."""
    checks: dict[str, Callable[[], object]] = {"store": registry.get_secret}
    if oidc_tokens.is_used:
        checks["provider"] = oidc_tokens.keys.refresh
    if embedder:
        checks["model"] = run_until_passed(partial(embedder.embed_query, "?"))
    until = time.monotonic() + START_SECONDS
    with ExitStack() as stack:
        probes = {name: stack.enter_context(closing(Probe(name, check))) for name, check in checks.items()}
        for probe in probes.values():
            probe.wait(until - time.monotonic())
        yield probes


def _register_default(registry: Registry, collection: str) -> None:
    """Add the collection of the settings to the registry if it is missing."""
    if not re.fullmatch(COLLECTION_NAME_PATTERN, collection):
        raise ConfigError(
            f"collection {collection!r} cannot be part of a URL; set `collection` to a name of letters, "
            "digits, dots, dashes and underscores"
        )
    if registry.get_collection(collection) is None:
        registry.set_collection(RegisteredCollection(collection, "", datetime.now(UTC)))


def _log_errors(call: Callable[[], None]) -> None:
    """Run a call and log an error of the store, because a failure does not matter to the caller."""
    try:
        call()
    except StoreError as error:
        log.warning("skipped: %s", error)
