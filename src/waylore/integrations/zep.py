"""Zep's client over an open `Waylore`, for programs that switch: `Zep(memory).user`, `.thread` and `.graph`.

It has the methods of zep-cloud 3, which need not be installed. A thread is a session, a message a turn, an edge a fact,
and no language model is called. Records of users and threads are documents of a separate user, `zep:records`, so no
search of another user finds them. See docs/how-to/switch.md for the differences.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from waylore.engine.waylore import Waylore
from waylore.errors import ArgumentError, NotFound
from waylore.integrations import records
from waylore.integrations.graph import ZepGraph
from waylore.integrations.records import (
    ThreadContext,
    ThreadMessage,
    ThreadMessages,
    ThreadRecord,
    UserRecord,
    read_field,
)
from waylore.integrations.unused import UnusedArguments, join_passages
from waylore.lengths import MAX_QUERY
from waylore.types.knowledge import Document
from waylore.types.search import Filter

RECORDS = "zep:records"  # user of the records of users and threads
PAGE = 1_000
CONTEXT_MESSAGES = 2  # last messages of a thread that its context is about


class Zep:
    """The members of Zep's client: `user`, `thread` and `graph`."""

    def __init__(self, memory: Waylore) -> None:
        if not isinstance(memory, Waylore):
            raise ArgumentError(f"memory must be an open Waylore, got {type(memory).__name__}; use Waylore.open(url)")
        kept, unused = Records(memory), UnusedArguments()
        self.user = ZepUsers(memory, kept, unused)
        self.thread = ZepThreads(memory, kept, unused)
        self.graph = ZepGraph(memory, unused)


class Records:
    """The records of users and threads, each a document with an address."""

    def __init__(self, memory: Waylore) -> None:
        self._memory = memory

    def write(self, kind: str, name: str, fields: Mapping[str, Any]) -> None:
        """Write a record, or replace it."""
        about = {"user_id": fields["user_id"], "fields": json.dumps(fields, default=str)}
        self._memory.add(f"{kind} {name}", uri=_make_address(kind, name), metadata=about, source="system", user=RECORDS)

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return the fields of a record, or None if there is none."""
        address = _make_address(kind, name)
        listed = self._memory.documents(under=address, user=RECORDS, limit=1)
        return _read_fields(listed[0]) if listed and listed[0].uri == address else None

    def require(self, kind: str, name: str) -> dict[str, Any]:
        """Return the fields of a record."""
        found = self.find(kind, name)
        if found is None:
            remedy = "user.add(user_id=…)" if kind == "user" else "thread.create(thread_id=…, user_id=…)"
            raise NotFound(f"no {kind} {name!r:.60}; call {remedy} first")
        return found

    def list_of_user(self, kind: str, user: str) -> list[dict[str, Any]]:
        """Return the records of a user."""
        own = Filter(user=RECORDS, metadata={"user_id": user})
        return [_read_fields(each) for each in _list_documents(self._memory, own, _make_address(kind, ""))]

    def delete(self, kind: str, name: str) -> None:
        """Forget a record."""
        self._memory.forget(_make_address(kind, name), user=RECORDS)


class ZepUsers:
    """`zep.user`: users and their threads."""

    def __init__(self, memory: Waylore, kept: Records, unused: UnusedArguments) -> None:
        self._memory, self._records, self._unused = memory, kept, unused

    def add(
        self,
        *,
        user_id: str,
        disable_default_ontology: bool | None = None,
        email: str | None = None,
        first_name: str | None = None,
        last_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        time_zone: str | None = None,
    ) -> UserRecord:
        """Record a user. An existing user is replaced."""
        self._unused.report("user.add", {"disable_default_ontology": disable_default_ontology})
        made = UserRecord(
            user_id=user_id,
            created_at=records.format_time(self._memory.now()),
            email=email,
            first_name=first_name,
            last_name=last_name,
            metadata=metadata,
            time_zone=time_zone,
        )
        self._records.write("user", user_id, asdict(made))
        return made

    def get(self, user_id: str) -> UserRecord:
        """Return a user."""
        return UserRecord(**self._records.require("user", user_id))

    def update(self, user_id: str, **fields: Any) -> UserRecord:
        """Change fields of a user; None leaves a field unchanged."""
        given = {name: value for name, value in fields.items() if value is not None}
        made = UserRecord(**{**self._records.require("user", user_id), **given})
        self._records.write("user", user_id, asdict(made))
        return made

    def delete(self, user_id: str) -> dict[str, str]:
        """Forget a user with all threads, messages and facts."""
        self._records.require("user", user_id)
        self._memory.forget(user=user_id)
        for thread in self._records.list_of_user("thread", user_id):
            self._records.delete("thread", thread["thread_id"])
        self._records.delete("user", user_id)
        return {"message": "OK"}

    def get_threads(self, user_id: str) -> list[ThreadRecord]:
        """Return the threads of a user, oldest first."""
        found = [ThreadRecord(**fields) for fields in self._records.list_of_user("thread", user_id)]
        return sorted(found, key=lambda thread: (thread.created_at, thread.thread_id))


class ZepThreads:
    """`zep.thread`: threads and their messages."""

    def __init__(self, memory: Waylore, kept: Records, unused: UnusedArguments) -> None:
        self._memory, self._records, self._unused = memory, kept, unused

    def create(self, *, thread_id: str, user_id: str) -> ThreadRecord:
        """Record a thread of a user. An existing thread of this user is returned."""
        known = self._records.find("thread", thread_id)
        if known and known["user_id"] != user_id:
            raise ArgumentError(f"thread_id {thread_id!r:.60} is used already; choose another one")
        created = records.format_time(self._memory.now())
        made = ThreadRecord(**(known or {"thread_id": thread_id, "user_id": user_id, "created_at": created}))
        if not known:
            self._records.write("thread", thread_id, asdict(made))
        return made

    def add_messages(
        self,
        thread_id: str,
        *,
        messages: Sequence[Any],
        ignore_roles: Sequence[str] | None = None,
        return_context: bool | None = None,
        strict_ontology: bool | None = None,
    ) -> ThreadContext:
        """Store messages of a thread, and return their ids, with a context for the last one on request.

        messages: dicts, or objects with the fields of Zep's `Message`.
        ignore_roles: messages with these roles are not stored.
        """
        self._unused.report("thread.add_messages", {"strict_ontology": strict_ontology})
        user = self._records.require("thread", thread_id)["user_id"]
        kept = [each for each in messages if str(read_field(each, "role")) not in (ignore_roles or ())]
        ids = list[str]()
        for about, some in groupby(kept, key=lambda each: read_field(each, "metadata")):
            said = [records.to_message(each) for each in some]
            ids += self._memory.remember(said, user=user, session=thread_id, metadata=about, tools=True).documents
        last = str(read_field(kept[-1], "content") or "") if kept else ""
        context = self._make_context(last, user) if return_context and last else None
        return ThreadContext(context=context, message_uuids=ids)

    add_messages_batch = add_messages

    def get(
        self, thread_id: str, *, limit: int | None = None, cursor: int | None = None, lastn: int | None = None
    ) -> ThreadMessages:
        """Return the messages of a thread, oldest first: all, the last `lastn`, or `limit` from `cursor` on."""
        thread = self._records.require("thread", thread_id)
        every = self._list_messages(thread_id, thread["user_id"])
        start = cursor or 0
        chosen = every[-lastn:] if lastn else every[start : None if limit is None else start + limit]
        return ThreadMessages(
            messages=chosen,
            row_count=len(chosen),
            total_count=len(every),
            user_id=thread["user_id"],
            thread_created_at=thread["created_at"],
        )

    def get_user_context(self, thread_id: str, *, template_id: str | None = None) -> ThreadContext:
        """Return passages about the user that are relevant to the last messages of a thread, as text for a model."""
        self._unused.report("thread.get_user_context", {"template_id": template_id})
        user = self._records.require("thread", thread_id)["user_id"]
        last = self._list_messages(thread_id, user)[-CONTEXT_MESSAGES:]
        question = "\n".join(message.content for message in last)
        return ThreadContext(context=self._make_context(question, user) if question else "")

    def delete(self, thread_id: str) -> dict[str, str]:
        """Forget a thread with its messages, and the facts that only they state."""
        user = self._records.require("thread", thread_id)["user_id"]
        self._memory.forget(user=user, session=thread_id)
        self._records.delete("thread", thread_id)
        return {"message": "OK"}

    def _make_context(self, question: str, user: str) -> str:
        return self._memory.context(self._memory.search(question[-MAX_QUERY:], user=user)).text

    def _list_messages(self, thread_id: str, user: str) -> list[ThreadMessage]:
        listed = _list_documents(self._memory, Filter(user=user, session=thread_id))
        turns = [self._memory.get(each.id, user=user) for each in listed]
        turns = [turn for turn in turns if turn.passages[0].role]
        turns.sort(key=lambda turn: (turn.passages[0].position, turn.document.id))
        return [records.make_message(turn.document, turn.passages[0], join_passages(turn)) for turn in turns]


def _make_address(kind: str, name: str) -> str:
    return f"zep:{kind}/{name}"


def _read_fields(document: Document) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(str(document.metadata["fields"]))
    return fields


def _list_documents(memory: Waylore, where: Filter, under: str = "") -> Iterator[Document]:
    """Yield the documents of the user of a filter, page by page."""
    page: tuple[Document, ...] = ()
    while page := memory.documents(under=under, where=where, after=page[-1] if page else None, limit=PAGE):
        yield from (document for document in page if document.user == where.user)
