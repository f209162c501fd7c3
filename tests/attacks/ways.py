"""Every way to read and write: a request for each route of the service, each tool of an agent and each resource.

A way makes a request against a target, a document that the attacker knows the address, the id and the subject of. Its
secret is known only if `names_secret` is set. A route or tool without a way fails the suite.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from attacks.model import Rights

HERE = "/v1/collections/default"
ALL_LABELS = ("blue", "hr", "red")


@dataclass(frozen=True)
class Target:
    """A document, the rows of a file, a job and a key with the same labels and user; `line` is it in an export."""

    name: str
    labels: frozenset[str]
    secret: str
    document: str = ""
    passage: str = ""
    job: str = ""
    key: str = ""
    receipt: str = ""  # of another document, `forgotten`, which the owner has forgotten
    forgotten: str = ""
    line: str = ""
    user: str = ""

    @property
    def address(self) -> str:
        return f"notes/{self.name}.md"

    @property
    def table(self) -> str:
        return f"rows/{self.name}.csv"

    @property
    def subject(self) -> str:
        return f"Mara of {self.name}"

    @property
    def fact(self) -> str:
        return f"{self.subject} —works at→ {self.secret}"


@dataclass(frozen=True)
class Call:
    """A request with a body of JSON, or with the content of a file."""

    method: str = "GET"
    path: str = ""
    body: Any = None
    content: bytes | None = None


Build = Callable[[Target, Rights], Call]


@dataclass(frozen=True)
class Way:
    """A way to attack, through the route or tool `of`.

    `changes` says that it changes the target if the key may, `adds` that it adds a document. `labels` names those that
    the request gives to what it writes: none, those of the target, or those of the key. `names_user` says that it
    names the user of the target.
    """

    of: str
    name: str
    build: Build
    changes: bool = False
    adds: bool = False
    labels: Literal["", "target", "key"] = ""
    names_secret: bool = False
    names_user: bool = False
    is_general: bool = False  # does not depend on the target

    def get_labels(self, target: Target, rights: Rights) -> frozenset[str]:
        return {"": frozenset[str](), "target": target.labels, "key": rights.labels or frozenset()}[self.labels]


def get(of: str, path: str, name: str = "", **options: Any) -> Way:
    """Return a way that reads a path, in which the fields of the target stand in braces."""
    return Way(of, name or of, lambda target, _: Call("GET", _fill(path, target)), **options)


def post(of: str, name: str, path: str, body: Callable[[Target, Rights], Any], **options: Any) -> Way:
    return Way(of, name, lambda t, rights: Call("POST", _fill(path, t), body(t, rights)), **options)


def upload(of: str, name: str, path: str, content: Callable[[Target, Rights], str], **options: Any) -> Way:
    method = "PUT" if of == "uploadFile" else "POST"
    return Way(of, name, lambda t, r: Call(method, _fill(path, t), content=content(t, r).encode()), **options)


def tool(tool_name: str, name: str, arguments: Callable[[Target, Rights], Any], **options: Any) -> Way:
    def make_params(target: Target, rights: Rights) -> Any:
        return {"name": tool_name, "arguments": arguments(target, rights)}

    return _rpc(f"tool {tool_name}", name, "tools/call", make_params, **options)


def resource(template: str, uri: str) -> Way:
    return _rpc(template, f"read {template}", "resources/read", lambda target, _: {"uri": _fill(uri, target)})


def _rpc(of: str, name: str, method: str, params: Callable[[Target, Rights], Any], **options: Any) -> Way:
    def build(target: Target, rights: Rights) -> Call:
        return Call("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params(target, rights)})

    return Way(of, name, build, **options)


def _fill(path: str, target: Target) -> str:
    fields = ("name", "document", "passage", "job", "key", "receipt", "address", "table", "subject", "user")
    for each in fields:
        path = path.replace(f"{{{each}}}", quote(getattr(target, each)))
    return path.replace("{labels}", "&".join(f"labels={label}" for label in sorted(target.labels)))


def _own(rights: Rights) -> list[str]:
    return sorted(rights.labels or ())


def _retract(target: Target, **more: Any) -> dict[str, Any]:
    triple = {"subject": target.subject, "predicate": "works at", "object": target.secret}
    return {**triple, "status": "retracted", "weight": 10, **more}


def _forge_export(target: Target, rights: Rights) -> str:
    """Return an export with the target's document, its labels and its source changed."""
    forged = json.loads(target.line)
    forged["document"] |= {"title": "Forged.", "labels": _own(rights), "source": "user_edit"}
    return '{"waylore":2,"model":"hashing-384","dimension":384}\n' + json.dumps(forged) + "\n"


READS: tuple[Way, ...] = (
    get("checkLiveness", "/healthz", is_general=True),
    get("checkReadiness", "/readyz", is_general=True),
    get("listCollections", "/v1/collections", is_general=True),
    get("getCollection", HERE, is_general=True),
    get("getStats", f"{HERE}/stats", is_general=True),
    get("getInsight", f"{HERE}/insight", is_general=True),
    get("exportCollection", f"{HERE}/export", is_general=True),
    get("listDocuments", f"{HERE}/documents?limit=100", is_general=True),
    get("listDocuments", f"{HERE}/documents?under={{address}}", "list one address"),
    get("getDocument", f"{HERE}/documents/{{document}}"),
    get("listFacts", f"{HERE}/facts?entity={{subject}}"),
    get("getReceipt", f"{HERE}/receipts/{{receipt}}"),
    get("listMerges", f"{HERE}/merges?entity={{subject}}"),
    get("getRelated", f"{HERE}/related?entity={{subject}}&hops=6&limit=1000"),
    get("getRelated", f"{HERE}/related?entity={{subject}}&user={{user}}&predicate=works+for", "related of its user"),
    get("getConnection", f"{HERE}/connection?entity={{subject}}&to=Acme"),
    get("getConnection", f"{HERE}/connection?entity={{subject}}&to=Acme&user={{user}}", "connection for its user"),
    get("listEntities", f"{HERE}/entities?limit=1000"),
    get("listEntities", f"{HERE}/entities?name={{subject}}&user={{user}}", "entities of its user"),
    get("listEntities", f"{HERE}/entities?predicate=works+at&user={{user}}", "subjects for its user"),
    get("getTimeline", f"{HERE}/timeline?entity={{subject}}"),
    get("getTimeline", f"{HERE}/timeline?entity={{subject}}&user={{user}}", "timeline of its user"),
    get("listChanges", f"{HERE}/changes?entity={{subject}}&until=2100-01-01"),
    get("listChanges", f"{HERE}/changes?user={{user}}&until=2100-01-01", "changes of its user"),
    get("getProfile", f"{HERE}/profile"),
    get("getProfile", f"{HERE}/profile?user={{user}}", "profile of its user"),
    get("getProvenance", f"{HERE}/passages/{{passage}}/provenance"),
    get("getProvenance", f"{HERE}/passages/{{passage}}/provenance?around=50&user={{user}}", "provenance for its user"),
    get("listJobs", f"{HERE}/jobs?limit=100", is_general=True),
    get("getJob", f"{HERE}/jobs/{{job}}"),
    get("followJob", f"{HERE}/jobs/{{job}}/events"),
    get("listKeys", "/v1/keys?limit=100", is_general=True),
    get("auditKeys", "/v1/audit?after=-1000&limit=1000", is_general=True),
    get("listQuarantined", f"{HERE}/quarantine", is_general=True),
    get("auditCollection", f"{HERE}/audit?after=-1000&limit=1000", is_general=True),
    post(
        "searchCollection", "ask for a set", f"{HERE}/search", lambda t, _: {"query": f"What does {t.subject} work at?"}
    ),
    post("searchCollection", "search", f"{HERE}/search", lambda t, _: {"query": f"vault of {t.subject}", "top_k": 50}),
    post(
        "searchCollection",
        "search as others",
        f"{HERE}/search",
        lambda t, _: {"query": t.name, "labels": list(ALL_LABELS)},
    ),
    post(
        "searchCollection",
        "search words",
        f"{HERE}/search",
        lambda t, _: {"query": f"vault {t.name}", "method": "keyword"},
    ),
    post(
        "searchCollection",
        "search metadata",
        f"{HERE}/search",
        lambda t, _: {"query": "vault", "where": {"of": t.name}},
    ),
    post("renderContext", "context", f"{HERE}/context", lambda t, _: {"query": f"vault of {t.subject}"}),
    post("explainHit", "explain", f"{HERE}/explain", lambda t, _: {"query": f"vault {t.name}", "passage": t.passage}),
    get("listDocuments", f"{HERE}/documents?user={{user}}", "list documents of its user"),
    get("getDocument", f"{HERE}/documents/{{document}}?user={{user}}", "read it for its user"),
    get("listFacts", f"{HERE}/facts?entity={{subject}}&user={{user}}", "facts of its user"),
    get("getRelated", f"{HERE}/related?entity={{name}}", "names that contain a word"),
    post(
        "searchCollection",
        "search for its user",
        f"{HERE}/search",
        lambda t, _: {"query": f"vault {t.name}", "user": t.user},
    ),
    post("renderContext", "context for its user", f"{HERE}/context", lambda t, _: {"query": "vault", "user": t.user}),
    post("searchCollection", "search its time", f"{HERE}/search", lambda *_: {"query": "vault", "since": "2026-01-01"}),
    tool("memory_search", "memory_search", lambda t, _: {"query": f"vault of {t.subject}", "max_tokens": 50_000}),
    tool("memory_search", "memory_search with reasons", lambda t, _: {"query": f"vault {t.name}", "explain": True}),
    tool("memory_get", "memory_get", lambda t, _: {"id": t.document}),
    tool("memory_get", "memory_get a mark", lambda t, _: {"id": t.passage[:8]}),
    tool("memory_get", "memory_get a passage", lambda t, _: {"id": t.passage}),
    tool("memory_get", "memory_get what is around", lambda t, _: {"id": t.passage, "around": 20}),
    tool("memory_profile", "memory_profile", lambda *_: {"max_tokens": 50_000}),
    tool("memory_changes", "memory_changes", lambda *_: {"until": "2100-01-01", "max_tokens": 50_000}),
    tool("memory_changes", "memory_changes of it", lambda t, _: {"entity": t.subject, "max_tokens": 50_000}),
    tool("memory_graph", "memory_graph", lambda t, _: {"entity": t.subject, "hops": 6, "max_tokens": 50_000}),
    tool("memory_graph", "memory_graph to it", lambda t, _: {"to": t.subject, "max_tokens": 50_000}),
    tool("memory_graph", "memory_graph of all", lambda *_: {"limit": 1_000, "max_tokens": 50_000}, is_general=True),
    tool("search", "deep search", lambda t, _: {"query": f"vault of {t.subject}"}),
    tool("fetch", "fetch", lambda t, _: {"id": t.document}),
    _rpc("tools/list", "list tools", "tools/list", lambda *_: {}, is_general=True),
    _rpc("resources/list", "list resources", "resources/list", lambda *_: {}, is_general=True),
    resource("waylore://document/{id}", "waylore://document/{document}"),
    resource("waylore://passage/{id}", "waylore://passage/{passage}"),
    resource("waylore://entity/{name}", "waylore://entity/{subject}"),
)

ADD, FACTS, UPLOADS, REMEMBER = f"{HERE}/documents", f"{HERE}/facts", f"{HERE}/uploads", f"{HERE}/remember"
SAID = [{"role": "user", "content": "I was told so."}]
WRITES: tuple[Way, ...] = (
    post("addDocument", "add at its address", ADD, lambda t, _: {"text": "Mine now.", "uri": t.address}, changes=True),
    post(
        "addDocument",
        "add at its address with own labels",
        ADD,
        lambda t, r: {"text": "Mine now.", "uri": t.address, "labels": _own(r)},
        changes=True,
        labels="key",
    ),
    post(
        "addDocument",
        "add at its address with its labels",
        ADD,
        lambda t, _: {"text": "Mine now.", "uri": t.address, "labels": sorted(t.labels)},
        changes=True,
        labels="target",
    ),
    post(
        "addDocument",
        "plant among its readers",
        ADD,
        lambda t, _: {"text": "Planted.", "labels": sorted(t.labels), "source": "user_edit"},
        adds=True,
        labels="target",
    ),
    post("addDocument", "publish", ADD, lambda *_: {"text": "Published.", "source": "user_edit"}, adds=True),
    post("addDocument", "remember", ADD, lambda *_: {"text": "Told.", "source": "conversation"}, adds=True),
    post(
        "addFacts",
        "retract its fact",
        FACTS,
        lambda t, _: {"source": "user_edit", "facts": [_retract(t)]},
        names_secret=True,
        adds=True,
    ),
    post(
        "addFacts",
        "retract its fact for its readers",
        FACTS,
        lambda t, _: {"facts": [_retract(t)], "labels": sorted(t.labels), "source": "user_edit"},
        names_secret=True,
        adds=True,
        labels="target",
    ),
    post(
        "addDocument",
        "add at its address for its user",
        ADD,
        lambda t, _: {"text": "Mine now.", "uri": t.address, "user": t.user, "labels": sorted(t.labels)},
        changes=True,
        labels="target",
        names_user=True,
    ),
    post(
        "markDistinct",
        "separate its name",
        f"{HERE}/names/distinct",
        lambda t, _: {"name": t.subject, "other": "Acme"},
        adds=True,
    ),
    post(
        "markDistinct",
        "separate its name for its readers",
        f"{HERE}/names/distinct",
        lambda t, _: {"name": t.subject, "other": "Acme", "labels": sorted(t.labels)},
        adds=True,
        labels="target",
    ),
    post("rememberMessages", "remember a message", REMEMBER, lambda *_: {"messages": SAID}, adds=True),
    post(
        "rememberMessages",
        "remember in its session",
        REMEMBER,
        lambda t, _: {"messages": SAID, "user": t.user, "session": "s1", "labels": sorted(t.labels)},
        adds=True,
        labels="target",
        names_user=True,
    ),
    post(
        "addFacts",
        "retract its fact for its user",
        FACTS,
        lambda t, _: {"facts": [_retract(t)], "user": t.user, "source": "user_edit"},
        names_secret=True,
        names_user=True,
        adds=True,
    ),
    post(
        "forgetDocuments",
        "forget for its user",
        f"{ADD}/forget",
        lambda t, _: {"documents": [t.document], "user": t.user},
        changes=True,
        names_user=True,
    ),
    post("forgetDocuments", "forget its user", f"{ADD}/forget", lambda t, _: {"user": t.user}),
    post("forgetDocuments", "forget its session", f"{ADD}/forget", lambda *_: {"session": "s1"}),
    post("forgetDocuments", "forget its time", f"{ADD}/forget", lambda *_: {"since": "2026-01-01"}),
    Way("forgetDocument", "forget", lambda t, _: Call("DELETE", f"{ADD}/{t.document}"), changes=True),
    post("forgetDocuments", "forget by id", f"{ADD}/forget", lambda t, _: {"documents": [t.document]}, changes=True),
    post(
        "forgetDocuments", "forget by address", f"{ADD}/forget", lambda t, _: {"documents": [t.address]}, changes=True
    ),
    post("forgetDocuments", "forget its rows", f"{ADD}/forget", lambda t, _: {"documents": [t.table]}),
    post("verifyReceipt", "verify", f"{HERE}/receipts/verify", lambda t, _: {"documents": [t.document]}),
    upload("uploadFile", "upload over it", f"{UPLOADS}/{{address}}", lambda *_: "# Mine\n\nMine now.\n", changes=True),
    upload(
        "uploadFile",
        "upload over it with its labels",
        f"{UPLOADS}/{{address}}?{{labels}}",
        lambda *_: "# Mine\n\nMine now.\n",
        changes=True,
        labels="target",
    ),
    upload("uploadFile", "upload over its rows", f"{UPLOADS}/{{table}}", lambda *_: "place,what\nhere,mine\n"),
    upload(
        "importFile",
        "import triples at its address",
        f"{UPLOADS}/a.jsonl?format=triples",
        lambda t, _: json.dumps({"subject": "a", "predicate": "is", "object": "b", "text": "Mine.", "uri": t.address}),
        changes=True,
    ),
    upload(
        "importFile",
        "import a paper at its address",
        f"{UPLOADS}/a.jsonl?format=research",
        lambda t, _: json.dumps({"title": "Mine", "abstract": "Mine now.", "uri": t.address}),
        changes=True,
    ),
    upload(
        "importFile",
        "import a retraction",
        f"{UPLOADS}/a.jsonl?format=triples",
        lambda t, _: json.dumps(_retract(t, source="user_edit")),
        names_secret=True,
        adds=True,
    ),
    upload(
        "importFile",
        "import a fact for its user",
        f"{UPLOADS}/a.jsonl?format=triples&user={{user}}",
        lambda t, _: json.dumps({"subject": t.subject, "predicate": "works at", "object": "Mine"}),
        adds=True,
    ),
    upload("importFile", "import a forged export", f"{UPLOADS}/a.jsonl", _forge_export, names_secret=True),
    post("startJob", "forget everything", f"{HERE}/jobs", lambda *_: {"kind": "forget"}, is_general=True),
    post("startJob", "embed everything", f"{HERE}/jobs", lambda *_: {"kind": "reembed"}, is_general=True),
    post("cancelJob", "cancel its job", f"{HERE}/jobs/{{job}}/cancel", lambda *_: {}),
    Way("putCollection", "describe", lambda *_: Call("PUT", HERE, {"description": "mine"}), is_general=True),
    Way("deleteCollection", "delete", lambda *_: Call("DELETE", HERE), is_general=True),
    tool("memory_add", "memory_add", lambda *_: {"text": "I was told so.", "source": "user_edit"}, adds=True),
    tool(
        "memory_add",
        "memory_add a fact",
        lambda t, _: {"text": "Not so.", "facts": [{"subject": t.subject, "predicate": "works at", "object": "home"}]},
        adds=True,
    ),
    tool("memory_remember", "memory_remember", lambda *_: {"messages": SAID, "session": "one"}, adds=True),
    tool("memory_forget", "memory_forget", lambda t, _: {"documents": [t.document]}, changes=True),
    tool("memory_forget", "memory_forget a mark", lambda t, _: {"documents": [t.passage[:8]]}, changes=True),
)


def _make_key(target: Target, scope: str, **more: Any) -> dict[str, Any]:
    labels = sorted(target.labels) if target.labels else None
    user = {"user": target.user} if target.user else {}
    return {"name": "stolen", "collections": ["default"], "scope": scope, "labels": labels, **user, **more}


KEYS: tuple[Way, ...] = (
    post("createKey", "create a key that reads", "/v1/keys", lambda t, _: _make_key(t, "read")),
    post(
        "createKey", "create a key that edits", "/v1/keys", lambda t, _: _make_key(t, "write", max_source="user_edit")
    ),
    Way("rotateKey", "rotate its key", lambda t, _: Call("POST", f"/v1/keys/{t.key}/rotate", {})),
    Way("revokeKey", "revoke its key", lambda t, _: Call("DELETE", f"/v1/keys/{t.key}")),
    post("quarantineAuthor", "take back what the owner wrote", f"{HERE}/quarantine", lambda *_: {"author": "local"}),
    post("releaseAuthor", "release what the owner wrote", f"{HERE}/quarantine/release", lambda *_: {"author": "local"}),
    post("forgetQuarantined", "forget what was taken", f"{HERE}/quarantine/forget", lambda *_: {"author": "local"}),
)
WAYS = (*READS, *WRITES, *KEYS)


def _choose_group(way: Way) -> str:
    """Return the group of ways that are tried in one run of the service."""
    if "/" in way.of or way.of.startswith("tool "):
        return "agents"
    if way in READS:
        return "reading"
    subjects = {"add": "adding", "mark": "adding", "remember": "adding", "forget": "forgetting"}
    subjects |= {"upload": "uploading", "import": "uploading"}
    return subjects.get(re.split("[A-Z]", way.of)[0], "administration")


GROUPS: dict[str, list[Way]] = {}
for _way in WAYS:
    GROUPS.setdefault(_choose_group(_way), []).append(_way)
