"""Record changes in the same transaction: those of a request under its id, and all of them in the audit log.

If the answer to a request is lost, the client may repeat the request. Its write then finds the record, changes nothing
and returns the earlier result. The record of forgotten documents is their receipt. A record has ids and no content. An
author with labels reads its own records only. The audit log has an entry for each change. This module knows no SQL.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from waylore.types.audit import AuditEntry, Verb, make_entry
from waylore.types.author import Author
from waylore.types.identity import identity, is_id
from waylore.types.knowledge import EPOCH
from waylore.types.results import Receipt

RECEIPT_SECONDS = 30 * 86_400.0  # for which the receipt of forgotten documents is stored
WRITE_SECONDS = 86_400.0  # for which it is stored that a request has written documents
MICROSECOND = timedelta(microseconds=1)
KINDS = ("documents", "passages", "entities", "facts", "missing")  # the columns of a record, each with ids


@dataclass(slots=True)
class _Record:
    request: str
    is_made: bool = False


_current: ContextVar[_Record | None] = ContextVar("record", default=None)


@contextmanager
def record_as(request: str) -> Iterator[None]:
    """Record the changes of the first write in the block under the id of a request; "" for no record."""
    token = _current.set(_Record(request))
    try:
        yield
    finally:
        _current.reset(token)


def get_request_id() -> str:
    """Return the id of the current request; empty if it has none, or if its write was recorded already."""
    record = _current.get()
    return "" if record is None or record.is_made else record.request


def mark_recorded() -> None:
    """Record no further write of the current request."""
    record = _current.get()
    if record is not None:
        record.is_made = True


def hide_name(name: str) -> str:
    """Return a hash of a name without a document, because the name itself may be what the caller wants to forget."""
    return name if is_id(name) else identity("missing", name)


def get_now() -> int:
    """Return the current time as records have it, in microseconds since 1970."""
    return int(time.time() * 1e6)


def bind_record(request: str, receipt: Receipt, author: Author) -> dict[str, Any]:
    """Return the values of a record by column: its id and author, the ids of the receipt, and its end."""
    seconds = RECEIPT_SECONDS if receipt.documents else WRITE_SECONDS
    ids = {kind: b"".join(map(bytes.fromhex, getattr(receipt, kind))) for kind in KINDS}
    return {
        "id": bytes.fromhex(request),
        "now": get_now(),
        "until": get_now() + int(seconds * 1e6),
        "author": author.identity,
        **ids,
    }


def read_record(request: str, row: Sequence[bytes]) -> Receipt:
    """Return the receipt of a record, given by its columns of ids."""
    ids: Mapping[str, Any] = {
        kind: tuple(blob[at : at + 16].hex() for at in range(0, len(blob), 16))
        for kind, blob in zip(KINDS, row, strict=True)
    }
    return Receipt(**ids, id=request)


# -- the audit log -------------------------------------------------------------------------------------


def bind_entry(
    last: tuple[int, bytes] | None,
    verb: Verb,
    author: Author,
    documents: Sequence[str],
    *,
    before: Iterable[str] = (),
    after: Iterable[str] = (),
    key: str = "",
) -> dict[str, Any]:
    """Return the columns of the next entry of a log. Labels are given in JSON, as documents have them.

    key: the id of an API key, in the log of keys, which has a column for it.
    """
    labels = [[frozenset(json.loads(each)) for each in set(given)] for given in (before, after)]
    entry = make_entry(
        (last[0], last[1].hex()) if last else None,
        verb,
        author=author.identity,
        request=get_request_id(),
        documents=documents,
        before=labels[0],
        after=labels[1],
        key=key,
    )
    return {
        "number": entry.number,
        "at": (entry.at - EPOCH) // MICROSECOND,
        "author": entry.author,
        "request": entry.request,
        "verb": entry.verb,
        "count": entry.count,
        "documents": b"".join(map(bytes.fromhex, entry.documents)),
        "labels_before": json.dumps(entry.labels_before, ensure_ascii=False),
        "labels_after": json.dumps(entry.labels_after, ensure_ascii=False),
        "hash": bytes.fromhex(entry.hash),
        **({"key": key} if key else {}),
    }


class WriteEntry(NamedTuple):
    """What one entry says about written documents: the verb, their ids, and their labels before and after in JSON."""

    verb: Verb
    documents: Sequence[str]
    before: Sequence[str]
    after: Sequence[str]


def list_write_entries(
    labels: Mapping[str, str], before: Mapping[str, str], verb: Verb = "write"
) -> Iterator[WriteEntry]:
    """Yield the entries of written documents: one for each change of labels, and one for all others.

    labels: those of the written documents by id, in JSON.
    before: those of documents that were stored already.
    """
    relabelled = dict[tuple[str, str], list[str]]()
    for id_, new in labels.items():
        if before.get(id_, new) != new:
            relabelled.setdefault((before[id_], new), []).append(id_)
    changed = {id_ for ids in relabelled.values() for id_ in ids}
    if kept := [id_ for id_ in labels if id_ not in changed]:
        known = [before[id_] for id_ in kept if id_ in before]
        yield WriteEntry(verb, kept, known, [labels[id_] for id_ in kept])
    yield from (WriteEntry("relabel", ids, [old], [new]) for (old, new), ids in relabelled.items())


def read_entry(row: Sequence[Any]) -> AuditEntry:
    """Return the entry of a row of the query `audit`; a row of the log of keys has its key as another column."""
    number, at, author, request, verb, count, documents, before, after, hash_, *key = row
    return AuditEntry(
        number,
        EPOCH + at * MICROSECOND,
        author,
        request,
        verb,
        count,
        tuple(documents[start : start + 16].hex() for start in range(0, len(documents), 16)),
        tuple(json.loads(before)),
        tuple(json.loads(after)),
        hash_.hex(),
        *key,
    )
