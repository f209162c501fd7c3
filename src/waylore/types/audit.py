"""The audit logs of a collection and of the API keys of a service: changes with their author and time, no content.

A store or registry adds an entry in the transaction of the change. Each entry has a hash of its values and of the
previous hash, so changed and removed entries are detected.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

Verb: TypeAlias = Literal[
    "write",
    "relabel",
    "forget",
    "expire",
    "quarantine",
    "release",
    "reembed",
    "tune",
    "create_key",
    "rotate_key",
    "revoke_key",
    "change_key",
]
MAX_DOCUMENTS = 100  # documents whose ids an entry lists; the others are counted
START = bytes(16).hex()  # the hash before the first entry


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change: who did what when, to how many documents or to which key, and the labels before and after."""

    number: int
    at: datetime
    author: str
    request: str
    verb: Verb
    count: int
    documents: tuple[str, ...]
    labels_before: tuple[str, ...]
    labels_after: tuple[str, ...]
    hash: str = ""
    key: str = ""  # id of an API key, only in the log of keys

    def compute_hash(self, before: str) -> str:
        """Return the hash of the values and of the previous hash."""
        values = self.to_dict()
        del values["hash"]
        if not self.key:  # entries of earlier releases have none
            del values["key"]
        plain = json.dumps([before, *values.values()], ensure_ascii=False).encode()
        return blake2b(plain, digest_size=16, person=b"audit").hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values, as every surface writes it in JSON."""
        plain = asdict(self)
        lists = {name: list(plain[name]) for name in ("documents", "labels_before", "labels_after")}
        return {**plain, **lists, "at": self.at.isoformat()}


def make_entry(
    last: tuple[int, str] | None,
    verb: Verb,
    *,
    author: str,
    request: str,
    documents: Sequence[str],
    before: Iterable[frozenset[str]] = (),
    after: Iterable[frozenset[str]] = (),
    key: str = "",
) -> AuditEntry:
    """Return the next entry of a log; its last entry is given by number and hash."""
    number, hash_ = last or (0, START)
    labels_before, labels_after = (tuple(sorted(frozenset().union(*each))) for each in (before, after))
    entry = AuditEntry(
        number + 1,
        datetime.now(UTC),
        author,
        request,
        verb,
        len(documents),
        tuple(documents[:MAX_DOCUMENTS]),
        labels_before,
        labels_after,
        key=key,
    )
    return replace(entry, hash=entry.compute_hash(hash_))


def find_break(entries: Iterable[AuditEntry]) -> AuditEntry | None:
    """Return the first entry that does not match the hash of the previous one; None if the log is intact.

    Old entries may have been deleted, so a first entry whose number is not 1 is not compared with an earlier one.
    """
    last: AuditEntry | None = None
    for entry in entries:
        before = last.hash if last else START if entry.number == 1 else None
        is_next = last is None or entry.number == last.number + 1
        if not is_next or (before is not None and entry.compute_hash(before) != entry.hash):
            return entry
        last = entry
    return None
