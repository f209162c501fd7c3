"""Read entities, documents and passages as Markdown under `waylore://` addresses, for people who attach them.

An agent reads only visible documents. A text ends at the length of a page; the tools read the rest.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from mcp import UriTemplate
from mcp_types import ResourceTemplate

from waylore.errors import NotFound
from waylore.fence import RECALLED_NOTE, to_line, to_title
from waylore.surfaces.tools import answers
from waylore.surfaces.tools.fit import MAX_TOKEN_LENGTH, fit_answer, shorten, take_lines
from waylore.surfaces.tools.tools import PAGE_TOKENS, Agent, read_stored
from waylore.types.identity import make_mark
from waylore.types.knowledge import Entity
from waylore.types.relations import RelatedFact

MAX_FACTS = 200  # facts of an entity


def read(agent: Agent, uri: str) -> str:
    """Return the text of a resource."""
    for template, reader in READERS.items():
        if values := UriTemplate.parse(template).match(uri):
            return reader(agent, *map(str, values.values()))
    raise NotFound(f"no resource {uri[:200]}; use {', '.join(READERS)}")


def read_entity(agent: Agent, name: str) -> str:
    """Return the description and the facts of every thing with this name."""
    answer = agent.memory.related(name, limit=MAX_FACTS)
    things = [agent.memory.related(each.id, limit=MAX_FACTS) for each in answer.candidates] or [answer]
    if not all(thing.entities for thing in things):
        raise NotFound(f"no entity {name[:200]}; find names with memory_search")
    return "\n\n".join([RECALLED_NOTE, *(_format_entity(thing.entities[0], thing.facts) for thing in things)])


def read_text(agent: Agent, id_: str) -> str:
    """Return a document or a passage, with the facts it states."""
    stored = read_stored(agent, id_)
    make_page = partial(answers.make_read_answer, stored, PAGE_TOKENS, agent.memory.make_fence(stored.text), 0)
    return fit_answer(MAX_TOKEN_LENGTH * PAGE_TOKENS, make_page, PAGE_TOKENS).to_text()


READERS: dict[str, Callable[[Agent, str], str]] = {
    "waylore://entity/{name}": read_entity,
    "waylore://document/{id}": read_text,
    "waylore://passage/{id}": read_text,
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


def _format_entity(entity: Entity, related: Iterable[RelatedFact]) -> str:
    title = f"# {to_title(entity.name)}" + (f" ({to_title(entity.type)})" if entity.type else "")
    aliases = f"Also called {to_line(', '.join(entity.aliases))}." if entity.aliases else ""
    facts = "\n".join(take_lines(_format_facts(related), PAGE_TOKENS // 2))
    description = shorten(to_line(entity.description), PAGE_TOKENS // 4)
    return "\n\n".join(filter(None, [title, description, aliases, facts]))


def _format_facts(related: Iterable[RelatedFact]) -> Iterator[str]:
    for each in related:
        fact = each.assertion.fact
        statement = f": {fact.statement}" if fact.statement else ""
        yield to_line(f"- {fact}{statement} (passage {make_mark(fact.passage_id)})")
