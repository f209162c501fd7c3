"""Who calls, and what they may do: an API key, a token of an OpenID provider, or anyone where nobody is asked.

Scopes grow: who may write may read, who may administer may write. A collection that a caller may not see is not
there for them: the answer is the same as for one that nobody made.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from threading import Lock

from cachetools import TTLCache

from waylore.errors import Forbidden, NotFound
from waylore.service.keys import opens, parted
from waylore.service.registry.protocol import EVERY, SCOPES, Key, Registry, Scope
from waylore.types.search import Filter

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"  # of a collection that can stand in an address
REMEMBERED = 2.0  # seconds for which a key is believed to be as it was; so long may a revoked one still work
USED_EVERY = timedelta(minutes=1)  # how exactly a key's last use is kept


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: their scope, collections (`*` for all) and labels (None for all)."""

    id: str
    scope: Scope
    collections: frozenset[str] = frozenset({EVERY})
    labels: frozenset[str] | None = None

    @property
    def where(self) -> Filter:
        """What the caller may see."""
        return Filter(labels=self.labels)

    def sees(self, collection: str) -> bool:
        """Whether a collection is there for this caller, if it is there at all."""
        return EVERY in self.collections or collection in self.collections

    def covers(self, collections: Iterable[str], labels: Iterable[str] | None) -> bool:
        """Whether the caller has all that is to be handed on."""
        within = all(map(self.sees, collections))
        return within and (self.labels is None or (labels is not None and self.labels >= frozenset(labels)))


ANYONE = Caller("anyone", "admin")


class Unauthenticated(Exception):
    """Say who you are: send an API key as `Authorization: Bearer waylore_…`."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__class__.__doc__)


def require(caller: Caller, scope: Scope) -> None:
    """Refuse a caller whose scope is too small."""
    if SCOPES.index(caller.scope) < SCOPES.index(scope):
        raise Forbidden(f"this needs the scope {scope}, and your key has {caller.scope}: use another key")


def require_all_labels(caller: Caller) -> None:
    """Refuse a caller who reads some labels only what tells of the whole collection."""
    if caller.labels is not None:
        raise Forbidden("this tells of the whole collection, and your key reads some labels only: use another")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def no_collection(name: str) -> NotFound:
    """What to say where there is no such collection, or none for this caller."""
    return NotFound(f"there is no collection {name!r} that you may see: GET /v1/collections lists those")


class Keyholders:
    """Callers by their API keys, as the registry has them, remembered for a moment."""

    def __init__(self, registry: Registry, afterwards: Callable[[Callable[[], None]], object]) -> None:
        self._registry = registry
        self._afterwards = afterwards  # runs what no answer should wait for
        self._known: TTLCache[str, Key] = TTLCache(4_096, REMEMBERED)
        self._looking = Lock()

    def remembered(self, token: str) -> Caller | None:
        """Who holds this key, if it was shown a moment ago; waits for nothing."""
        id_, secret = parted(token)
        with self._looking:
            key = self._known.get(id_)
        return self._opened(key, secret)

    def caller(self, token: str) -> Caller:
        """Who holds this key, as the registry has it."""
        id_, secret = parted(token)
        key = self._registry.key(id_) if id_ else None
        if key is not None:
            with self._looking:
                self._known[id_] = key
        caller = self._opened(key, secret)
        if caller is None:
            raise Unauthenticated("the API key is unknown, expired or revoked: ask for another")
        return caller

    def forget(self, id_: str) -> None:
        """Look a key up anew, for it was changed."""
        with self._looking:
            self._known.pop(id_, None)

    def _opened(self, key: Key | None, secret: str) -> Caller | None:
        now = datetime.now(UTC)
        if key is None or not opens(key, secret, now):
            return None
        self._use(key, now)
        return Caller(f"key:{key.id}", key.scope, key.collections, key.labels)

    def _use(self, key: Key, now: datetime) -> None:
        if key.used is None or now - key.used > USED_EVERY:
            with self._looking:
                self._known[key.id] = replace(key, used=now)
            self._afterwards(lambda: self._registry.use_key(key.id, now))
