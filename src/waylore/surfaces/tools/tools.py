"""The tools of an agent: their arguments, what they do, and one table that MCP and function calling share.

A tool is a function from an agent and its arguments to an answer; its docstring is what the model reads when it
chooses, so it is written for that. An agent sees and forgets only what its labels let it see, and what it adds
has its labels. Nothing here knows a protocol: `mcp` speaks one, `openai_tools` and `call` serve the other.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, Forbidden, NotFound, QueryError
from waylore.recipes import CHAIN, HYBRID, Recipe
from waylore.surfaces.tools import answers
from waylore.surfaces.tools.answers import Answer, Forgotten, Read, Remembered, Said, Searched
from waylore.surfaces.tools.arguments import TOKENS, Add, Arguments, Fetch, Forget, Get, Question, Search
from waylore.surfaces.tools.fit import LONGEST_TOKEN, fitted
from waylore.surfaces.tools.research import Page, Results, page, results
from waylore.types.knowledge import Claim, Document, Passage
from waylore.types.search import Filter, Found

PAGE_TOKENS = 16_000  # of a document that a research client fetches whole


@dataclass(frozen=True, slots=True)
class Agent:
    """Who asks: in which memory, with which labels (all is visible, if None), and whether it may write."""

    memory: Waylore
    labels: frozenset[str] | None = None
    may_write: bool = True

    @property
    def where(self) -> Filter:
        """What it may see."""
        return Filter(labels=self.labels)


class Untitled(GenerateJsonSchema):
    """Schemas without a title for every field: a model reads them all, and the names say as much."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 (pydantic's signature)
        """Never."""
        return False


T = TypeVar("T", bound=Arguments)
R = TypeVar("R", bound=Answer)


@dataclass(frozen=True, slots=True)
class Tool(Generic[T, R]):
    """A tool: what it does, what it takes and answers, and whether it adds or takes away."""

    run: Callable[[Agent, T], R]
    arguments: type[T]
    answer: type[R]
    title: str
    is_reading: bool = True
    is_destructive: bool = False

    @property
    def name(self) -> str:
        """What a model calls it by."""
        return self.run.__name__

    @property
    def description(self) -> str:
        """What a model reads when it chooses."""
        return " ".join((self.run.__doc__ or "").split())

    @property
    def takes(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        schema = self.arguments.model_json_schema(schema_generator=Untitled)
        return {key: value for key, value in schema.items() if key not in {"title", "description"}}

    @property
    def gives(self) -> dict[str, Any]:
        """The JSON schema of its answer."""
        return self.answer.model_json_schema(schema_generator=Untitled, mode="serialization")


def memory_search(agent: Agent, asked: Search) -> Searched:
    """Search the memory: passages that bear on a question, best first, each with its path and why it was found.

    Use it before you answer anything that was said, decided or written down earlier.
    """
    found = _found(agent, asked.query, _recipe(asked))
    return fitted(len(found.hits), partial(answers.searched, found, asked.max_tokens), asked.max_tokens)


def memory_get(agent: Agent, asked: Get) -> Read:
    """Read a document or a passage in full, with the facts it states, by an id from memory_search.

    A long one is read piece by piece, with offset.
    """
    answer = partial(answers.read, said(agent, asked.id), asked.max_tokens, asked.offset)
    return fitted(LONGEST_TOKEN * asked.max_tokens, answer, asked.max_tokens)


def memory_add(agent: Agent, asked: Add) -> Remembered:
    """Remember something for later: a decision, a preference, what someone said or what you found out.

    What is known already is not stored again.
    """
    _write(agent)
    claims = [Claim(f.subject, f.predicate, f.object, source=asked.source) for f in asked.facts]
    labels = agent.labels or ()
    id_ = agent.memory.add(asked.text, title=asked.title, labels=labels, source=asked.source, facts=claims)
    return answers.remembered(agent.memory.get(id_, where=agent.where), TOKENS)


def memory_forget(agent: Agent, asked: Forget) -> Forgotten:
    """Forget documents for good, with every fact that only they support. It cannot be undone.

    Use it only when the user asks for it.
    """
    _write(agent)
    for document in asked.documents:
        agent.memory.get(document, where=agent.where)  # not found, if it may not be seen
    gone = agent.memory.forget(*dict.fromkeys(asked.documents))
    return fitted(1, partial(answers.forgotten, gone), asked.max_tokens)


def search(agent: Agent, asked: Question) -> Results:
    """Search for documents: for research clients that know search and fetch. Others use memory_search."""
    found = _found(agent, asked.query, CHAIN)
    return fitted(len(found.hits), partial(results, found, TOKENS), TOKENS)


def fetch(agent: Agent, asked: Fetch) -> Page:
    """The text of a document by its id from search: for research clients. Others use memory_get."""
    answer = partial(page, said(agent, asked.id), PAGE_TOKENS)
    return fitted(LONGEST_TOKEN * PAGE_TOKENS, answer, PAGE_TOKENS)


READING: tuple[Tool[Any, Any], ...] = (
    Tool(memory_search, Search, Searched, "Search the memory"),
    Tool(memory_get, Get, Read, "Read from the memory"),
)
WRITING: tuple[Tool[Any, Any], ...] = (
    Tool(memory_add, Add, Remembered, "Remember", is_reading=False),
    Tool(memory_forget, Forget, Forgotten, "Forget", is_reading=False, is_destructive=True),
)
RESEARCH: tuple[Tool[Any, Any], ...] = (
    Tool(search, Question, Results, "Search documents"),
    Tool(fetch, Fetch, Page, "Fetch a document"),
)
TOOLS = (*READING, *WRITING, *RESEARCH)


def answered(tool: Tool[T, R], agent: Agent, arguments: Mapping[str, Any]) -> R:
    """Run a tool with arguments as they come from a model; what is wrong with them is told by name."""
    try:
        checked = tool.arguments.model_validate(arguments)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
            for problem in error.errors(include_url=False)
        )
        raise QueryError(f"{tool.name} cannot be asked that way: {told}") from error
    return tool.run(agent, checked)


def said(agent: Agent, id_: str) -> Said:
    """A document by its id, or one passage of it by that one's."""
    try:
        return answers.said(agent.memory.get(id_, where=agent.where))
    except NotFound:
        passage, document = _passage(agent, id_)
        return answers.said(agent.memory.get(document.id, where=agent.where), passage)


def openai_tools(tools: Iterable[Tool[Any, Any]] = (*READING, *WRITING)) -> list[dict[str, Any]]:
    """The tools as OpenAI's chat API and those that follow it take them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.takes,
            },
        }
        for tool in tools
    ]


def call(agent: Agent, name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    """Run the tool that a model called, with its arguments as JSON or as a dict; the answer is JSON again."""
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        raise ConfigError(f"there is no tool {name!r}: use {', '.join(tool.name for tool in TOOLS)}")
    answer = answered(tool, agent, _read(arguments) if isinstance(arguments, str) else arguments)
    return dict(answer.model_dump(mode="json"))


def _read(arguments: str) -> Mapping[str, Any]:
    """Arguments from JSON; what is no object has no names and is refused as such."""
    try:
        read = json.loads(arguments)
    except json.JSONDecodeError as error:
        raise QueryError(f"the arguments are not JSON: {error}") from error
    if not isinstance(read, dict):
        raise QueryError(f"the arguments are {arguments[:80]}, not a JSON object")
    return read


def _recipe(asked: Search) -> Recipe:
    """S10: hybrid alone without the graph; with it, only what scores enough."""
    if not asked.use_graph:
        return replace(HYBRID, top_k=asked.max_results)
    least = CHAIN.chain.min_graph_score if asked.min_graph_score is None else asked.min_graph_score
    return replace(CHAIN, top_k=asked.max_results, chain=replace(CHAIN.chain, min_graph_score=least))


def _found(agent: Agent, query: str, recipe: Recipe) -> Found:
    return agent.memory.search(query, where=agent.where, recipe=recipe)


def _passage(agent: Agent, id_: str) -> tuple[Passage, Document]:
    try:
        return agent.memory.passage(id_, where=agent.where)
    except NotFound as error:
        raise NotFound(
            f"no document or passage {id_[:80]} that you may see: take an id from a search"
        ) from error


def _write(agent: Agent) -> None:
    if not agent.may_write:
        raise Forbidden("this memory is read-only here: ask whoever runs it for the right to write")
