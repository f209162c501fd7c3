"""Facts, entities, hits and search results made from names alone."""

import re

from waylore.config import ContextConfig
from waylore.fence import RECALLED_NOTE, make_fence
from waylore.protocols import CountTokens
from waylore.retrieval.context.block import Layout
from waylore.retrieval.context.render import RenderedContext, render_context
from waylore.types.identity import entity_id, fact_id
from waylore.types.knowledge import Document, Entity, Fact, Passage
from waylore.types.search import Hit, SearchResult

KEY = b"of the samples"
NOTE_CHARACTERS = len(f"{RECALLED_NOTE}\n\n")
FENCE_CHARACTERS = len("<<recalled abcde\n\nabcde>>")
LAYOUTS: tuple[Layout, ...] = ("passages", "graph", "narrative")
ROOMY = ContextConfig(max_tokens=10**6, graph_tokens=10**6)


def make_fact(
    subject: str,
    predicate: str,
    object_: str,
    statement: str = "",
    *,
    weight: float = 5,
    is_value: bool = False,
) -> Fact:
    subject_id, object_id = entity_id(subject), "" if is_value else entity_id(object_)
    id_ = fact_id(subject_id, predicate, object_id or object_, is_entity=not is_value)
    return Fact(id_, subject_id, subject, predicate, object_, object_id, statement=statement, weight=weight)


def make_entity(name: str, type_: str = "", description: str = "") -> Entity:
    return Entity(entity_id(name), name, type_, description)


def make_hit(name: str, text: str, *, title: str = "", uri: str = "", document: str = "") -> Hit:
    source = Document(document or f"document {name}", uri=uri)
    return Hit(Passage(name, source.id, text, title), source, 1.0, ())


def make_result(*hits: Hit, entities: tuple[Entity, ...] = (), facts: tuple[Fact, ...] = ()) -> SearchResult:
    return SearchResult("who?", hits, entities=entities, facts=facts)


def render(
    result: SearchResult,
    layout: Layout = "passages",
    *,
    config: ContextConfig = ContextConfig(),  # noqa: B008
    count: CountTokens = len,
) -> RenderedContext:
    fence = make_fence(KEY, [hit.passage.text for hit in result.hits])
    return render_context(result, layout=layout, config=config, count=count, fence=fence)


def unfence(text: str) -> str:
    """Return a context without its note and the marks of its fence."""
    note, _, rest = text.partition("\n\n")
    assert note == (RECALLED_NOTE if text else "")
    return re.sub(r"^<<recalled ([a-z]+)\n(.*?)\n\1>>$", r"\2", rest, flags=re.DOTALL | re.MULTILINE)


AUTH = make_result(
    make_hit("p", "Change the provider with care.", title="Operations", uri="docs/ops.md"),
    entities=(
        make_entity("Auth Service", "concept", "Core authentication service."),
        make_entity("OAuth Provider", "tool", "External OAuth2 layer."),
    ),
    facts=(
        make_fact("OAuth Provider", "uses", "Google OAuth"),
        make_fact("Auth Service", "depends_on", "OAuth Provider", "It delegates logins", weight=8),
        make_fact("Login Flow", "part_of", "Auth Service"),
        make_fact("Auth Service", "status", "active", is_value=True),
        make_fact("User", "works_on", "Auth Service"),
    ),
)
