"""Find the statements of documents about a name, and replace them by marks.

A statement is a sentence, a line of a list or a row of a table that contains one of the names. Titles, headings and
metadata with a name are removed too. Statements about the same thing with another word, such as "she", are not found.
The address and the user of a document, and the speaker of a turn, cannot be removed: forget a document that has a name
there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from waylore.deadline import check_each
from waylore.errors import ArgumentError
from waylore.indexing import pipeline
from waylore.indexing.extractors.markup import cut_sentences
from waylore.protocols import Embedder
from waylore.store.protocol import Store
from waylore.text import count_occurrences, normalise
from waylore.types.author import Author
from waylore.types.identity import entity_id, passage_id
from waylore.types.knowledge import STATUSES, Document, Entity, Fact, IndexedDocument, Mention, Passage
from waylore.types.results import Receipt
from waylore.types.search import Filter

BATCH = 100  # documents that are read at a time
MARK = "[removed]"  # replaces a statement in a passage


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document that contains a name, and the statements with the name.

    `is_bound` if its address, its user or a speaker contains the name, so removing statements is not enough.
    """

    document: Document
    statements: tuple[str, ...]
    is_bound: bool


class Names:
    """Names to search for, as whole words in any case."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(dict.fromkeys(map(normalise, names)))
        self.entities = frozenset(map(entity_id, self._names))

    def are_in(self, text: str) -> bool:
        """Return whether a text contains one of the names."""
        wanted = normalise(text)
        return any(count_occurrences(name, wanted) for name in self._names)


def find_named(store: Store, names: Names, where: Filter, progress: Callable[[int], None]) -> Iterator[NamedDocument]:
    """Yield the documents that contain a name, by address. Every document of the filter is read."""
    listed = pipeline.report_progress(pipeline.list_documents(store, where=where), progress)
    for batch in check_each(pipeline.split_into_batches(listed, BATCH)):
        indexed = store.get_indexed_documents([document.id for document in batch], where=where)
        found = (describe_document(indexed[each.id], names) for each in batch if each.id in indexed)
        yield from (each for each in found if each)


def redact_documents(
    store: Store, embedder: Embedder | None, names: Names, ids: Sequence[str], where: Filter, *, author: Author
) -> Receipt:
    """Remove the statements about names from documents, and return a receipt."""
    before = list(store.get_indexed_documents(ids, where=where).values())
    for found in (describe_document(indexed, names) for indexed in before):
        if found and found.is_bound:
            named = found.document.uri or found.document.id
            raise ArgumentError(f"documents must not have a name in their address, user or speaker: forget {named}")
    after = [remove_statements(indexed, names) for indexed in before]
    pipeline.write(store, embedder, after, author=author)
    old, new = _collect_ids(before), _collect_ids(after)
    entities, facts = sorted(old[1] - new[1]), sorted(old[2] - new[2])
    still = {*store.entities(entities, where=where), *store.facts(facts, statuses=STATUSES, where=where)}
    receipt = Receipt(
        passages=tuple(sorted(old[0] - new[0])),
        entities=tuple(each for each in entities if each not in still),
        facts=tuple(each for each in facts if each not in still),
    )
    return replace(receipt, unconfirmed=store.confirm_removal(receipt))


def _collect_ids(documents: Sequence[IndexedDocument]) -> tuple[set[str], set[str], set[str]]:
    """Return the ids of the passages, entities and facts of documents."""
    return (
        {passage.id for each in documents for passage in each.passages},
        {entity.id for each in documents for entity in each.entities},
        {fact.id for each in documents for fact in each.facts},
    )


def describe_document(indexed: IndexedDocument, names: Names) -> NamedDocument | None:
    """Return the statements of a document about names; None if it contains none of the names."""
    document = indexed.document
    said = [piece for passage in indexed.passages for piece in _list_statements(passage.text, names)]
    said += [str(fact) for fact in _list_facts(indexed) if not said and _is_about(fact, names)]
    bound = (document.uri, document.user, document.agent, document.session, *(p.speaker for p in indexed.passages))
    is_bound = any(map(names.are_in, bound))
    if not said and not is_bound and not any(map(names.are_in, _list_labels(indexed))):
        return None
    return NamedDocument(document, tuple(dict.fromkeys(said)), is_bound)


def remove_statements(indexed: IndexedDocument, names: Names) -> IndexedDocument:
    """Return a document without its statements about names, without vectors."""
    texts = {passage.id: _redact(passage.text, names) for passage in indexed.passages}
    ids = {id_: passage_id(indexed.document.id, text) for id_, text in texts.items()}
    passages = {ids[p.id]: _redact_passage(p, ids[p.id], texts[p.id], names) for p in reversed(indexed.passages)}
    kept = [replace(fact, passage_id=ids[fact.passage_id], vector=None) for fact in _keep_facts(indexed, texts, names)]
    mentions = _keep_mentions(indexed, passages, ids, kept, names)
    ends = {end for fact in kept for end in fact.ends} | {mention.entity_id for mention in mentions}
    return IndexedDocument(
        _redact_document(indexed.document, names),
        tuple(sorted(passages.values(), key=lambda passage: (passage.position, passage.id))),
        tuple(_redact_entity(entity, names) for entity in indexed.entities if entity.id in ends),
        tuple(mentions),
        tuple(fact for fact in kept if fact.is_typed),
        tuple(fact for fact in kept if not fact.is_typed),
    )


def _list_statements(text: str, names: Names) -> list[str]:
    """Return the sentences of a text with a name; the whole text if a name spans two sentences."""
    if not names.are_in(text):
        return []
    pieces = [piece.strip() for piece in cut_sentences(text)]
    return [piece for piece in pieces if names.are_in(piece)] or [text]


def _redact(text: str, names: Names) -> str:
    """Return a text with a mark in place of each statement about a name."""
    if not names.are_in(text):
        return text
    pieces = [_mark(piece) if names.are_in(piece) else piece for piece in cut_sentences(text)]
    redacted = "".join(pieces)
    return MARK if names.are_in(redacted) else redacted


def _mark(piece: str) -> str:
    """Return a mark with the white space around the sentence."""
    words = piece.strip()
    before, _, after = piece.partition(words)
    return f"{before}{MARK}{after}"


def _redact_passage(passage: Passage, id_: str, text: str, names: Names) -> Passage:
    title = "" if names.are_in(passage.title) else passage.title
    headings = tuple(heading for heading in passage.headings if not names.are_in(heading))
    return replace(passage, id=id_, text=text, title=title, headings=headings, vector=None)


def _redact_document(document: Document, names: Names) -> Document:
    title = "" if names.are_in(document.title) else document.title
    return replace(document, title=title, metadata=dict(_redact_metadata(document.metadata, names)))


def _redact_metadata(metadata: Mapping[str, Any], names: Names) -> Iterator[tuple[str, Any]]:
    for key, value in metadata.items():
        if isinstance(value, list | tuple):
            yield key, [each for each in value if not names.are_in(str(each))]
        elif not names.are_in(str(value)):
            yield key, value


def _redact_entity(entity: Entity, names: Names) -> Entity:
    description = "" if names.are_in(entity.description) else entity.description
    aliases = tuple(alias for alias in entity.aliases if not names.are_in(alias))
    return replace(entity, description=description, aliases=aliases, vector=None)


def _list_facts(indexed: IndexedDocument) -> tuple[Fact, ...]:
    return (*indexed.facts, *indexed.pairs)


def _is_about(fact: Fact, names: Names) -> bool:
    words = (fact.subject, fact.predicate, fact.object, fact.statement)
    return not names.entities.isdisjoint(fact.ends) or any(map(names.are_in, words))


def _keep_facts(indexed: IndexedDocument, texts: Mapping[str, str], names: Names) -> list[Fact]:
    """Return the facts that neither contain a name nor come from a removed sentence."""
    before = {passage.id: passage.text for passage in indexed.passages}
    return [
        fact
        for fact in _list_facts(indexed)
        if not _is_about(fact, names) and _is_left(fact, before[fact.passage_id], texts[fact.passage_id])
    ]


def _is_left(fact: Fact, before: str, after: str) -> bool:
    """Return whether a passage still contains the statement of a fact, or else its two names."""
    words = [fact.statement] if fact.statement and fact.statement in before else [fact.subject, fact.object]
    return before == after or all(word in after for word in words if word in before)


def _keep_mentions(
    indexed: IndexedDocument,
    passages: Mapping[str, Passage],
    ids: Mapping[str, str],
    kept: Sequence[Fact],
    names: Names,
) -> list[Mention]:
    """Return the mentions of other entities, counted again in changed passages."""
    entities = {entity.id: entity for entity in indexed.entities}
    stated = {(end, fact.passage_id) for fact in kept for end in fact.ends}
    found = {}
    for mention in indexed.mentions:
        entity, passage = entities[mention.entity_id], passages[ids[mention.passage_id]]
        is_changed = passage.id != mention.passage_id or (mention.is_own and not passage.title)
        counts = [
            count_occurrences(normalise(name), normalise(passage.text)) for name in (entity.name, *entity.aliases)
        ]
        is_own = mention.is_own and bool(passage.title)
        is_gone = is_changed and not any(counts) and not is_own and (entity.id, passage.id) not in stated
        if names.are_in(entity.name) or is_gone:
            continue
        count = max(counts[0], 1) if is_changed else mention.count
        found[entity.id, passage.id] = Mention(entity.id, passage.id, count, is_own)
    return list(found.values())


def _list_labels(indexed: IndexedDocument) -> Iterator[str]:
    """Yield the texts of a document outside of its passages: titles, headings, metadata, and its entities."""
    yield indexed.document.title
    yield from (str(value) for value in indexed.document.metadata.values())
    for passage in indexed.passages:
        yield from (passage.title, *passage.headings)
    for entity in indexed.entities:
        yield from (entity.name, entity.description, *entity.aliases)
