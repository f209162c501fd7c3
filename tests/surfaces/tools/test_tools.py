"""Test the tools of an agent without a protocol: the token budget and its use, marks, function calling and errors."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from requirements import find_model, find_set
from surfaces.agents import fill, unfence
from waylore import Waylore
from waylore.errors import ArgumentError, ConfigError, Forbidden, NotFound
from waylore.evaluation.datasets import read_dataset
from waylore.fence import shield
from waylore.lengths import MAX_PATH, MAX_TITLE
from waylore.providers.tokens import create_counter
from waylore.surfaces.tools import tools
from waylore.surfaces.tools.arguments import MIN_TOKENS, Add, Fetch, Forget, Get, Search, SearchDocuments
from waylore.surfaces.tools.fit import count_tokens, shorten
from waylore.surfaces.tools.tools import (
    Agent,
    answer_call,
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
    """Check that the text of an answer is within the budget. Return the JSON."""
    assert estimate_tokens(answer.to_text()) <= tokens
    return answer.model_dump(mode="json")


@settings(max_examples=30)
@given(documents=DOCUMENTS, tokens=BUDGETS, explain=st.booleans())
def test_answers_fit_the_budget(documents: list[dict[str, str]], tokens: int, explain: bool) -> None:
    with open_agent(documents) as agent:
        asked = Search(query="login", max_tokens=tokens, explain=explain)
        found = check_size(memory_search(agent, asked), tokens)
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
@given(documents=DOCUMENTS)
def test_text_of_a_hit_is_mark_title_address_and_text(documents: list[dict[str, str]]) -> None:
    with open_agent(documents) as agent:
        plain = memory_search(agent, Search(query="login", max_tokens=50_000))
        explained = memory_search(agent, Search(query="login", max_tokens=50_000, explain=True))
    assert explained.model_dump() == plain.model_dump()
    headings = [" · ".join(filter(None, (f"[{hit.mark}] {hit.title}", hit.uri))) for hit in plain.hits]
    shown = [f"{heading}\n{hit.text}" for heading, hit in zip(headings, plain.hits, strict=True)]
    notes = [f"Not searched: {plain.missing}"]
    assert plain.to_text().partition("\n\n")[2] == "\n\n".join([*shown, *notes])
    told = explained.to_text()
    for hit in explained.hits:
        for part in (hit.passage_id, hit.document_id, hit.path, *hit.why, *explained.facts, explained.route_reason):
            assert part in told


@pytest.mark.model
def test_most_tokens_of_an_answer_are_titles_and_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(find_model("tiktoken")))
    count, dataset = create_counter(), read_dataset(find_set("musique-train100"), sample=20)
    with Waylore.open(tmp_path / "memory.waylore", extractor=None) as memory:
        for passage in (passage for page in dataset.pages[:400] for passage in page.passages):
            memory.add(passage.text, title=passage.title)
        asked = [Search(query=question.text, max_tokens=1_000) for question in dataset.questions]
        found = [memory_search(Agent(memory), each) for each in asked]
    stored = sum(count(f"{hit.title}\n{unfence(hit.text)}") for answer in found for hit in answer.hits)
    assert stored >= 0.8 * sum(count(answer.to_text()) for answer in found)
    assert all(count(answer.to_text()) <= 1_100 for answer in found)


def test_mark_names_a_passage_and_its_document(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        hidden = memory.add("The login of the office.", labels=["office"])
        crew = Agent(fill(memory), frozenset({"crew"}))
        text = memory_search(crew, Search(query="login", max_results=1)).to_text()
        [mark] = re.findall(r"^\[([0-9a-f]{8})\] Login · docs/login\.md$", text, re.MULTILINE)
        read = memory_get(crew, Get(id=mark))
        assert unfence(read.text) == "The login needs the session service."
        assert memory_get(crew, Get(id=read.document_id)).text == read.text
        for wrong in (mark[:7], f"{mark[:7]}%", memory.get(hidden).passages[0].id[:8], hidden[:8]):
            for call in (
                lambda id_: memory_get(crew, Get(id=id_)),
                lambda id_: memory_forget(crew, Forget(documents=(id_,))),
            ):
                with pytest.raises(NotFound, match="that you may see"):
                    call(wrong)
        owner = Agent(memory)
        gone = memory_forget(owner, Forget(documents=(mark, read.document_id)))
        assert gone.receipt
        assert gone.receipt.documents == [read.document_id]


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
    assert estimate_tokens(shown) <= tokens
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
        told = answer_call(agent, "memory_search", '{"query": "login", "max_results": 1}')
        assert told.model_dump(mode="json") == found
        assert found["hits"][0]["text"] in told.to_text()


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
