"""What a key may do: the rules of labels, sources and users, written down a second time, without code of Waylore."""

from dataclasses import dataclass

TRUST = ("conversation", "system", "file", "user_edit")  # the most trusted last
SCOPES = ("", "read", "write", "admin")


@dataclass(frozen=True)
class Rights:
    """A key: its scope ("" if it is not valid here), its labels (None for all), its most trusted source, and its user.

    A key without a user may name any user in a request.
    """

    scope: str
    labels: frozenset[str] | None = None
    max_source: str = "user_edit"
    user: str = ""

    def has_scope(self, scope: str) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def may_read(self, labels: frozenset[str], user: str = "") -> bool:
        is_of_user = not self.user or user in ("", self.user)
        is_labelled = self.labels is None or not labels or bool(labels & self.labels)
        return self.has_scope("read") and is_of_user and is_labelled

    def may_change(self, labels: frozenset[str], user: str = "") -> bool:
        is_of_user = self.user in ("", user)
        is_labelled = self.labels is None or (bool(labels) and labels <= self.labels)
        return self.has_scope("write") and is_of_user and is_labelled

    def may_name(self, user: str) -> bool:
        return not self.user or user in ("", self.user)

    def choose_labels(self, named: frozenset[str]) -> frozenset[str]:
        return named or self.labels or named

    def may_trust(self, source: str) -> bool:
        return TRUST.index(source) <= TRUST.index(self.max_source)

    def may_manage(self, key: "Rights") -> bool:
        within = self.labels is None or (key.labels is not None and key.labels <= self.labels)
        return self.has_scope("admin") and within and self.may_trust(key.max_source) and self.user in ("", key.user)

    def is_unseen_by(self, reader: frozenset[str], user: str) -> bool:
        """Return whether a reader with these labels, for this user, sees nothing of what the key writes."""
        is_hidden = self.labels is not None and not self.labels & reader
        return not self.has_scope("write") or is_hidden or self.user not in ("", user)
