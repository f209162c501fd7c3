"""Code that was written for Zep runs over Waylore: users, threads with their messages, and the graph."""

import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from databases import create_database
from waylore import Waylore
from waylore.errors import ArgumentError, NotFound
from waylore.integrations.records import ThreadMessage
from waylore.integrations.unused import UnusedArgumentWarning
from waylore.integrations.zep import RECORDS, Zep

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
MESSAGES = [
    {"role": "user", "name": "Mara", "content": "I moved to Bergen.", "created_at": "2026-03-08T10:00:00Z"},
    {"role": "assistant", "content": "How is the weather there?", "created_at": "2026-03-08T10:01:00Z"},
    {"role": "user", "name": "Mara", "content": "It rains.", "created_at": "2026-03-08T10:02:00Z"},
]


@pytest.fixture(params=["sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Waylore]:
    url = create_database() if request.param == "postgres" else tmp_path / "zep.waylore"
    with Waylore.open(url, clock=lambda: NOW, single_valued="lives_in") as memory:
        yield memory


@pytest.fixture
def zep(memory: Waylore) -> Zep:
    return Zep(memory)


@pytest.fixture
def thread(zep: Zep) -> str:
    zep.user.add(user_id="mara", first_name="Mara", email="mara@example.org", metadata={"plan": {"seats": 2}})
    zep.thread.create(thread_id="t1", user_id="mara")
    zep.thread.add_messages("t1", messages=MESSAGES)
    return "t1"


# The arguments of zep-cloud 3.30, which is not installed for tests; `request_options` belongs to its HTTP client.
SIGNATURES = {
    "user.add": "user_id disable_default_ontology email first_name last_name metadata time_zone",
    "user.get": "user_id",
    "user.delete": "user_id",
    "user.get_threads": "user_id",
    "thread.create": "thread_id user_id",
    "thread.add_messages": "thread_id messages ignore_roles return_context strict_ontology",
    "thread.add_messages_batch": "thread_id messages ignore_roles return_context strict_ontology",
    "thread.get": "thread_id limit cursor lastn",
    "thread.get_user_context": "thread_id template_id",
    "thread.delete": "thread_id",
    "graph.add": "data type created_at document_id graph_id metadata source_description strict_ontology user_id",
    "graph.add_fact_triple": (
        "fact fact_name created_at edge_attributes expired_at graph_id invalid_at metadata source_node_attributes"
        " source_node_labels source_node_name source_node_summary source_node_uuid target_node_attributes"
        " target_node_labels target_node_name target_node_summary target_node_uuid user_id valid_at"
    ),
    "graph.search": (
        "query bfs_origin_node_uuids center_node_uuid graph_id limit max_characters mmr_lambda reranker"
        " return_raw_results scope search_filters user_id"
    ),
}


@pytest.mark.parametrize("method", SIGNATURES)
def test_methods_take_the_arguments_of_zep(zep: Zep, method: str) -> None:
    member, name = method.split(".")
    parameters = inspect.signature(getattr(getattr(zep, member), name)).parameters
    assert list(parameters) == SIGNATURES[method].split()


@pytest.mark.parametrize("memory", ["sqlite", "postgres"], indirect=True)
def test_thread_lives_from_create_to_delete(zep: Zep, memory: Waylore) -> None:
    zep.user.add(user_id="mara", first_name="Mara", metadata={"plan": {"seats": 2}})
    assert zep.user.get("mara").metadata == {"plan": {"seats": 2}}
    assert zep.thread.create(thread_id="t1", user_id="mara").user_id == "mara"
    ids = zep.thread.add_messages("t1", messages=MESSAGES).message_uuids
    found = zep.thread.get("t1")
    assert [(m.role, m.content, m.created_at) for m in found.messages] == [
        (m["role"], m["content"], m["created_at"]) for m in MESSAGES
    ]
    assert [message.uuid_ for message in found.messages] == ids
    [best, *_] = zep.graph.search(query="Where did I move?", user_id="mara", scope="episodes").episodes or []
    assert (best.content, best.thread_id, best.uuid_) == ("I moved to Bergen.", "t1", (ids or [])[0])
    zep.thread.delete("t1")
    with pytest.raises(NotFound, match=r"thread\.create"):
        zep.thread.get("t1")
    assert memory.documents(user="mara") == ()


def test_same_messages_again_change_nothing(zep: Zep, thread: str) -> None:
    zep.thread.add_messages_batch(thread, messages=[*MESSAGES, {"role": "user", "content": "It still rains."}])
    assert zep.thread.get(thread).total_count == 4


def test_pages_of_a_thread(zep: Zep, thread: str) -> None:
    def list_texts(**page: int) -> list[str]:
        return [message.content for message in zep.thread.get(thread, **page).messages]

    texts = [message["content"] for message in MESSAGES]
    assert list_texts(lastn=2) == texts[1:]
    assert list_texts(limit=2) == texts[:2]
    assert list_texts(limit=2, cursor=2) == texts[2:]
    assert zep.thread.get(thread, limit=1).total_count == 3


def test_messages_may_be_objects(zep: Zep, thread: str) -> None:
    @dataclass
    class Foreign:
        role: str
        content: str
        uuid_: str | None = None
        metadata: dict[str, str] | None = None

    said = [
        ThreadMessage(role="user", content="One.", metadata={"topic": "a"}),
        Foreign("norole", "Two.", "id-2", {"topic": "b"}),
    ]
    zep.thread.add_messages(thread, messages=said)
    zep.thread.add_messages(thread, messages=[Foreign("norole", "Two.", "id-2")])
    assert [(m.content, m.metadata) for m in zep.thread.get(thread, lastn=2).messages] == [
        ("One.", {"topic": "a"}),
        ("Two.", {"topic": "b"}),
    ]
    with pytest.raises(ArgumentError, match="role"):
        zep.thread.add_messages(thread, messages=[{"role": "robot", "content": "Beep."}])


def test_ignored_roles_are_not_remembered(zep: Zep, thread: str) -> None:
    zep.thread.create(thread_id="t2", user_id="mara")
    zep.thread.add_messages("t2", messages=MESSAGES, ignore_roles=["assistant"])
    assert [message.role for message in zep.thread.get("t2").messages] == ["user", "user"]


def test_context_has_what_other_threads_say(zep: Zep, thread: str) -> None:
    zep.thread.create(thread_id="t2", user_id="mara")
    added = zep.thread.add_messages(
        "t2", messages=[{"role": "user", "content": "Where did I move?"}], return_context=True
    )
    assert "I moved to Bergen." in (added.context or "")
    assert "I moved to Bergen." in (zep.thread.get_user_context("t2").context or "")
    zep.thread.create(thread_id="empty", user_id="mara")
    assert zep.thread.get_user_context("empty").context == ""


def test_users_are_apart_and_records_are_found_by_nobody(zep: Zep, thread: str, memory: Waylore) -> None:
    zep.user.add(user_id="ben", email="ben@example.org")
    zep.thread.create(thread_id="t9", user_id="ben")
    for question in ("mara", "user mara", "Where did I move?"):
        assert zep.graph.search(query=question, user_id="ben").edges == []
        assert memory.search(question).hits == ()
    with pytest.raises(ArgumentError, match="t1"):
        zep.thread.create(thread_id="t1", user_id="ben")
    assert zep.thread.create(thread_id="t1", user_id="mara").user_id == "mara"
    assert [each.thread_id for each in zep.user.get_threads("mara")] == ["t1"]


def test_deleting_a_user_leaves_nothing(zep: Zep, thread: str, memory: Waylore) -> None:
    zep.user.add(user_id="ben")
    zep.graph.add(data="Mara likes tea.", type="text", user_id="mara")
    assert zep.user.update("mara", last_name="Lind").first_name == "Mara"
    zep.user.delete("mara")
    assert memory.documents(user="mara") == ()
    assert [each.uri for each in memory.documents(user=RECORDS)] == ["zep:user/ben"]
    with pytest.raises(NotFound, match="mara"):
        zep.user.get("mara")


def test_facts_have_their_interval(zep: Zep) -> None:
    cities = [("Oslo", "2026-01-10", "2026-03-10"), ("Bergen", "2026-03-10", None)]
    for city, since, until in cities:
        edge = zep.graph.add_fact_triple(
            fact=f"Mara lives in {city}",
            fact_name="lives_in",
            source_node_name="Mara",
            target_node_name=city,
            target_node_labels=["City"],
            valid_at=since,
            invalid_at=until,
            user_id="mara",
        ).edge
        assert (edge.source_node_name, edge.name, edge.target_node_name) == ("Mara", "lives_in", city)
    found = zep.graph.search(query="Where does Mara live?", user_id="mara").edges or []
    assert {(e.fact, (e.valid_at or "")[:10], (e.invalid_at or "")[:10]) for e in found} == {
        (f"Mara lives in {city}", since, until or "") for city, since, until in cities
    }
    holds = {"valid_at": [[{"comparison_operator": "<=", "date": "2026-02-01"}]]}
    old = zep.graph.search(query="Where does Mara live?", user_id="mara", search_filters=holds).edges or []
    assert [edge.target_node_name for edge in old] == ["Oslo"]
    nodes = zep.graph.search(query="Where does Mara live?", user_id="mara", scope="nodes").nodes or []
    assert {(node.name, *node.labels) for node in nodes} == {("Mara",), ("Oslo", "City"), ("Bergen", "City")}
    cities_only = {"node_labels": ["City"]}
    nodes = zep.graph.search(query="Mara", user_id="mara", scope="nodes", search_filters=cities_only).nodes or []
    assert {node.name for node in nodes} == {"Oslo", "Bergen"}


def test_newer_fact_ends_the_older_one(zep: Zep) -> None:
    for city, since in (("Oslo", "2026-01-10"), ("Bergen", "2026-03-10")):
        zep.graph.add_fact_triple(
            fact="",
            fact_name="lives_in",
            source_node_name="Mara",
            target_node_name=city,
            valid_at=since,
            user_id="mara",
        )
    found = zep.graph.search(query="Where does Mara live?", user_id="mara").edges or []
    assert {(e.target_node_name, (e.invalid_at or "")[:10]) for e in found} == {("Oslo", "2026-03-10"), ("Bergen", "")}


def test_edges_can_be_chosen_by_name(zep: Zep, thread: str) -> None:
    zep.graph.add_fact_triple(
        fact="Mara plays chess in Bergen", fact_name="plays", source_node_name="Mara", target_node_name="chess",
        user_id="mara",
    )  # fmt: skip

    def list_facts(**filters: list[str]) -> list[str]:
        found = zep.graph.search(query="Bergen", user_id="mara", search_filters=filters)
        return [edge.fact for edge in found.edges or []]

    assert list_facts(edge_types=["plays"]) == ["Mara plays chess in Bergen"]
    assert "I moved to Bergen." in list_facts(exclude_edge_types=["plays"])
    assert "Mara plays chess in Bergen" not in list_facts(exclude_edge_types=["plays"])


def test_texts_and_messages_go_into_a_graph(zep: Zep) -> None:
    text = zep.graph.add(data="The mast is broken.", type="text", graph_id="boat", created_at="2026-05-01")
    assert text.created_at == "2026-05-01T00:00:00Z"
    zep.graph.add(data="Ben: I order a new mast.\nMara: Thanks.", type="message", graph_id="boat")
    found = zep.graph.search(query="mast", graph_id="boat", scope="episodes").episodes or []
    assert {(e.content, e.role, e.source) for e in found} >= {
        ("The mast is broken.", None, "text"),
        ("I order a new mast.", "Ben", "message"),
    }
    assert "The mast is broken." in (zep.graph.search(query="mast", graph_id="boat", scope="auto").context or "")
    assert zep.graph.search(query="mast", user_id="boat").edges == []
    zep.graph.delete("boat")
    assert zep.graph.search(query="mast", graph_id="boat").edges == []


def test_wrong_arguments_are_errors(zep: Zep) -> None:
    with pytest.raises(ArgumentError, match="graph_id"):
        zep.graph.search(query="mast")
    with pytest.raises(ArgumentError, match="graph_id"):
        zep.graph.add(data="x", type="text", user_id="a", graph_id="b")
    with pytest.raises(ArgumentError, match="scope"):
        zep.graph.search(query="mast", user_id="a", scope="observations")
    with pytest.raises(ArgumentError, match="target_node_name"):
        zep.graph.add_fact_triple(fact="x", fact_name="y", source_node_name="z", user_id="a")
    with pytest.raises(NotFound):
        zep.thread.add_messages("nowhere", messages=MESSAGES)


def test_unused_arguments_are_reported_once(zep: Zep) -> None:
    with warnings.catch_warnings(record=True, action="always") as reported:
        for _ in range(2):
            zep.graph.search(query="mast", user_id="a", reranker="mmr", mmr_lambda=0.5)
        zep.graph.set_ontology(entities={"Boat": object()})
    assert [(each.category, str(each.message).split()[0]) for each in reported] == [
        (UnusedArgumentWarning, "graph.search(mmr_lambda=)"),
        (UnusedArgumentWarning, "graph.search(reranker=)"),
        (UnusedArgumentWarning, "graph.set_ontology(entities=)"),
    ]
    assert {each.filename for each in reported} == {__file__}
