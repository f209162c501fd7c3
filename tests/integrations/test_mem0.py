"""Code that was written for mem0 runs over Waylore: the same arguments, the same results, ids that last."""

import inspect
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from databases import create_database
from waylore import Waylore
from waylore.errors import ArgumentError
from waylore.integrations.mem0 import Memory, MemoryClient
from waylore.integrations.unused import UnusedArgumentWarning

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
MESSAGES = [
    {"role": "user", "content": "I am allergic to peanuts."},
    {"role": "assistant", "content": "Then no satay for you."},
]
ITEM = {"id", "memory", "hash", "metadata", "created_at", "updated_at", "user_id", "agent_id", "run_id"}


@pytest.fixture(params=["sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    url = create_database() if request.param == "postgres" else tmp_path / "mem0.waylore"
    with Memory(Waylore.open(url, clock=lambda: NOW)) as memory:
        yield memory


def list_texts(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [item["memory"] for item in found["results"]]


# The arguments of mem0ai 2.2.1, which is not installed for tests.
SIGNATURES = {
    "add": "messages user_id agent_id run_id metadata timestamp expiration_date infer memory_type prompt",
    "get": "memory_id",
    "get_all": "filters top_k show_expired",
    "search": "query top_k filters threshold rerank explain reference_date show_expired",
    "update": "memory_id text metadata expiration_date data",
    "delete": "memory_id",
    "delete_all": "user_id agent_id run_id",
    "history": "memory_id",
    "reset": "",
    "close": "",
    "from_config": "config_dict",
}


@pytest.mark.parametrize("method", SIGNATURES)
def test_methods_take_the_arguments_of_mem0(method: str) -> None:
    parameters = inspect.signature(getattr(Memory, method)).parameters
    assert [name for name in parameters if name not in ("self", "scope")] == SIGNATURES[method].split()


@pytest.mark.parametrize("memory", ["sqlite", "postgres"], indirect=True)
def test_memories_live_from_add_to_delete(memory: Memory) -> None:
    added = memory.add(MESSAGES, user_id="ann", run_id="monday", metadata={"topic": "food"})["results"]
    assert [(item["memory"], item["event"]) for item in added] == [(m["content"], "ADD") for m in MESSAGES]
    assert {item["event"] for item in memory.add(MESSAGES, user_id="ann", run_id="monday")["results"]} == {"NONE"}
    first = added[0]["id"]

    [best, *_] = memory.search("peanuts", filters={"user_id": "ann"})["results"]
    assert best["id"] == first
    assert best.keys() >= ITEM | {"score"}
    assert (best["user_id"], best["run_id"], best["metadata"]) == ("ann", "monday", {"topic": "food"})
    assert best["created_at"] == NOW.isoformat()

    assert memory.update(first, "I am allergic to peanuts and milk.") == {"message": "Memory updated successfully!"}
    known = memory.get(first)
    assert known is not None
    assert (known["id"], known["memory"]) == (first, "I am allergic to peanuts and milk.")
    assert known["metadata"] == {"topic": "food"}
    assert list_texts(memory.search("peanuts", filters={"user_id": "ann"}, top_k=1)) == [known["memory"]]
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in memory.history(first)] == [
        ("ADD", None, "I am allergic to peanuts."),
        ("UPDATE", "I am allergic to peanuts.", "I am allergic to peanuts and milk."),
    ]

    assert memory.delete(first) == {"message": "Memory deleted successfully!"}
    assert memory.get(first) is None
    assert memory.history(first) == []
    assert list_texts(memory.get_all(filters={"user_id": "ann"})) == ["Then no satay for you."]


def test_part_of_a_conversation_that_is_known_has_no_event(tmp_path: Path) -> None:
    times = iter(range(100))
    with Memory(
        Waylore.open(tmp_path / "m.waylore", clock=lambda: datetime(2026, 1, 1, 0, 0, next(times), tzinfo=UTC))
    ) as m:
        m.add(MESSAGES[:1], user_id="ann", run_id="r")
        assert [item["event"] for item in m.add(MESSAGES, user_id="ann", run_id="r")["results"]] == ["NONE", "ADD"]


def test_users_are_apart(memory: Memory) -> None:
    memory.add("I live in Oslo.", user_id="ann")
    [ben] = memory.add("I live in Rome.", user_id="ben")["results"]
    assert list_texts(memory.search("Where do I live?", filters={"user_id": "ann"})) == ["I live in Oslo."]
    assert list_texts(memory.get_all(filters={"user_id": "ben"})) == ["I live in Rome."]
    assert memory.get(ben["id"].replace("ben", "ann")) is None


def test_scopes_may_be_at_the_top_level_as_in_older_code(memory: Memory) -> None:
    memory.add("I live in Oslo.", user_id="ann", agent_id="guide")
    new = memory.search("Oslo", filters={"user_id": "ann", "agent_id": "guide"})
    assert memory.search("Oslo", user_id="ann", agent_id="guide") == new
    assert list_texts(new) == ["I live in Oslo."]
    assert memory.get_all(user_id="ann") == memory.get_all(filters={"user_id": "ann"})
    assert list_texts(memory.search("Oslo", user_id="ann", filters={"agent_id": "cook"})) == []


def test_filters_select_by_metadata(memory: Memory) -> None:
    for city, kind in (("Oslo", "home"), ("Rome", "trip"), ("Bergen", "work")):
        memory.add(f"The city is {city}.", user_id="ann", metadata={"kind": kind})

    def find(**filters: Any) -> set[str]:
        return set(list_texts(memory.search("city", filters={"user_id": "ann", **filters})))

    assert find(kind="trip") == find(kind={"eq": "trip"}) == find(AND=[{"kind": "trip"}]) == {"The city is Rome."}
    assert find(kind={"in": ["home", "work"]}) == {"The city is Oslo.", "The city is Bergen."}
    for unsupported in ({"kind": {"ne": "trip"}}, {"OR": [{"kind": "trip"}]}, {"kind": "*"}):
        with pytest.raises(ArgumentError, match="not supported"):
            find(**unsupported)


def test_calls_without_a_scope_are_errors(memory: Memory) -> None:
    memory.add("I live in Oslo.", user_id="ann")
    for call in (
        lambda: memory.add("Hello."),
        lambda: memory.search("Oslo"),
        memory.get_all,
        memory.delete_all,
        lambda: memory.delete_all(user_id=" "),
    ):
        with pytest.raises(ValueError, match="user_id"):
            call()
    assert len(memory.get_all(filters={"user_id": "ann"})["results"]) == 1


def test_delete_all_removes_one_scope(memory: Memory) -> None:
    for user, run in (("ann", "one"), ("ann", "two"), ("ben", "one")):
        memory.add(f"{user} in {run}", user_id=user, run_id=run)
    memory.delete_all(user_id="ann", run_id="one")
    assert list_texts(memory.get_all(filters={"user_id": "ann"})) == ["ann in two"]
    assert list_texts(memory.get_all(filters={"user_id": "ben"})) == ["ben in one"]
    with pytest.warns(UnusedArgumentWarning, match=r"delete_all\(run_id=\).* without a user"):
        memory.delete_all(run_id="one")
    assert list_texts(memory.get_all(filters={"user_id": "ben"})) == ["ben in one"]


def test_reset_removes_all_users(memory: Memory) -> None:
    for user in ("ann", "ben"):
        memory.add("Hello.", user_id=user)
    memory.reset()
    assert [memory.get_all(filters={"user_id": user})["results"] for user in ("ann", "ben")] == [[], []]


def test_times_have_an_effect(memory: Memory) -> None:
    for day, city in (("2026-01-10", "Oslo"), (datetime(2026, 3, 10, tzinfo=UTC).timestamp(), "Bergen")):
        memory.add(f"I live in {city}.", user_id="ann", timestamp=day)
    found = memory.search("live", filters={"user_id": "ann"}, reference_date="2026-02-01")["results"]
    assert [(item["memory"], item["created_at"][:10]) for item in found] == [("I live in Oslo.", "2026-01-10")]
    assert len(memory.search("live", filters={"user_id": "ann"})["results"]) == 2


def test_expired_memories_are_hidden(memory: Memory) -> None:
    for number in range(5):
        memory.add(f"The parking code is {number}.", user_id="ann", expiration_date="2026-06-09")
    [kept] = memory.add("The parking code is secret.", user_id="ann", expiration_date=NOW.date())["results"]
    mine = {"user_id": "ann"}
    assert list_texts(memory.search("parking code 1 2 3 4", filters=mine, top_k=1)) == [kept["memory"]]
    assert list_texts(memory.get_all(filters=mine)) == [kept["memory"]]
    assert len(memory.get_all(filters=mine, show_expired=True)["results"]) == 6
    assert len(memory.search("parking code", filters=mine, show_expired=True)["results"]) == 6
    memory.update(kept["id"], expiration_date=None)
    assert (memory.get(kept["id"]) or {})["expiration_date"] is None


def test_long_message_is_one_memory(memory: Memory) -> None:
    text = "\n\n".join(f"Paragraph {number} about peanuts. " + "More words follow here. " * 40 for number in range(8))
    [added] = memory.add(text, user_id="ann")["results"]
    assert [item["id"] for item in memory.search("peanuts", user_id="ann")["results"]] == [added["id"]]
    known = memory.get(added["id"])
    assert known is not None
    assert known["memory"].split() == text.split()


def test_unused_arguments_are_reported_once(memory: Memory) -> None:
    with warnings.catch_warnings(record=True, action="always") as reported:
        memory.add("Hello.", user_id="ann", infer=True, prompt="Extract facts")
        memory.add("Hello.", user_id="ann", infer=True, prompt="Extract facts")
        memory.search("Hello", user_id="ann", rerank=True)
    assert [str(each.message).split()[0] for each in reported] == ["add(infer=)", "add(prompt=)", "search(rerank=)"]
    assert {(each.category, each.filename) for each in reported} == {(UnusedArgumentWarning, __file__)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.add("Hello.", user_id="ann", infer=False)


def test_explain_says_how_a_score_is_made_up(memory: Memory) -> None:
    memory.add("I live in Oslo.", user_id="ann")
    [item] = memory.search("Oslo", user_id="ann", explain=True)["results"]
    assert item["score_details"]["value"] == item["score"]


def test_unknown_ids_and_arguments_are_errors(memory: Memory) -> None:
    assert memory.get("nope") is None
    with pytest.raises(ArgumentError, match="no memory"):
        memory.delete("nope")
    with pytest.raises(ArgumentError, match="no memory"):
        memory.update("0" * 32, "text")
    with pytest.raises(ArgumentError, match="text"):
        memory.update("nope")
    with pytest.raises(ArgumentError, match="top_k"):
        memory.search("Oslo", user_id="ann", limit=3)


def test_config_names_the_collection(tmp_path: Path) -> None:
    config = {"vector_store": {"provider": "qdrant"}, "waylore": {"url": str(tmp_path / "c.waylore")}}
    with pytest.warns(UnusedArgumentWarning, match="vector_store"):
        made = Memory.from_config(config)
    with made as memory:
        assert memory.add("Hello.", user_id="ann")["results"]
    with pytest.raises(ArgumentError, match="waylore"):
        Memory.from_config({"vector_store": {}})


def test_client_takes_options(memory: Memory) -> None:
    client = MemoryClient(memory._memory)
    with pytest.warns(UnusedArgumentWarning, match=r"add\(categories=\)"):
        client.add(MESSAGES, {"user_id": "ann"}, run_id="r", categories=["food"])
    assert len(client.get_all(filters={"user_id": "ann"})["results"]) == 2
    assert list_texts(client.search("peanuts", {"filters": {"user_id": "ann"}, "top_k": 1})) == [MESSAGES[0]["content"]]
    assert client.delete_users(user_id="ann")["message"]
    assert client.get_all({"filters": {"user_id": "ann"}})["results"] == []
