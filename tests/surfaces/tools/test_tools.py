"""Test the tools of an agent without a protocol: the token budget, function calling and errors."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surfaces.agents import fill, unfence
from waylore import Waylore
from waylore.errors import ArgumentError, ConfigError, Forbidden
from waylore.fence import shield
from waylore.lengths import MAX_PATH, MAX_TITLE
from waylore.surfaces.tools import tools
from waylore.surfaces.tools.arguments import MIN_TOKENS, Add, Fetch, Forget, Get, Search, SearchDocuments
from waylore.surfaces.tools.fit import count_quoted_tokens, count_tokens, shorten
from waylore.surfaces.tools.tools import (
    Agent,
    call_tool,
    list_openai_tools,
    memory_add,
    memory_forget,
    memory_get,
    memory_search,
)
from waylore.text import estimate_tokens
from waylore.types.knowledge import Metadata

TEXTS = st.text(st.sampled_from('login Mara\n"\\é–語🙂\t\x01.,;0A'), min_size=1).map(lambda text: f"login {text}")
LONG = st.builds(lambda text, times: " ".join([text] * times), TEXTS, st.integers(1, 300))
BUDGETS = st.integers(MIN_TOKENS, 6_000)
DOCUMENTS = st.lists(
    st.fixed_dictionaries({"text": LONG, "title": LONG, "uri": st.just("") | LONG, "key": LONG}),
    min_size=1,
    max_size=4,
)


@contextmanager
def open_agent(documents: list[dict[str, str]]) -> Iterator[Agent]:
    with TemporaryDirectory() as folder, Waylore.open(Path(folder) / "memory.waylore") as memory:
        for document in documents:
            facts = [("login", "needs", document["title"][:MAX_TITLE]), (document["key"][:MAX_TITLE], "is", "login")]
            metadata: Metadata = {"key": document["key"], "size": 3}
            title, uri = document["title"][:MAX_TITLE], document["uri"][:MAX_PATH]
            memory.add(document["text"], title=title, uri=uri, facts=facts, metadata=metadata)
        yield Agent(memory)


def check_size(answer: Any, tokens: int) -> Any:
    """Check that the JSON and the text of an answer are within the budget. Return the JSON."""
    data = answer.model_dump(mode="json")
    assert estimate_tokens(json.dumps(data, ensure_ascii=False, separators=(",", ":"))) <= tokens
    assert estimate_tokens(answer.to_text()) <= tokens
    return data


@settings(max_examples=30)
@given(documents=DOCUMENTS, tokens=BUDGETS)
def test_answers_fit_the_budget(documents: list[dict[str, str]], tokens: int) -> None:
    with open_agent(documents) as agent:
        found = check_size(memory_search(agent, Search(query="login", max_tokens=tokens)), tokens)
        whole = agent.memory.search("login")
        assert [h["passage_id"] for h in found["hits"]] == [hit.passage.id for hit in whole.hits[: len(found["hits"])]]
        assert bool(found["left_out"]) == (len(found["hits"]) < len(whole.hits))
        check_size(tools.search(agent, SearchDocuments(query="login")), 4_000)
        text, title = documents[0]["text"][:300], documents[0]["title"][:MAX_TITLE]
        check_size(memory_add(agent, Add(text=text, title=title)), 4_000)
        ids = tuple(document.id for document in agent.memory.documents())
        for id_ in ids:
            check_size(tools.fetch(agent, Fetch(id=id_)), 16_000)
        gone = check_size(memory_forget(agent, Forget(documents=ids, max_tokens=tokens)), tokens)
        assert gone["documents"] == len(ids)


@settings(max_examples=30)
@given(documents=DOCUMENTS, tokens=BUDGETS)
def test_long_document_can_be_read_in_parts(documents: list[dict[str, str]], tokens: int) -> None:
    with open_agent(documents) as agent:
        for document in agent.memory.documents():
            stored = tools.read_stored(agent, document.id).text
            part: Any = {"next_offset": 0}
            while (offset := part["next_offset"]) is not None:
                part = check_size(memory_get(agent, Get(id=document.id, offset=offset, max_tokens=tokens)), tokens)
                assert part["next_offset"] is None or part["next_offset"] > offset
                shown = shield(stored[offset : part["next_offset"]])
                assert (unfence(part["text"]) if part["text"] else "") == (shown if shown.strip() else "")
            for passage in agent.memory.get(document.id).passages:
                assert passage.text.strip() in stored


@given(text=LONG, tokens=st.integers(10, 200))
def test_shortened_text_fits_and_ends_with_dots(text: str, tokens: int) -> None:
    shown = shorten(text, tokens)
    assert count_quoted_tokens(shown) <= tokens
    assert shown == text or (shown.endswith(" …") and text.startswith(shown[:-2]))


def test_answer_that_fits_is_complete(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        fill(memory)
        answer = memory_search(Agent(memory), Search(query="login"))
        again = memory_search(Agent(memory), Search(query="login", max_tokens=max(count_tokens(answer), MIN_TOKENS)))
        assert again == answer
        assert not answer.left_out


def test_function_calling_lists_and_runs_tools(tmp_path: Path) -> None:
    offered = list_openai_tools()
    assert [one["function"]["name"] for one in offered] == [
        *(
            "memory_search",
            "memory_get",
            "memory_profile",
            "memory_changes",
            "memory_graph",
            "memory_remember",
            "memory_forget",
        ),
    ]
    assert all(one["function"]["parameters"]["additionalProperties"] is False for one in offered)
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        agent = Agent(fill(memory))
        found = call_tool(agent, "memory_search", '{"query": "login", "max_results": 1}')
        read = call_tool(agent, "memory_get", {"id": found["hits"][0]["document_id"]})
        assert json.loads(json.dumps(read)) == read
        assert unfence(read["text"]) == "The login needs the session service."


@pytest.mark.parametrize(
    ("name", "arguments", "error", "says"),
    [
        ("memory_burn", {}, ConfigError, "unknown tool 'memory_burn'; use memory_search"),
        ("memory_search", "{", ArgumentError, "arguments must be JSON"),
        ("memory_search", "[]", ArgumentError, "arguments must be a JSON object"),
        ("memory_search", "{}", ArgumentError, "query: Field required"),
        ("memory_search", {"query": "x", "top_k": 3}, ArgumentError, "unknown argument top_k; use max_results"),
        ("memory_get", {"document_id": "x"}, ArgumentError, "unknown argument document_id; use id"),
        ("memory_add", {"text": "x"}, Forbidden, "this server is read-only; start it without --read-only"),
    ],
)
def test_wrong_calls_raise_errors(tmp_path: Path, name: str, arguments: Any, error: type[Exception], says: str) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory, pytest.raises(error, match=says):
        call_tool(Agent(memory, may_write=False), name, arguments)
