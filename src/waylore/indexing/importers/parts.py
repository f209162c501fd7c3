"""Puts contributions together from what others have cut and extracted already.

An importer knows a document's parts, what each claims and what each names; here they become one contribution.
Its identity is what it says and who may read it, so the same thing imported again is the same document. It
reads no format.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from waylore.indexing.assembly import statement_of
from waylore.indexing.pipeline import contribution
from waylore.text import normalise, occurrences
from waylore.types.identity import entity_id, identity
from waylore.types.knowledge import Claim, Contribution, Document, Entity, Fact, Mention, Passage

_APART = 2  # characters between two parts, as if a blank line stood there


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a document as someone else cut it: its text, what it claims and names, where it begins."""

    text: str
    claims: tuple[Claim, ...] = ()
    named: tuple[Entity, ...] = ()
    start: int | None = None  # behind the part before it, if nothing else is known


def framed(frame: Document, kind: str, *said: str, **fields: str) -> Document:
    """The frame as the document that says this to these readers; two kinds never share an identity."""
    own = identity("document", "imported", kind, repr(said), *sorted(frame.labels))
    return replace(frame, id=own, title=fields.get("title", ""), uri=fields.get("uri", ""))


def told(claim: Claim, frame: Document) -> Contribution:
    """A claim that comes without a text; the same claim by another source is another document."""
    said = (claim.subject, claim.predicate, claim.object, claim.statement, claim.source, str(claim.valid_from))
    own = framed(frame, "claim", *said, "value" if claim.is_value else "")
    document = replace(own, title=frame.title, uri=frame.uri, source=claim.source)
    statement = statement_of(claim)
    return contribution(document, statement, [replace(claim, statement=statement)])


def entity(name: str, type_: str = "", description: str = "", aliases: Sequence[str] = ()) -> Entity:
    """An entity by its name; an alias that is its name, or comes twice, is left out."""
    others = {normalise(alias): alias for alias in aliases if alias.strip()}
    others.pop(normalise(name), None)
    return Entity(entity_id(name), name, type_, description, tuple(others.values()))


def card(about: Entity, frame: Document) -> Contribution:
    """What is known of an entity as a document of its own, with its name for a title."""
    text = about.description or (f"{about.name}: {about.type}" if about.type else about.name)
    document = framed(frame, "entity", about.name, about.type, text, *about.aliases, title=about.name)
    return assembled(document, [Part(text)], [about])


def assembled(document: Document, parts: Iterable[Part], about: Sequence[Entity] = ()) -> Contribution:
    """A document of parts, in their order; what it is about has a mention of its own in every passage."""
    made = list(_placed(document, parts))
    passages = {p.id: p for told in reversed(made) for p in reversed(told.passages)}
    ordered = sorted(passages.values(), key=lambda p: p.start)
    mentions = {(m.entity_id, m.passage_id): m for told in made for m in told.mentions}
    own = {(e.id, p.id): Mention(e.id, p.id, 1, is_own=True) for e in about for p in ordered}
    kept = {key: replace(mentions.get(key, mention), is_own=True) for key, mention in own.items()}
    facts: dict[tuple[str, str], Fact] = {(f.id, f.passage_id): f for told in made for f in told.facts}
    return Contribution(
        document,
        tuple(replace(p, position=position) for position, p in enumerate(ordered)),
        tuple(_united([*about, *(e for told in made for e in told.entities)]).values()),
        tuple((mentions | kept).values()),
        tuple(facts.values()),
    )


def _placed(document: Document, parts: Iterable[Part]) -> Iterator[Contribution]:
    """Each part as a contribution of its own, its passages where they lie in the whole."""
    after = 0
    for part in parts:
        start = after if part.start is None else part.start
        told = _naming(contribution(document, part.text, part.claims), part.named)
        moved = (replace(p, start=p.start + start, end=p.end + start) for p in told.passages)
        yield replace(told, passages=tuple(moved))
        after = start + len(part.text) + _APART


def _naming(told: Contribution, named: Sequence[Entity]) -> Contribution:
    """With what it names besides: where the name stands, or in its first passage if it stands nowhere."""
    if not named:
        return told
    texts = {p.id: normalise(p.text) for p in told.passages}
    known = {(m.entity_id, m.passage_id) for m in told.mentions}
    found = (m for e in named for m in _mentions(e, texts, told.passages[0]))
    mentions = {(m.entity_id, m.passage_id): m for m in found}
    fresh = tuple(m for key, m in mentions.items() if key not in known)
    entities = tuple(_united([*told.entities, *named]).values())
    return replace(told, entities=entities, mentions=told.mentions + fresh)


def _mentions(entity: Entity, texts: Mapping[str, str], first: Passage) -> list[Mention]:
    name = normalise(entity.name)
    counts = {id_: occurrences(name, text) for id_, text in texts.items()}
    return [Mention(entity.id, id_, n) for id_, n in counts.items() if n] or [Mention(entity.id, first.id)]


def _united(entities: Iterable[Entity]) -> dict[str, Entity]:
    """Each entity once, as it came first, with what others know of it."""
    united: dict[str, Entity] = {}
    for other in entities:
        first = united.setdefault(other.id, other)
        described = first.description or other.description
        aliases = tuple(dict.fromkeys(first.aliases + other.aliases))
        united[other.id] = replace(first, type=first.type or other.type, description=described, aliases=aliases)
    return united
