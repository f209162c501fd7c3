"""The agent's tools without a protocol: the budget holds whatever is stored; function calling has them too."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surfaces.agents import filled
from waylore import Waylore
from waylore.errors import ConfigError, Forbidden, QueryError
from waylore.surfaces.tools import tools
from waylore.surfaces.tools.arguments import LEAST_TOKENS, Add, Fetch, Forget, Get, Question, Search
from waylore.surfaces.tools.fit import cut, quoted, size
from waylore.surfaces.tools.tools import (
    Agent,
    call,
    memory_add,
    memory_forget,
    memory_get,
    memory_search,
    openai_tools,
)
from waylore.text import pieces
from waylore.types.knowledge import Metadata

TEXTS = st.text(st.sampled_from('login Mara\n"\\é–語🙂\t\x01.,;0A'), min_size=1).map(
    lambda text: f"login {text}"
)
LONG = st.builds(lambda text, times: " ".join([text] * times), TEXTS, st.integers(1, 300))
BUDGETS = st.integers(LEAST_TOKENS, 6_000)
DOCUMENTS = st.lists(
    st.fixed_dictionaries({"text": LONG, "title": LONG, "uri": st.just("") | LONG, "key": LONG}),
    min_size=1,
    max_size=4,
)


@contextmanager
def remembering(documents: list[dict[str, str]]) -> Iterator[Agent]:
    with TemporaryDirectory() as folder, Waylore.open(Path(folder) / "memory.waylore") as memory:
        for told in documents:
            facts = [("login", "needs", told["title"][:2_000]), (told["key"][:2_000], "is", "login")]
            metadata: Metadata = {"key": told["key"], "size": 3}
            memory.add(told["text"], title=told["title"], uri=told["uri"], facts=facts, metadata=metadata)
        yield Agent(memory)


def within(answer: Any, tokens: int) -> Any:
    """An answer whose JSON, however it is written, and whose text are within the budget."""
    told = answer.model_dump(mode="json")
    assert pieces(json.dumps(told, ensure_ascii=False)) <= tokens
    assert pieces(answer.readable()) <= tokens
    return told


@settings(max_examples=30)
@given(documents=DOCUMENTS, tokens=BUDGETS)
def test_answers_stay_within_their_budget(documents: list[dict[str, str]], tokens: int) -> None:
    with remembering(documents) as agent:
        found = within(memory_search(agent, Search(query="login", max_tokens=tokens)), tokens)
        whole = agent.memory.search("login", where=agent.where)
        assert [h["passage_id"] for h in found["hits"]] == [
            hit.passage.id for hit in whole.hits[: len(found["hits"])]
        ]
        assert bool(found["left_out"]) == (len(found["hits"]) < len(whole.hits))
        within(tools.search(agent, Question(query="login")), 4_000)
        within(memory_add(agent, Add(text=documents[0]["text"][:300], title=documents[0]["title"])), 4_000)
        ids = tuple(document.id for document in agent.memory.documents())
        for id_ in ids:
            within(tools.fetch(agent, Fetch(id=id_)), 16_000)
        gone = within(memory_forget(agent, Forget(documents=ids, max_tokens=tokens)), tokens)
        assert gone["documents"] == len(ids)


@settings(max_examples=30)
@given(documents=DOCUMENTS, tokens=BUDGETS)
def test_a_long_document_is_read_to_its_end(documents: list[dict[str, str]], tokens: int) -> None:
    with remembering(documents) as agent:
        for document in agent.memory.documents():
            read = ""
            told: Any = {"next_offset": 0}
            while (offset := told["next_offset"]) is not None:
                told = within(memory_get(agent, Get(id=document.id, offset=offset, max_tokens=tokens)), tokens)
                assert told["next_offset"] is None or told["next_offset"] > offset
                read += told["text"]
            assert read == tools.said(agent, document.id).text
            for passage in agent.memory.get(document.id).passages:
                assert passage.text.strip() in read


@given(text=LONG, tokens=st.integers(10, 200))
def test_what_is_cut_fits_and_says_so(text: str, tokens: int) -> None:
    shown = cut(text, tokens)
    assert quoted(shown) <= tokens
    assert shown == text or (shown.endswith(" …") and text.startswith(shown[:-2]))


def test_an_answer_that_fits_is_whole(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        filled(memory)
        answer = memory_search(Agent(memory), Search(query="login"))
        again = memory_search(Agent(memory), Search(query="login", max_tokens=max(size(answer), LEAST_TOKENS)))
        assert again == answer
        assert not answer.left_out


def test_function_calling_has_the_same_tools(tmp_path: Path) -> None:
    offered = openai_tools()
    assert [one["function"]["name"] for one in offered] == [
        *("memory_search", "memory_get", "memory_add", "memory_forget"),
    ]
    assert all(one["function"]["parameters"]["additionalProperties"] is False for one in offered)
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        agent = Agent(filled(memory))
        found = call(agent, "memory_search", '{"query": "login", "max_results": 1}')
        read = call(agent, "memory_get", {"id": found["hits"][0]["document_id"]})
        assert json.loads(json.dumps(read)) == read
        assert read["text"] == "The login needs the session service."


@pytest.mark.parametrize(
    ("name", "arguments", "error", "says"),
    [
        ("memory_burn", {}, ConfigError, "there is no tool 'memory_burn': use memory_search"),
        ("memory_search", "{", QueryError, "the arguments are not JSON"),
        ("memory_search", "[]", QueryError, "not a JSON object"),
        ("memory_search", "{}", QueryError, "query: Field required"),
        ("memory_add", {"text": "x"}, Forbidden, "read-only"),
    ],
)
def test_what_cannot_be_called_says_why(
    tmp_path: Path, name: str, arguments: Any, error: type[Exception], says: str
) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory, pytest.raises(error, match=says):
        call(Agent(memory, may_write=False), name, arguments)
