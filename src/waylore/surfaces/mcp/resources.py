"""What is stored, under addresses that a person can attach to a conversation: an entity, a document, a passage.

Read as Markdown, by whoever may see it, as far as a page goes; the tools read on where it ends.
"""

from collections.abc import Callable, Iterable, Iterator

from mcp import UriTemplate
from mcp_types import ResourceTemplate

from waylore.errors import NotFound
from waylore.surfaces.tools import answers
from waylore.surfaces.tools.fit import LONGEST_TOKEN, cut, first, fitted
from waylore.surfaces.tools.tools import PAGE_TOKENS, Agent, said
from waylore.types.results import Branch, Surroundings

FACTS = 200  # that are told of an entity


def read(agent: Agent, uri: str) -> str:
    """What is stored under an address."""
    for template, reader in READERS.items():
        if found := UriTemplate.parse(template).match(uri):
            return reader(agent, *map(str, found.values()))
    raise NotFound(f"there is nothing like {uri[:200]}: use {', '.join(READERS)}")


def entity(agent: Agent, name: str) -> str:
    """What is known of a name: for each entity that is called so, its description and facts."""
    known = agent.memory.graph(name, per_entity=FACTS, most=FACTS, where=agent.where)
    if not known:
        raise NotFound(f"nothing is known of {name[:200]}")
    return "\n\n".join(map(_entity, known))


def stored(agent: Agent, id_: str) -> str:
    """A document or a passage, with the facts it states."""
    what = said(agent, id_)

    def page(length: int) -> answers.Read:
        return answers.read(what, PAGE_TOKENS, 0, length)

    shown = fitted(LONGEST_TOKEN * PAGE_TOKENS, page, PAGE_TOKENS)
    return f"# {shown.readable()}"


READERS: dict[str, Callable[[Agent, str], str]] = {
    "waylore://entity/{name}": entity,
    "waylore://document/{id}": stored,
    "waylore://passage/{id}": stored,
}
TEMPLATES = [
    ResourceTemplate(
        uri_template=template,
        name=template.split("/")[2],
        description=" ".join((reader.__doc__ or "").split()),
        mime_type="text/markdown",
    )
    for template, reader in READERS.items()
]


def _entity(found: Surroundings) -> str:
    title = f"# {found.entity.name}" + (f" ({found.entity.type})" if found.entity.type else "")
    also = f"Also called {', '.join(found.entity.aliases)}." if found.entity.aliases else ""
    facts = "\n".join(first(_facts(found.branches), PAGE_TOKENS // 2))
    described = cut(found.entity.description, PAGE_TOKENS // 4)
    return "\n\n".join(filter(None, [title, described, also, facts]))


def _facts(branches: Iterable[Branch]) -> Iterator[str]:
    for branch in branches:
        said_so = f": {branch.fact.statement}" if branch.fact.statement else ""
        yield f"- {branch.fact}{said_so} (passage {branch.fact.passage_id})"
