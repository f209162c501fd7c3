"""Test users over HTTP: memory of conversations, the scope of each route, and keys that are bound to a user."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from databases import create_database
from surfaces.serving import create_client, make_settings, open_client, read_json, start_app
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.service.keys import make_key
from waylore.service.registry.open import open_registry
from waylore.surfaces import wire

NOTES = "/v1/collections/default"
SECRET = "Xylophone"  # a word that only Mara may read
SAID: list[dict[str, Any]] = [
    {"role": "user", "content": f"My {SECRET} is in Oslo.", "at": "2026-03-01T10:00:00Z"},
    {"role": "assistant", "content": [{"type": "text", "text": "Noted."}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]},
    {"role": "tool", "content": "Nothing.", "tool_call_id": "call_1", "refusal": None},
]
SESSION = {"user": "mara", "agent": "butler", "session": "s1"}


def create_user_token(store: str, user: str, scope: str = "admin") -> str:
    key, token = make_key(f"key of {user}", scope=scope, user=user)  # type: ignore[arg-type]  # one of the three
    with closing(open_registry(store)) as registry:
        registry.set_key(key)
    return token


@dataclass(frozen=True, slots=True)
class World:
    """A service with a document, a conversation, a job and a key of Mara, and clients of an owner, Mara and Sol."""

    app: FastAPI
    store: str
    owner: httpx.AsyncClient
    mara: httpx.AsyncClient
    sol: httpx.AsyncClient
    names: dict[str, str]

    def export(self) -> list[str]:
        with Waylore.open(self.store, embedder=HashingEmbedder(quiet=True)) as memory:
            return sorted(memory.export_lines())


@pytest.fixture(params=["sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    store = create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")
    key, token = make_key("owner", scope="admin")
    with closing(open_registry(store)) as registry:
        registry.set_key(key)
    tokens = [token, create_user_token(store, "mara"), create_user_token(store, "sol")]
    async with start_app(make_settings(store, http={"upload_dir": tmp_path / "spool"})) as app:
        owner, mara, sol = (create_client(app, each) for each in tokens)
        names = await fill(owner, mara)
        yield World(app, store, owner, mara, sol, names)
        for client in (owner, mara, sol):
            await client.aclose()


async def fill(owner: httpx.AsyncClient, mara: httpx.AsyncClient) -> dict[str, str]:
    """Add what Mara has, and return the ids."""
    read_json(await owner.post(f"{NOTES}/documents", json={"text": "The canteen opens at nine.", "uri": "open.md"}))
    fact = {"subject": "Mara", "predicate": "owns", "object": SECRET}
    said = {"text": f"The {SECRET} of Mara.", "uri": "mine.md", "user": "mara", "facts": [fact]}
    document = read_json(await owner.post(f"{NOTES}/documents", json=said))["id"]
    read_json(await mara.post(f"{NOTES}/remember", json={"messages": SAID, "agent": "butler", "session": "s1"}))
    job = read_json(await mara.put(f"{NOTES}/uploads/{SECRET}.md", content=SECRET.encode()))["id"]
    while not read_json(await mara.get(f"{NOTES}/jobs/{job}"))["ended_at"]:
        await asyncio.sleep(0.02)
    found = read_json(await mara.post(f"{NOTES}/search", json={"query": SECRET}))
    key = read_json(await mara.post("/v1/keys", json={"name": f"key of {SECRET}", "collections": ["*"]}))["info"]["id"]
    gone = read_json(await mara.post(f"{NOTES}/documents", json={"text": "Forget this."}))["id"]
    receipt = read_json(await mara.delete(f"{NOTES}/documents/{gone}"))["id"]
    passage = found["hits"][0]["passage"]["id"]
    return {"document": document, "passage": passage, "job": job, "key": key, "receipt": receipt}


LIFE = (("2026-01-10", "I live in Oslo."), ("2026-03-10", "I live in Bergen now."))


@pytest.fixture
async def on_file(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_settings(tmp_path / "memory.waylore")) as made:
        yield made


# -- remember ------------------------------------------------------------------------------------------


async def test_remember_stores_turns_once(on_file: httpx.AsyncClient) -> None:
    body = SESSION | {"messages": SAID}
    answer = await on_file.post(f"{NOTES}/remember", json=body)
    assert answer.status_code == 201
    report = wire.RememberReport.model_validate_json(answer.content, strict=True)
    assert (len(report.documents), report.new, report.known) == (2, 2, 0)
    again = read_json(await on_file.post(f"{NOTES}/remember", json=body))
    assert (again["documents"], again["new"], again["known"]) == (report.documents, 0, 2)
    found = read_json(await on_file.post(f"{NOTES}/search", json={"query": SECRET, "user": "mara"}))["hits"][0]
    assert {name: found["document"][name] for name in SESSION} == SESSION
    assert {name: found["passage"][name] for name in ("speaker", "role", "text", "at")} == {
        "speaker": "mara",
        "role": "user",
        "text": SAID[0]["content"],
        "at": "2026-03-01T10:00:00Z",
    }


async def test_remember_takes_what_python_takes(on_file: httpx.AsyncClient, tmp_path: Path) -> None:
    """Compare a request with every field with the same call in Python."""
    messages = [*SAID, {"role": "Human", "content": "Bye.", "name": "Ada", "id": "m9", "created_at": 1_767_261_600}]
    more = {"at": "2026-01-01", "tools": True, "metadata": {"team": "core"}, "labels": ["staff"]}
    facts = [["Ada", "says", "bye"]]
    body = SESSION | {"messages": messages, "facts": facts} | more
    report = read_json(await on_file.post(f"{NOTES}/remember", json=body))
    with Waylore.open(tmp_path / "other.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        same = memory.remember(messages, facts=facts, **SESSION, **more).to_dict()  # type: ignore[arg-type]  # as JSON
        [last] = [each.document for each in [memory.get(same["documents"][-1], user="mara")]]
    assert report == same
    assert (report["new"], [fact["predicate"] for fact in report["facts"]][-1]) == (5, "says")
    stored = read_json(await on_file.get(f"{NOTES}/documents/{report['documents'][-1]}", params={"user": "mara"}))
    assert stored["document"]["at"] == "2026-01-01T10:00:00Z"
    assert last.at is not None
    assert last.labels == frozenset({"staff"})
    assert stored["document"]["labels"] == ["staff"]


async def test_remember_runs_once_for_an_idempotency_key(on_file: httpx.AsyncClient) -> None:
    body, headers = SESSION | {"messages": SAID}, {"Idempotency-Key": "once"}
    first, second = [await on_file.post(f"{NOTES}/remember", json=body, headers=headers) for _ in range(2)]
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["idempotency-replayed"] == "true"
    other = await on_file.post(f"{NOTES}/remember", json=body | {"user": "sol"}, headers=headers)
    assert other.status_code == 422


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "body.messages: Field required"),
        ({"messages": []}, "body.messages: List should have at least 1 item"),
        ({"messages": [{"role": "user", "text": "x"}]}, "messages[0] must have content, a string or a list of parts"),
        ({"messages": [{"role": "user", "content": "  "}]}, "messages must not be empty; pass messages with text"),
        ({"messages": [SAID[3]]}, "messages must not be empty; pass messages with text, or tools=True"),
        (
            {"messages": [{"role": "robot", "content": "x"}]},
            "body.messages.0.role: Input should be 'user', 'assistant'",
        ),
        ({"messages": [{"role": "user", "content": "x\0"}]}, "body.messages.0.content"),
        ({"messages": [{"role": "user", "content": "x", "at": "soon"}]}, "at must be"),
        ({"messages": [{"role": "user", "content": "x", "at": ""}]}, "at must be a date such as"),
        ({"messages": [{"role": "user", "content": "x", "at": True}]}, "at must be a date such as"),
        ({"messages": [{"role": "user", "content": "x", "at": -1}]}, "at must be a date such as"),
        ({"messages": [{"role": "user", "content": "x"}], "user_id": "mara"}, "unknown field user_id; use user"),
        (
            {"messages": [{"role": "user", "content": "x"}], "user": "x" * 1_001},
            "body.user: String should have at most",
        ),
        ({"messages": [{"role": "user", "content": "x" * 900_000}] * 2}, "messages have 1,800,"),
        (
            {"messages": [{"role": "user", "content": "x"}] * 1_000, "metadata": {"a": "x" * 9_999}},
            "each counted with metadata and labels; send at most 1,000,000",
        ),
    ],
)
async def test_wrong_messages_are_refused(on_file: httpx.AsyncClient, body: dict[str, Any], problem: str) -> None:
    done = await on_file.post(f"{NOTES}/remember", json=body)
    assert done.status_code == 422
    assert problem in done.json()["detail"]
    assert read_json(await on_file.get(f"{NOTES}/stats"))["documents"] == 0


# -- the scope of a request ----------------------------------------------------------------------------


async def test_each_route_reads_for_the_user_it_names(world: World) -> None:
    """Read as the owner: what belongs to Mara is shown if the request names her, and only then."""
    question = {"query": SECRET}
    posts = {"search": question, "context": question, "explain": question | {"passage": world.names["passage"]}}
    gets = {"documents": {}, f"documents/{world.names['document']}": {}, "facts": {"entity": "Mara"}}
    gets["related"] = {"entity": "Mara"}
    for user, is_shown in (("", False), ("sol", False), ("mara", True)):
        answers = [
            await world.owner.post(f"{NOTES}/{path}", json=body | {"user": user}) for path, body in posts.items()
        ]
        answers += [
            await world.owner.get(f"{NOTES}/{path}", params=query | {"user": user}) for path, query in gets.items()
        ]
        hits = [answer.text.replace(f'"query":"{SECRET}"', "").replace(f"Question: {SECRET}", "") for answer in answers]
        assert [SECRET in text for text in hits] == [is_shown] * len(hits), (user, hits)


async def test_import_belongs_to_the_user_it_names(world: World) -> None:
    row = json.dumps({"subject": "Boat", "predicate": "lies at", "object": "Pier 3"})
    address, binary = f"{NOTES}/uploads/boats.jsonl", {"Content-Type": "application/octet-stream"}
    refused = await world.sol.post(address, params={"user": "mara"}, content=row, headers=binary)
    assert refused.status_code == 403
    job = read_json(await world.owner.post(address, params={"user": "mara"}, content=row, headers=binary))["id"]
    while not (done := read_json(await world.owner.get(f"{NOTES}/jobs/{job}")))["ended_at"]:
        await asyncio.sleep(0.02)
    assert done["result"]["written"] == 1
    for client, number in ((world.mara, 1), (world.sol, 0), (world.owner, 0)):
        assert len(read_json(await client.get(f"{NOTES}/facts", params={"entity": "Boat"}))["facts"]) == number


async def test_search_selects_by_session_agent_and_time(on_file: httpx.AsyncClient) -> None:
    for day, session in (("01", "s1"), ("02", "s2"), ("03", "s2")):
        said = [{"role": "user", "content": f"Tea on day {day}.", "at": f"2026-05-{day}T09:00:00Z"}]
        body = {"messages": said, "user": "mara", "session": session, "agent": f"a{session}"}
        read_json(await on_file.post(f"{NOTES}/remember", json=body))
    read_json(await on_file.post(f"{NOTES}/documents", json={"text": "Tea at any time.", "user": "mara"}))

    async def find(**scope: str) -> set[str]:
        found = read_json(await on_file.post(f"{NOTES}/search", json={"query": "tea", "user": "mara", **scope}))
        return {hit["passage"]["text"] for hit in found["hits"]}

    first, second, third = (f"Tea on day {day}." for day in ("01", "02", "03"))
    assert await find() == {first, second, third, "Tea at any time."}
    assert await find(session="s2") == await find(agent="as2") == {second, third}
    assert await find(since="2026-05-02") == {second, third}
    assert await find(since="2026-05-02", until="2026-05-03T09:00:00Z") == {second}
    assert await find(user="sol") == set()
    grouped = await find(group_by="session")
    assert {first, "Tea at any time."} < grouped < {first, second, third, "Tea at any time."}
    wrong = await on_file.post(f"{NOTES}/search", json={"query": "tea", "group_by": "day"})
    assert wrong.status_code == 422


async def test_added_documents_and_facts_have_their_origin(on_file: httpx.AsyncClient) -> None:
    origin = SESSION | {"at": "2026-05-01T09:00:00+02:00"}
    added = read_json(await on_file.post(f"{NOTES}/documents", json=origin | {"text": "Tea is hot."}))["id"]
    facts = {"facts": [["tea", "is", "hot"]]}
    [stated] = read_json(await on_file.post(f"{NOTES}/facts", json=origin | facts))["ids"]
    for id_ in (added, stated):
        assert (await on_file.get(f"{NOTES}/documents/{id_}")).status_code == 404
        document = read_json(await on_file.get(f"{NOTES}/documents/{id_}", params={"user": "mara"}))["document"]
        assert {name: document[name] for name in SESSION} == SESSION
        assert document["at"] == "2026-05-01T07:00:00Z"
    assert (await on_file.delete(f"{NOTES}/documents/{added}")).status_code == 404
    gone = read_json(await on_file.delete(f"{NOTES}/documents/{added}", params={"user": "mara"}))
    assert gone["documents"] == [added]


async def test_cursor_holds_for_one_user(world: World) -> None:
    page = read_json(await world.owner.get(f"{NOTES}/documents", params={"limit": 1, "user": "mara"}))
    for user, status in (("mara", 200), ("", 404), ("sol", 404)):
        query = {"limit": "1", "user": user, "cursor": page["next"]}
        assert (await world.owner.get(f"{NOTES}/documents", params=query)).status_code == status


# -- forget --------------------------------------------------------------------------------------------


async def test_documents_are_forgotten_by_user_session_and_time(on_file: httpx.AsyncClient) -> None:
    for user, session, day in (("mara", "s1", "01"), ("mara", "s2", "02"), ("sol", "s1", "01"), ("", "s1", "01")):
        said = [{"role": "user", "content": "Tea.", "at": f"2026-05-{day}T09:00:00Z"}]
        body = {"messages": said, "user": user, "session": session}
        read_json(await on_file.post(f"{NOTES}/remember", json=body))

    async def forget(**selection: Any) -> list[str]:
        gone = read_json(await on_file.post(f"{NOTES}/documents/forget", json=selection))
        return list(gone["documents"])

    async def count() -> int:
        return int(read_json(await on_file.get(f"{NOTES}/stats"))["documents"])

    listed = await forget(user="mara", dry_run=True)
    assert (len(listed), await count()) == (2, 4)
    assert await forget(user="mara", until="2026-05-01") == []
    later = await forget(user="mara", since="2026-05-02")
    assert (len(later), await count()) == (1, 3)
    assert [*later, *await forget(user="mara", session="s1")] == sorted(listed, key=lambda id_: id_ not in later)
    assert (len(await forget(session="s1")), await count()) == (1, 1)
    assert len(await forget(user="sol")) == 1


@pytest.mark.parametrize("body", [{}, {"documents": []}, {"user": "", "since": None}, {"dry_run": True}])
async def test_forgetting_nothing_is_refused(world: World, body: dict[str, Any]) -> None:
    """Refuse it for a key of a user, too: it would mean all documents of the user."""
    before = world.export()
    for client in (world.owner, world.mara):
        done = await client.post(f"{NOTES}/documents/forget", json=body)
        assert done.status_code == 422
        selected = "name ids or addresses, or select by user, agent, session, since, until, matching or expired"
        assert selected in done.json()["detail"]
    assert world.export() == before


async def test_key_of_a_user_forgets_its_documents_only(world: World) -> None:
    for body in ({"session": "s1"}, {"since": "2026-01-01"}, {"user": "sol"}, {"agent": "butler"}):
        assert read_json(await world.sol.post(f"{NOTES}/documents/forget", json=body))["documents"] == []
    gone = read_json(await world.mara.post(f"{NOTES}/documents/forget", json={"user": "mara"}))
    assert len(gone["documents"]) == 4
    assert SECRET not in "".join(world.export())
    assert "canteen" in "".join(world.export())


async def test_deleted_collection_has_no_documents_of_users(world: World) -> None:
    assert (await world.mara.delete(NOTES)).status_code == 403
    assert (await world.owner.delete(NOTES)).status_code == 204
    assert len(world.export()) == 1


# -- keys of a user ------------------------------------------------------------------------------------

BODIES: dict[str, dict[str, Any]] = {
    "putCollection": {"description": ""},
    "addDocument": {"text": "Planted.", "uri": "mine.md"},
    "addFacts": {"facts": [["Mara", "owns", "nothing"]]},
    "rememberMessages": {"messages": [{"role": "user", "content": "Planted."}], "session": "s1", "agent": "butler"},
    "forgetDocuments": {"documents": ["{document}", "mine.md"]},
    "verifyReceipt": {"documents": ["{document}"]},
    "searchCollection": {"query": "mine"},
    "renderContext": {"query": "mine"},
    "explainHit": {"query": "mine", "passage": "{passage}"},
    "createKey": {"name": "more", "collections": ["*"], "scope": "admin"},
    "rotateKey": {},
    "startJob": {"kind": "forget"},
}
UPLOADS = {"uploadFile": "Planted.", "importFile": '{"subject": "Mara", "predicate": "owns", "object": "nothing"}'}
QUERIES = {id_: {"entity": "Mara"} for id_ in ("listFacts", "getTimeline", "getRelated")}
QUERIES["getConnection"] = {"entity": "Mara", "to": "vault"}
REFUSED = {"getStats", "exportCollection", "verifyReceipt", "startJob", "deleteCollection"}  # about a whole collection


async def send(world: World, id_: str, method: str, path: str, user: str) -> httpx.Response:
    """Send a request of Sol about what Mara has, which names a user or none."""
    names = world.names | {"collection": "default", "uri": f"{SECRET}.{'md' if id_ == 'uploadFile' else 'jsonl'}"}
    body = json.dumps(BODIES.get(id_))
    for name, value in names.items():
        path, body = path.replace(f"{{{name}}}", value), body.replace(f"{{{name}}}", value)
    named = {"user": user} if user else {}
    if id_ in UPLOADS:
        return await world.sol.request(method, path, content=UPLOADS[id_].encode())
    query: dict[str, str] = QUERIES.get(id_, {}) | named
    return await world.sol.request(method, path, params=query, json=json.loads(body) and json.loads(body) | named)


async def test_key_of_another_user_reads_and_changes_nothing(world: World) -> None:
    """Send every operation of the service with the key of Sol, for Sol and for Mara."""
    before = [line for line in world.export() if '"mara"' in line]
    assert len(before) == 4
    keys = [key for key in world.app.state.service.registry.list_keys() if key.user == "mara"]
    paths = read_json(await world.owner.get("/openapi.json"))["paths"]
    requests = [(each["operationId"], method, path) for path, ways in paths.items() for method, each in ways.items()]
    assert len(requests) > 25
    takes_user = {
        "addDocument",
        "addFacts",
        "rememberMessages",
        "forgetDocuments",
        "searchCollection",
        "renderContext",
        "explainHit",
    }
    takes_user |= {"listDocuments", "getDocument", "forgetDocument", "listFacts", "createKey"}
    takes_user |= {
        "getTimeline",
        "getProfile",
        "listChanges",
        "getProvenance",
        "getRelated",
        "getConnection",
        "listEntities",
    }
    for id_, method, path in sorted(requests):
        for user in ("", "mara"):
            if user and id_ in BODIES and id_ not in takes_user:
                continue  # a body without this field
            done = await send(world, id_, method.upper(), path, user)
            shown = done.text.replace(f"{SECRET}.md", "").replace(f"{SECRET}.jsonl", "")
            assert SECRET not in shown, (id_, user, done.text)
            if user and id_ in takes_user:
                assert (done.status_code, done.json()["detail"]) == (403, FOR_SOL), (id_, done.text)
            elif id_ in REFUSED:
                assert done.status_code == 403, (id_, done.text)
            if id_ in UPLOADS and done.status_code == 202:
                await wait_for(world.sol, done.json()["id"])
    assert [line for line in world.export() if '"mara"' in line] == before
    assert [key for key in world.app.state.service.registry.list_keys() if key.user == "mara"] == keys


FOR_SOL = "user must be 'sol': you may read and write for no other user"


async def wait_for(client: httpx.AsyncClient, job: str) -> dict[str, Any]:
    while not (done := read_json(await client.get(f"{NOTES}/jobs/{job}")))["ended_at"]:
        await asyncio.sleep(0.02)
    return dict(done)


async def test_key_of_a_user_writes_for_it(world: World) -> None:
    """Write without naming a user: everything belongs to that of the key, and public documents stay."""
    own = {"text": "Sol likes tea.", "uri": "tea.md"}
    ids = [read_json(await world.sol.post(f"{NOTES}/documents", json=own))["id"]]
    ids += read_json(await world.sol.post(f"{NOTES}/facts", json={"facts": [["Sol", "likes", "tea"]]}))["ids"]
    said = {"messages": [{"role": "user", "content": "I like tea."}], "user": "sol"}
    ids += read_json(await world.sol.post(f"{NOTES}/remember", json=said))["documents"]
    job = read_json(await world.sol.put(f"{NOTES}/uploads/sol.md", content=b"Tea."))["id"]
    assert (await wait_for(world.sol, job))["state"] == "done"
    for id_ in ids:
        document = read_json(await world.sol.get(f"{NOTES}/documents/{id_}"))["document"]
        assert (document["user"], document["source"]) == ("sol", "conversation")
        assert (await world.mara.get(f"{NOTES}/documents/{id_}")).status_code == 404
    listed = read_json(await world.sol.get(f"{NOTES}/documents"))["documents"]
    assert {(each["uri"], each["user"]) for each in listed} >= {("sol.md", "sol"), ("tea.md", "sol"), ("open.md", "")}
    public = next(each["id"] for each in listed if each["uri"] == "open.md")
    assert (await world.sol.delete(f"{NOTES}/documents/{public}")).status_code == 403
    assert "canteen" in "".join(world.export())


async def test_jobs_are_those_of_the_key(world: World) -> None:
    assert read_json(await world.sol.get(f"{NOTES}/jobs"))["jobs"] == []
    assert (await world.sol.get(f"{NOTES}/jobs/{world.names['job']}")).status_code == 404
    assert len(read_json(await world.mara.get(f"{NOTES}/jobs"))["jobs"]) == 1
    assert len(read_json(await world.owner.get(f"{NOTES}/jobs"))["jobs"]) == 1


async def test_key_of_a_user_manages_keys_of_that_user(world: World) -> None:
    made = read_json(await world.owner.post("/v1/keys", json={"name": "x", "collections": ["*"], "user": "sol"}))
    assert (made["info"]["user"], made["info"]["max_source"]) == ("sol", "conversation")
    own = read_json(await world.sol.post("/v1/keys", json={"name": "y", "collections": ["*"]}))["info"]
    assert (own["user"], own["max_source"]) == ("sol", "conversation")
    rotated = read_json(await world.sol.post(f"/v1/keys/{own['id']}/rotate", json={}))
    assert rotated["info"]["user"] == "sol"
    async with create_client(world.app, rotated["token"]) as renewed:
        assert SECRET not in (await renewed.get(f"{NOTES}/documents")).text
    keys = read_json(await world.sol.get("/v1/keys"))["keys"]
    assert {key["user"] for key in keys} == {"sol"}
    assert {"x", "y"} < {key["name"] for key in keys}
    for user in ("", None, "mara"):
        wanted = {"name": "z", "collections": ["*"], "user": user}
        done = await world.sol.post("/v1/keys", json=wanted)
        assert done.status_code == {"": 422, None: 201, "mara": 403}[user]
    for path in (f"{world.names['key']}", f"{world.names['key']}/rotate"):
        method = "POST" if path.endswith("rotate") else "DELETE"
        assert (await world.sol.request(method, f"/v1/keys/{path}", json={})).status_code == 404
    assert (await world.owner.post("/v1/keys", json=wanted | {"user": "a\nb"})).status_code == 422


async def test_what_has_expired_is_hidden_and_forgotten(world: World) -> None:
    past, future = {"expires": "2026-01-01T00:00:00Z"}, {"expires": "2999-01-01"}
    told = {"messages": [{"role": "user", "content": "The ferry is late."}], "session": "s9"}
    for said in (past, future):
        text = {"text": f"The ferry code is {said['expires']}.", **said}
        read_json(await world.owner.post(f"{NOTES}/documents", json=text))
        fact = {"facts": [["ferry", "has_code", said["expires"]]], **said}
        read_json(await world.owner.post(f"{NOTES}/facts", json=fact))
    read_json(await world.mara.post(f"{NOTES}/remember", json={**told, **past}))
    upload = f"{NOTES}/uploads/ferry.md?expires=2026-01-01"
    job = read_json(await world.owner.put(upload, content=b"The ferry code is 4471."))["id"]
    while not read_json(await world.owner.get(f"{NOTES}/jobs/{job}"))["ended_at"]:
        await asyncio.sleep(0.05)

    async def list_expiries(**parameters: Any) -> list[str | None]:
        listed = read_json(await world.owner.get(f"{NOTES}/documents", params=parameters))
        return sorted(each["expires"] for each in listed["documents"] if each["expires"])

    assert await list_expiries() == ["2999-01-01T00:00:00Z"] * 2
    everything = ["2026-01-01T00:00:00Z"] * 3 + ["2999-01-01T00:00:00Z"] * 2
    assert await list_expiries(include_expired=True) == everything
    facts = read_json(await world.owner.get(f"{NOTES}/facts", params={"entity": "ferry"}))["facts"]
    assert [fact["object"] for fact in facts] == ["2999-01-01"]
    hits = read_json(await world.mara.post(f"{NOTES}/search", json={"query": "ferry late"}))["hits"]
    assert not any("late" in hit["passage"]["text"] for hit in hits)
    planned = read_json(await world.owner.post(f"{NOTES}/documents/forget", json={"expired": True, "dry_run": True}))
    assert len(planned["documents"]) == 4
    own = read_json(await world.mara.post(f"{NOTES}/documents/forget", json={"expired": True}))
    assert len(own["documents"]) == 1
    gone = read_json(await world.owner.post(f"{NOTES}/documents/forget", json={"expired": True}))
    assert len(gone["documents"]) == 3
    assert await list_expiries(include_expired=True) == ["2999-01-01T00:00:00Z"] * 2


# -- views ---------------------------------------------------------------------------------------------


async def test_views_show_what_holds_and_what_changed(on_file: httpx.AsyncClient) -> None:
    for day, text in LIFE:
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
        body = SESSION | {"messages": messages, "at": day}
        read_json(await on_file.post(f"{NOTES}/remember", json=body))

    async def read(path: str, model: type[wire.Wire], **parameters: Any) -> Any:
        answer = await on_file.get(f"{NOTES}{path}", params={"user": "mara", **parameters})
        assert answer.status_code == 200, answer.text
        model.model_validate_json(answer.content, strict=True)
        return answer.json()

    profile = await read("/profile", wire.Profile)
    assert [line["text"].partition(" (")[0] for line in profile["lines"]] == ["lives in: Bergen"]
    assert (await read("/profile", wire.Profile, budget=1))["has_more"]
    changes = await read("/changes", wire.ChangeList, since="2026-02-01")
    [change] = changes["changes"]
    assert (change["kind"], change["before"]["fact"]["object"], change["after"]["fact"]["object"]) == (
        "changed",
        "Oslo",
        "Bergen",
    )
    assert (await read("/changes", wire.ChangeList, until="2026-02-01", entity="Oslo"))["changes"][0]["kind"] == "began"
    assert (await read("/changes", wire.ChangeList, limit=1))["has_more"]
    timeline = await read("/timeline", wire.Timeline, entity="mara")
    assert [(entry["fact"]["object"], entry["end"] and entry["end"]["kind"]) for entry in timeline["entries"]] == [
        ("Oslo", "changed"),
        ("Bergen", None),
    ]
    assert len((await read("/timeline", wire.Timeline, entity="mara", until="2026-03-01"))["entries"]) == 1
    passage = change["before"]["passage"]["id"]
    origin = await read(f"/passages/{passage}/provenance", wire.Provenance, around=1)
    assert (origin["session"], origin["before"], [turn["text"] for turn in origin["after"]]) == ("s1", [], ["Noted."])
    assert (await on_file.get(f"{NOTES}/passages/{passage}/provenance")).status_code == 404
    assert (await on_file.get(f"{NOTES}/changes", params={"since": "soon"})).status_code == 422


async def test_views_of_a_bound_key_are_those_of_its_user(world: World) -> None:
    body = {"messages": [{"role": "user", "content": f"I live in {SECRET}."}], "session": "s2"}
    read_json(await world.mara.post(f"{NOTES}/remember", json=body))
    for path in ("/profile", "/changes", "/timeline?entity=mara"):
        assert SECRET in (await world.mara.get(f"{NOTES}{path}")).text
        assert SECRET not in (await world.sol.get(f"{NOTES}{path}")).text
        refused = await world.sol.get(f"{NOTES}{path}{'&' if '?' in path else '?'}user=mara")
        assert refused.status_code == 403
