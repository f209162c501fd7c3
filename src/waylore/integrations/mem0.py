"""mem0's `Memory` and `MemoryClient` over an open `Waylore`, for programs that switch. mem0 is not needed.

A message is a turn, `run_id` is the session, and no language model is called. An id is the id of a document followed by
its user, because Waylore reads the memories of a user only for that user. An update keeps the id. See
docs/how-to/switch.md for the differences.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any, Self

from waylore.engine.arguments import MAX_TOP_K
from waylore.engine.waylore import Waylore
from waylore.errors import ArgumentError, NotFound
from waylore.indexing.conversations.messages import to_messages, to_time
from waylore.integrations.memories import (
    CREATED,
    EXPIRES,
    HISTORY,
    ID,
    SCOPES,
    Item,
    Results,
    check_scopes,
    describe,
    describe_hit,
    flatten,
    get_times,
    list_changes,
    make_id,
    read_condition,
    take_scopes,
    to_day,
)
from waylore.integrations.unused import UnusedArguments, join_passages
from waylore.types.identity import identity, is_id
from waylore.types.knowledge import Document, IndexedDocument
from waylore.types.messages import Message
from waylore.types.search import Filter, Hit

PAGE = 1_000  # documents in one page of a list
NO_USER = "selects only memories without a user, because user_id is missing"
UNSET: Any = object()


class Memory:
    """The memories of a collection, with the methods of mem0's `Memory`."""

    def __init__(self, memory: Waylore) -> None:
        if not isinstance(memory, Waylore):
            raise ArgumentError(f"memory must be an open Waylore, got {type(memory).__name__}; use Waylore.open(url)")
        self._memory = memory
        self._unused = UnusedArguments()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open a collection by the arguments of `Waylore.open` under the key `waylore`; mem0's keys have no effect."""
        own = config_dict.get("waylore")
        if not isinstance(own, Mapping) or "url" not in own:
            raise ArgumentError(
                'config_dict must have the key "waylore", such as {"waylore": {"url": "memory.waylore"}}'
            )
        made = cls(Waylore.open(**own))
        made._unused.report("from_config", {key: True for key in config_dict if key != "waylore"})
        return made

    def add(
        self,
        messages: str | Mapping[str, Any] | list[Any],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool | None = None,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> Results:
        """Store messages, each as a memory, and return them with the event ADD, or NONE if they were already stored.

        timestamp: when they were said, as Unix seconds, a datetime or ISO text; None means now.
        expiration_date: the last day on which a search finds them.
        """
        self._unused.report("add", {"infer": infer, "memory_type": memory_type, "prompt": prompt})
        user, agent, session = check_scopes(user_id, agent_id, run_id)
        said = [message for message in to_messages(messages) if not message.is_tool]
        about = {**(metadata or {}), EXPIRES: to_day(expiration_date)}
        began = self._memory.now()
        report = self._memory.remember(
            said, user=user, agent=agent, session=session, at=to_time(timestamp, "timestamp"), metadata=about
        )
        found = [self._memory.get(id_, user=user).document for id_ in report.documents]
        new = {each.id for each in found if report.new and (not report.known or each.recorded_at >= began)}
        return {
            "results": [
                {"id": make_id(document), "memory": message.content, "event": "ADD" if document.id in new else "NONE"}
                for document, message in zip(found, said, strict=True)
            ]
        }

    def get(self, memory_id: str) -> Item | None:
        """Return a memory, or None if there is none."""
        found = self._find(memory_id)
        return None if found is None else describe(found.document, found.passages[0], join_passages(found))

    def get_all(
        self, *, filters: Mapping[str, Any] | None = None, top_k: int = 20, show_expired: bool = False, **scope: Any
    ) -> Results:
        """Return the memories of a scope. Memories of all users belong to no scope."""
        where = self._to_filter("get_all", filters, take_scopes("get_all", scope))
        found = list[Item]()
        for document in self._list_documents(where):
            if len(found) == top_k:
                break
            if show_expired or not self._is_expired(document):
                indexed = self._memory.get(document.id, user=document.user)
                found.append(describe(document, indexed.passages[0], join_passages(indexed)))
        return {"results": found}

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **scope: Any,
    ) -> Results:
        """Return the memories that fit a question, best first, also memories without a user.

        threshold: minimum cosine of a memory and the question. Without an embedder it has no effect.
        explain: also return the parts of the score, as `score_details`.
        reference_date: "last week" is relative to this day; memories of later days are left out.
        """
        self._unused.report("search", {"rerank": rerank})
        where = self._to_filter("search", filters, take_scopes("search", scope))
        number, wanted = top_k, list[Hit]()
        while len(wanted) < top_k:
            result = self._memory.search(
                query,
                top_k=number,
                where=where,
                min_similarity=threshold,
                as_of=to_time(reference_date, "reference_date"),
            )
            best = {hit.document.id: hit for hit in reversed(result.hits)}
            hits = sorted(best.values(), key=result.hits.index)
            wanted = [hit for hit in hits if show_expired or not self._is_expired(hit.document)]
            if len(result.hits) < number or number == MAX_TOP_K:
                break
            number = min(number * 4, MAX_TOP_K)
        return {"results": [describe_hit(hit, explain=explain) for hit in wanted[:top_k]]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text or the metadata of a memory. It keeps its id, and `history` has the earlier text."""
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is UNSET:
            raise ArgumentError("text, metadata or expiration_date must be given")
        found = self._require(memory_id)
        document, passage, old = found.document, found.passages[0], join_passages(found)
        new = old if text is None else text
        changes = [*list_changes(document), json.dumps([old, new, self._memory.now().astimezone(UTC).isoformat()])]
        about = {**document.metadata, **(metadata or {}), HISTORY: changes, ID: make_id(document)}
        about[CREATED] = get_times(document)[0]
        if expiration_date is not UNSET:
            about[EXPIRES] = to_day(expiration_date)
        message = Message(passage.role or "user", new, passage.speaker, id=f"{about[ID]}#{len(changes)}")
        scope = {"user": document.user, "agent": document.agent, "session": document.session}
        self._memory.remember([message], metadata=about, labels=document.labels, tools=True, **scope)
        self._memory.forget(document.id, user=document.user)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory, with its history."""
        document = self._require(memory_id).document
        self._memory.forget(document.id, user=document.user)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget the memories of a scope. A scope without a user has only memories without a user."""
        user, agent, session = check_scopes(user_id, agent_id, run_id)
        if not user:
            self._unused.report("delete_all", {"agent_id": agent or None, "run_id": session or None}, NO_USER)
        self._memory.forget(user=user, agent=agent, session=session)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[Item]:
        """Return the changes of a memory, oldest first. A deleted memory has none."""
        found = self._find(memory_id)
        if found is None:
            return []
        document, passage = found.document, found.passages[0]
        created = get_times(document)[0]
        changes = [json.loads(change) for change in list_changes(document)]
        first = changes[0][0] if changes else join_passages(found)
        return [
            {
                "id": identity("change", memory_id, str(number)),
                "memory_id": memory_id,
                "old_memory": old,
                "new_memory": new,
                "event": "UPDATE" if number else "ADD",
                "created_at": created,
                "updated_at": updated,
                "is_deleted": False,
                "actor_id": passage.speaker or None,
                "role": passage.role or None,
            }
            for number, (old, new, updated) in enumerate([(None, first, created), *changes])
        ]

    def reset(self) -> None:
        """Forget everything that the collection has, of all users."""
        users: dict[str, list[str]] = {}
        lines = self._memory.export_lines()
        next(lines)  # the header
        for line in lines:
            document = json.loads(line)["document"]
            users.setdefault(document.get("user", ""), []).append(document["id"])
        for user, ids in users.items():
            self._memory.forget(ids, user=user)

    def close(self) -> None:
        """Close the collection."""
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self, memory_id: str) -> IndexedDocument | None:
        """Return a memory by its id, also after an update, which replaces its document."""
        id_, _, user = memory_id.partition(":")
        if not is_id(id_):
            return None
        try:
            return self._memory.get(id_, user=user)
        except NotFound:
            listed = self._memory.documents(where={ID: memory_id}, user=user, limit=1)
            return self._memory.get(listed[0].id, user=user) if listed else None

    def _require(self, memory_id: str) -> IndexedDocument:
        found = self._find(memory_id)
        if found is None:
            raise ArgumentError(f"no memory {memory_id!r:.80}; get_all and search return ids")
        return found

    def _to_filter(self, method: str, filters: Mapping[str, Any] | None, scope: Mapping[str, Any]) -> Filter:
        """Return mem0's filters as a `Filter`. They must name a scope."""
        conditions = {**flatten(filters or {}), **scope}
        user, agent, session = check_scopes(*(conditions.pop(name, None) for name in SCOPES))
        if not user:
            self._unused.report(method, {"agent_id": agent or None, "run_id": session or None}, NO_USER)
        values = {key: read_condition(key, value) for key, value in conditions.items()}
        return Filter(metadata=values, user=user, agent=agent, session=session)

    def _list_documents(self, where: Filter) -> Iterator[Document]:
        """Yield the documents of a filter; with a user, only that user's documents."""
        page: tuple[Document, ...] = ()
        while page := self._memory.documents(where=where, after=page[-1] if page else None, limit=PAGE):
            yield from (document for document in page if document.user == where.user)

    def _is_expired(self, document: Document) -> bool:
        last = document.metadata.get(EXPIRES)
        return isinstance(last, str) and last < self._memory.now().astimezone(UTC).date().isoformat()


class MemoryClient(Memory):
    """The methods of mem0's cloud client, whose options may be a dict or keywords."""

    def add(self, messages: Any, options: Mapping[str, Any] | None = None, **kwargs: Any) -> Results:
        """Remember messages; see `Memory.add`."""
        known = {**(options or {}), **kwargs}
        taken = {"metadata", "timestamp", "expiration_date", "infer", *SCOPES}
        self._unused.report("add", {name: value for name, value in known.items() if name not in taken})
        return super().add(messages, **{name: value for name, value in known.items() if name in taken})

    def search(self, query: str, options: Mapping[str, Any] | None = None, **kwargs: Any) -> Results:
        """Search memories; see `Memory.search`."""
        return super().search(query, **{**(options or {}), **kwargs})

    def get_all(self, options: Mapping[str, Any] | None = None, **kwargs: Any) -> Results:
        """Return the memories of a scope; see `Memory.get_all`."""
        return super().get_all(**{**(options or {}), **kwargs})

    def delete_users(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, str]:
        """Forget the memories of a user, an agent or a run."""
        self._unused.report("delete_users", {"app_id": app_id})
        self.delete_all(user_id, agent_id, run_id)
        return {"message": "Entity deleted successfully."}
