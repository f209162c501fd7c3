"""A running service with documents of every set of labels and keys of every kind, and what an attempt did to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from attacks.model import Rights
from attacks.ways import HERE, Call, Target, Way
from service.test_oidc import Provider
from surfaces.serving import create_client, make_settings, read_json, start_app
from waylore import Filter, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.service.keys import make_key, mark_revoked
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import Key, Registry, Scope

LABEL_SETS = {"public": "", "red": "red", "hr": "hr", "mixed": "red blue", "others": "hr blue"}
USERS = ("mara", "sol")  # each has a target without labels
READERS = [(frozenset(labels.split()), "") for labels in ("", "red", "hr", "blue", "red blue", "hr blue")]
READERS += [(frozenset(), user) for user in USERS]
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
RED, BOTH, NONE = frozenset({"red"}), frozenset({"red", "blue"}), frozenset[str]()
KINDS: dict[str, Rights] = {
    "reader": Rights("read"),
    "writer": Rights("write"),
    "admin": Rights("admin"),
    "red reader": Rights("read", RED, "conversation"),
    "red writer": Rights("write", RED, "conversation"),
    "red admin": Rights("admin", RED, "conversation"),
    "red and blue writer": Rights("write", BOTH, "conversation"),
    "red editor": Rights("write", RED, "user_edit"),
    "writer of conversations": Rights("write", None, "conversation"),
    "public reader": Rights("read", NONE, "conversation"),
    "public writer of an earlier release": Rights("write", NONE, "conversation"),
    "token without labels": Rights("write", NONE, "conversation"),
    "token with a label": Rights("write", RED, "conversation"),
    "token of an administrator without labels": Rights("admin", NONE, "conversation"),
    "reader of mara": Rights("read", None, "conversation", "mara"),
    "writer of mara": Rights("write", None, "conversation", "mara"),
    "editor of mara": Rights("write", None, "user_edit", "mara"),
    "admin of mara": Rights("admin", None, "conversation", "mara"),
    "red writer of sol": Rights("write", RED, "conversation", "sol"),
    "admin of another collection": Rights(""),
    "revoked": Rights(""),
    "nobody": Rights(""),
}
LASTING = {"deleteCollection", "putCollection", "startJob", "rotateKey", "revokeKey"}  # change more than documents


@dataclass
class World:
    """The service, the owner's own view of the store, the targets, and a client for each kind of key."""

    owner: Waylore
    registry: Registry
    admin: httpx.AsyncClient
    backup: Path
    targets: list[Target] = field(default_factory=list)
    clients: dict[str, httpx.AsyncClient] = field(default_factory=dict)
    uploaders: dict[str, httpx.AsyncClient] = field(default_factory=dict)  # of each user
    keys: list[Key] = field(default_factory=list)
    before: dict[str, str] = field(default_factory=dict)  # the export by document
    facts: list[list[Any]] = field(default_factory=list)  # of all targets, by reader

    async def attempt(self, way: Way, kind: str, target: Target) -> list[str]:
        """Attack once, and return what went wrong. The world is as before afterwards."""
        rights, client = KINDS[kind], self.clients[kind]
        response = await _send(client, way.build(target, rights))
        text = response.text + await _wait_for_job(client, response)
        after = await asyncio.to_thread(self._export)
        problems = [*self._find_leaks(way, rights, target, text), *self._find_changes(rights, after)]
        problems += [
            *_find_stolen_keys(way, rights, target, response),
            *self._find_failures(way, rights, target, after),
        ]
        if after != self.before:
            problems += await asyncio.to_thread(lambda: [*self._find_silenced(rights, after)])
        if after != self.before or way.of in LASTING:
            await self._restore(after)
        return [f"{way.name} by {kind} against {target.name}: {problem}" for problem in problems]

    # -- what a key may not see or change --------------------------------------------------------------

    def _find_leaks(self, way: Way, rights: Rights, target: Target, text: str) -> Iterator[str]:
        for other in self.targets:
            is_shown = other.secret in text and not (way.names_secret and other is target)
            may_manage = way.of == "listKeys" and rights.may_manage(_get_rights(other))
            if is_shown and not rights.may_read(other.labels, other.user) and not may_manage:
                yield f"shows the secret of {other.name}"
        if target.forgotten in text and (rights.labels is not None or rights.user):
            yield f"shows a receipt of {target.name}, which the owner got"

    def _find_changes(self, rights: Rights, after: dict[str, str]) -> Iterator[str]:
        for id_ in self.before.keys() | after.keys():
            old, new = self.before.get(id_), after.get(id_)
            if old != new and old is not None:
                document = json.loads(old)["document"]
                if not rights.may_change(frozenset(document["labels"]), document.get("user", "")):
                    yield f"changes {document['uri']} of {document['labels']}"
            if old != new and new is not None:
                yield from _find_wrong_writes(rights, json.loads(new))

    def _find_silenced(self, rights: Rights, after: dict[str, str]) -> Iterator[str]:
        """Yield readers who see nothing of what the key writes and other facts, and facts lost to a lower source."""
        for reader, facts in zip(READERS, self.facts, strict=True):
            if rights.is_unseen_by(*reader) and self._list_facts(*reader) != facts:
                yield f"changes the facts of a reader with {reader}"
        known = {fact[0] for user in ("", *USERS) for fact in self._list_facts(None, user)}
        for target in self.targets:
            is_unchanged = after.get(target.document) == target.line
            if is_unchanged and not rights.may_trust("file") and target.fact not in known:
                yield f"silences {target.fact}"

    def _find_failures(self, way: Way, rights: Rights, target: Target, after: dict[str, str]) -> Iterator[str]:
        """Yield what an attempt did not do, although it may: a suite that is refused everything shows nothing."""
        labels = rights.choose_labels(way.get_labels(target, rights))
        named = target.user if way.names_user else ""
        user = named or rights.user
        may_write = rights.may_change(labels, user) and rights.may_name(named)
        is_own = user == target.user and rights.may_change(target.labels, user)
        if target.user and way.of in ("uploadFile", "importFile"):
            is_own = False  # the address of a file has no user, so it is another document
        if way.changes and may_write and is_own and after.get(target.document) == target.line:
            yield "does not change its own document"
        if way.adds and may_write and after == self.before:
            yield "adds nothing"

    # -- the state of the world ------------------------------------------------------------------------

    def _export(self) -> dict[str, str]:
        _, *lines = self.owner.export_lines()
        return {json.loads(line)["document"]["id"]: line for line in lines}

    def _list_facts(self, reader: frozenset[str] | None, user: str) -> list[Any]:
        where = Filter(labels=reader, user=user)
        facts = [fact for t in self.targets for fact in self.owner.facts(t.subject, where=where)]
        return sorted((str(f), f.status, f.source, f.statement, f.weight) for f in facts)

    async def _restore(self, after: dict[str, str]) -> None:
        """Make the documents, the collection and the keys as they were."""
        await self.admin.put(HERE, json={})
        for key in self.keys:
            self.registry.set_key(key)
        for id_, line in after.items():
            if id_ not in self.before:
                user = json.loads(line)["document"].get("user", "")
                await asyncio.to_thread(self.owner.forget, id_, user=user)
        await asyncio.to_thread(self.owner.import_, self.backup)
        assert await asyncio.to_thread(self._export) == self.before

    async def fill(self) -> None:
        """Add the targets, and remember how everything is."""
        sets = [*((name, words, "") for name, words in LABEL_SETS.items()), *((user, "", user) for user in USERS)]
        for number, (name, words, user) in enumerate(sets):
            target = Target(name, frozenset(words.split()), f"Quartz{number}{number}x", user=user)
            self.targets.append(await self._add_target(target))
        self.owner.export(self.backup)
        self.before = self._export()
        self.targets = [replace(t, line=self.before[t.document]) for t in self.targets]
        self.facts = [self._list_facts(*reader) for reader in READERS]

    async def _add_target(self, target: Target) -> Target:
        labels, secret, user = target.labels, target.secret, target.user
        uploader = self.uploaders.get(user, self.admin)
        document = self.owner.add(
            f"{target.subject} works at {secret}. The vault of {target.name} holds {secret}.",
            title=f"About {secret}",
            uri=target.address,
            labels=labels,
            metadata={"of": target.name, "code": secret},
            facts=[(target.subject, "works at", secret)],
            user=user,
        )
        self.owner.add(f"A row with {secret}.", uri=f"{target.table}#row=1", labels=labels, user=user)
        said = {"role": "user", "content": f"The vault holds {secret}.", "at": "2026-03-01"}
        self.owner.remember(said, user=user, labels=labels, session="s1")
        query = "&".join(f"labels={label}" for label in sorted(labels))
        started = await uploader.put(f"{HERE}/uploads/{secret}.md?{query}", content=f"# {secret}\n\nKept.\n".encode())
        await _wait_for_job(uploader, started)
        rights: dict[str, Any] = {"collections": ["default"], "labels": labels or None, "user": user or None}
        key, _ = make_key(f"key of {secret}", scope="write", **rights)
        self.registry.set_key(key)
        self.keys.append(key)
        passage = self.owner.get(document, user=user).passages[0].id
        forgotten = self.owner.add(f"Forget {secret}.", labels=labels, user=user)
        receipt = read_json(await self.admin.delete(f"{HERE}/documents/{forgotten}?user={user}"))["id"]
        made = {"job": started.json()["id"], "key": key.id, "receipt": receipt, "forgotten": forgotten}
        return replace(target, document=document, passage=passage, **made)


def _find_wrong_writes(rights: Rights, written: dict[str, Any]) -> Iterator[str]:
    labels = frozenset(written["document"]["labels"])
    if not rights.may_change(labels, written["document"].get("user", "")):
        yield f"writes a document with {sorted(labels)}"
    sources = {written["document"]["source"], *(fact.get("source", "file") for fact in written["facts"])}
    if not all(map(rights.may_trust, sources)):
        yield f"writes as {sorted(sources)}"


def _find_stolen_keys(way: Way, rights: Rights, target: Target, response: httpx.Response) -> Iterator[str]:
    wanted = _get_rights(target)
    if way.name == "create a key that edits":
        wanted = replace(wanted, max_source="user_edit")
    elif way.of == "createKey":
        wanted = replace(wanted, max_source="conversation")
    if way.of == "createKey":
        wanted = replace(wanted, user=target.user or rights.user)
    is_done = way.of in ("createKey", "rotateKey", "revokeKey") and response.status_code < 300
    if is_done and not rights.may_manage(wanted):
        yield f"gets a key with {sorted(target.labels) or 'all labels'}"


def _get_rights(target: Target) -> Rights:
    """Return the rights of the target's key."""
    labels = target.labels or None
    return Rights("write", labels, "conversation" if labels or target.user else "user_edit", target.user)


async def _send(client: httpx.AsyncClient, call: Call) -> httpx.Response:
    if call.content is not None:
        headers = {"Content-Type": "application/octet-stream"}
        return await client.request(call.method, call.path, content=call.content, headers=headers)
    headers = MCP_HEADERS if call.path == "/mcp" else {}
    return await client.request(call.method, call.path, json=call.body, headers=headers)


async def _wait_for_job(client: httpx.AsyncClient, response: httpx.Response) -> str:
    if response.status_code != 202:
        return ""
    path = f"{HERE}/jobs/{response.json()['id']}"
    while not (job := read_json(await client.get(path)))["ended_at"]:
        await asyncio.sleep(0.002)
    return json.dumps(job)


def _create_tokens(registry: Registry, provider: Provider) -> dict[str, str]:
    """Return a token for each kind of key."""
    tokens = {
        "token without labels": provider.token(),
        "token with a label": provider.token(waylore_labels=["red"]),
        "token of an administrator without labels": provider.token(scope="admin", waylore_labels=None),
        "nobody": "",
    }
    for kind, rights in KINDS.items():
        if kind not in tokens:
            tokens[kind] = _create_token(registry, kind, rights)
    return tokens


def _create_token(registry: Registry, kind: str, rights: Rights) -> str:
    scope: Scope = "admin" if not rights.scope else rights.scope  # type: ignore[assignment]  # one of the three
    collections = ["other"] if "another" in kind else ["default"]
    user = rights.user or None
    key, token = make_key(kind, collections=collections, scope="read", labels=rights.labels, user=user)
    key = replace(key, scope=scope)  # a key that writes with no labels cannot be created any more
    if key.max_source != rights.max_source:
        key = replace(key, max_source=rights.max_source)  # type: ignore[arg-type]  # one of the four
    registry.set_key(mark_revoked(key) if kind == "revoked" else key)
    return token


@asynccontextmanager
async def open_world(store: str, folder: Path, provider: Provider) -> AsyncIterator[World]:
    """Start the service over a store, and fill it."""
    of = make_settings(store, oidc={"issuer": provider.issuer}, http={"upload_dir": folder / "spool"})
    embedder = HashingEmbedder(384, quiet=True)
    with closing(open_registry(store)) as registry, Waylore.open(store, embedder=embedder) as owner:
        tokens = _create_tokens(registry, provider)
        key, token = make_key("the owner", scope="admin")
        registry.set_key(key)
        async with start_app(of) as app, create_client(app, token) as admin:
            world = World(owner, registry, admin, folder / "backup.jsonl")
            world.clients = {kind: create_client(app, token) for kind, token in tokens.items()}
            world.uploaders = {user: create_client(app, _create_user_token(registry, user)) for user in USERS}
            await world.fill()
            yield world
            for client in (*world.clients.values(), *world.uploaders.values()):
                await client.aclose()


def _create_user_token(registry: Registry, user: str) -> str:
    key, token = make_key(f"uploader of {user}", collections=["default"], scope="write", user=user)
    registry.set_key(key)
    return token
