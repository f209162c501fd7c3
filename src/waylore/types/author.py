"""The one rule for labels and sources, for readers and writers.

A reader sees public documents and documents that share a label with it. A limited author, one with labels, changes only
documents whose labels are all its own; it neither writes nor changes public documents. An author without labels reads
and changes everything. Stores, the engine and every surface use this rule. Nothing here reads a store.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from waylore.errors import ArgumentError, Forbidden
from waylore.types.knowledge import SOURCES, Source
from waylore.types.search import Filter


@dataclass(frozen=True, slots=True)
class Author:
    """A reader and writer: an identity, its labels (None for all), and the most trusted source of its writes.

    Without `max_source` a limited author writes as `conversation`, any other author with any source. An author with a
    `user` reads and writes for that user alone: it sees documents without a user, but changes none.
    """

    identity: str
    labels: frozenset[str] | None = None
    max_source: Source | None = None
    user: str = ""

    def __post_init__(self) -> None:
        identity: object = self.identity
        if not isinstance(identity, str) or not identity:
            raise ArgumentError(f"identity must be a string that names the author, got {identity!r:.60}")
        object.__setattr__(self, "labels", Filter(labels=self.labels).labels)
        if self.max_source is None:
            object.__setattr__(self, "max_source", get_default_source(self.labels, self.user))
        elif self.max_source not in SOURCES:
            raise ArgumentError(f"max_source must be one of {', '.join(SOURCES)}, got {self.max_source!r:.60}")

    def limit(self, labels: Iterable[str] | None, user: str = "") -> "Author":
        """Return the author with only those of its labels that are given, and for this user; None changes nothing."""
        bound = self
        if user and not self.user:
            bound = replace(self, user=user, max_source=None)
        bound.choose_user(user)
        if labels is None:
            return bound
        own = self.narrow(Filter(labels=frozenset(labels))).labels
        return replace(bound, labels=own, max_source=None if self.labels is None else self.max_source)

    def narrow(self, where: Filter) -> Filter:
        """Return a reader's filter with labels of the author only; with all of them if the filter has none."""
        where = replace(where, user=self.choose_user(where.user))
        if self.labels is None:
            return where
        return replace(where, labels=self.labels if where.labels is None else where.labels & self.labels)

    def choose_user(self, user: str) -> str:
        """Return the user of a call: the given one, or that of the author. Another user is refused."""
        if self.user and user not in ("", self.user):
            raise Forbidden(f"user must be {self.user!r}: you may read and write for no other user")
        return user or self.user

    def may_change(self, labels: frozenset[str], user: str = "") -> bool:
        """Return whether the author may replace or forget a document with these labels and this user."""
        if self.user and user != self.user:
            return False
        return self.labels is None or (bool(labels) and labels <= self.labels)

    def choose_labels(self, labels: frozenset[str]) -> frozenset[str]:
        """Return the labels of a new document: the given ones, or all labels of a limited author if none are given."""
        chosen = labels or self.labels or labels
        if not self.may_change(chosen, self.user):
            own = ", ".join(sorted(self.labels or ())) or "none, so you may not write"
            raise Forbidden(f"labels must be among your own: {own}")
        return chosen

    def cap(self, source: Source) -> Source:
        """Return the source that is stored with a write: the given one, but at most `max_source`."""
        return max(source, self.max_source or source, key=SOURCES.index)

    @property
    def is_limited(self) -> bool:
        """True if some documents of a collection may be hidden from the author."""
        return self.labels is not None or bool(self.user)

    def require_all(self) -> None:
        """Raise Forbidden if the author is limited, for calls about a whole collection."""
        if self.is_limited:
            raise Forbidden("this request needs the whole collection, you may read only a part; use another key")


def get_default_source(labels: Collection[str] | None, user: str = "") -> Source:
    """Return the most trusted source of an author without a given one."""
    return "user_edit" if labels is None and not user else "conversation"


LOCAL = "local"  # the identity of the owner
OWNER = Author(LOCAL)  # the owner of a store, with all labels and sources
