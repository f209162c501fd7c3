"""What a key may do: the rules of labels and sources, written down a second time, without any code of Waylore."""

from dataclasses import dataclass

TRUST = ("conversation", "system", "file", "user_edit")  # the most trusted last
SCOPES = ("", "read", "write", "admin")


@dataclass(frozen=True)
class Rights:
    """A key: its scope ("" if it is not valid here), its labels (None for all), and its most trusted source."""

    scope: str
    labels: frozenset[str] | None = None
    max_source: str = "user_edit"

    def has_scope(self, scope: str) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def may_read(self, labels: frozenset[str]) -> bool:
        return self.has_scope("read") and (self.labels is None or not labels or bool(labels & self.labels))

    def may_read_all(self) -> bool:
        return self.has_scope("read") and self.labels is None

    def may_change(self, labels: frozenset[str]) -> bool:
        return self.has_scope("write") and (self.labels is None or (bool(labels) and labels <= self.labels))

    def choose_labels(self, named: frozenset[str]) -> frozenset[str]:
        return named or self.labels or named

    def may_trust(self, source: str) -> bool:
        return TRUST.index(source) <= TRUST.index(self.max_source)

    def may_manage(self, key: "Rights") -> bool:
        within = self.labels is None or (key.labels is not None and key.labels <= self.labels)
        return self.has_scope("admin") and within and self.may_trust(key.max_source)

    def is_unseen_by(self, reader: frozenset[str]) -> bool:
        """Return whether a reader with these labels sees nothing of what the key writes."""
        return not self.has_scope("write") or (self.labels is not None and not self.labels & reader)
