"""What a search may have found, made by names alone."""

from waylore.config import Context
from waylore.protocols import Count
from waylore.retrieval.context import Rendered, Style, context
from waylore.types.identity import entity_id, fact_id
from waylore.types.knowledge import Document, Entity, Fact, Passage
from waylore.types.search import Found, Hit

STYLES: tuple[Style, ...] = ("passages", "graph", "narrative")
ROOMY = Context(max_tokens=10**6, graph_tokens=10**6)


def fact(
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


def entity(name: str, type_: str = "", description: str = "") -> Entity:
    return Entity(entity_id(name), name, type_, description)


def hit(name: str, text: str, *, title: str = "", uri: str = "", document: str = "") -> Hit:
    source = Document(document or f"document {name}", uri=uri)
    return Hit(Passage(name, source.id, text, title), source, 1.0, ())


def found(*hits: Hit, entities: tuple[Entity, ...] = (), facts: tuple[Fact, ...] = ()) -> Found:
    return Found("who?", hits, entities=entities, facts=facts)


def rendered(
    what: Found,
    style: Style = "passages",
    *,
    config: Context = Context(),  # noqa: B008
    count: Count = len,
) -> Rendered:
    return context(what, style=style, config=config, count=count)


AUTH = found(
    hit("p", "Change the provider with care.", title="Operations", uri="docs/ops.md"),
    entities=(
        entity("Auth Service", "concept", "Core authentication service."),
        entity("OAuth Provider", "tool", "External OAuth2 layer."),
    ),
    facts=(
        fact("OAuth Provider", "uses", "Google OAuth"),
        fact("Auth Service", "depends_on", "OAuth Provider", "It delegates logins", weight=8),
        fact("Login Flow", "part_of", "Auth Service"),
        fact("Auth Service", "status", "active", is_value=True),
        fact("User", "works_on", "Auth Service"),
    ),
)
