"""Deduplicate memories: a text that only repeats stored sentences adds no rows.

A text is split into wordings (`memory.wording`). A wording is known if a stored passage has the same words, apart from
case, white space, punctuation, articles and the decoration of quoted results: bullets, quotation marks, citations,
headings, "as you told me". A different number, name, negation or order of words makes it new, because a stored
repetition does less harm than a lost correction. `split_new_from_known` decides and reads only its arguments;
`find_known_passages` queries the store with a bounded number of searches. Only the embedder is called, and synonyms are
not recognised.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from waylore.indexing import pipeline
from waylore.indexing.memory.known import KnownPassage, mark_known
from waylore.indexing.memory.wording import LEAD_IN, REPORTING, Wording, get_words, split_wordings
from waylore.protocols import Embedder, Extractor
from waylore.store.checks import admit_documents
from waylore.store.protocol import Store, read_whole_documents
from waylore.store.rows import group_pairs
from waylore.types.author import Author
from waylore.types.identity import document_id
from waylore.types.knowledge import STATUSES, Document, Fact, IndexedDocument, Metadata, NewFact
from waylore.types.search import Filter

CONVERSATION = "conversation"  # least trusted source
MAX_SEARCHES = 12  # keyword searches for one text
SEARCH_LIMIT = 20  # passages of each search
REMARK_WORDS = 6  # a new sentence with fewer words may refer to its neighbour: "That is not true."


@dataclass(frozen=True, slots=True)
class MemorySplit:
    """The new part of a text (all, some sentences, or nothing), and the passages that contain the rest."""

    new: str
    recalled: tuple[KnownPassage, ...] = ()


# -- deciding ------------------------------------------------------------------------------------------


def split_new_from_known(text: str, known: Sequence[KnownPassage]) -> MemorySplit:
    """Split a text into sentences that are new and passages that it repeats."""
    wordings = split_wordings(text)
    titles = {get_words(k.title) for k in known if k.title}
    is_known, recalled = mark_known(wordings, known)
    is_new = [
        not (each or (recalled and _is_introduction(s, titles))) for s, each in zip(wordings, is_known, strict=True)
    ]
    if not recalled:
        return MemorySplit(text)
    stored = [s.text for s, is_stored in zip(wordings, _add_neighbours(wordings, is_new), strict=True) if is_stored]
    return MemorySplit(text if len(stored) == len(wordings) else "\n".join(stored), recalled)


def _is_introduction(wording: Wording, titles: set[tuple[str, ...]]) -> bool:
    """Return whether a wording only introduces repeated passages."""
    words = set(wording.words)
    return wording.words in titles or (words <= LEAD_IN and not words.isdisjoint(REPORTING))


def _add_neighbours(wordings: Sequence[Wording], is_new: Sequence[bool]) -> list[bool]:
    """Return the wordings to store: the new ones, and the neighbours that a short remark may refer to."""
    is_remark = [new and len(s.words) < REMARK_WORDS for s, new in zip(wordings, is_new, strict=True)]
    around = [False, *is_remark, False]
    return [new or before or after for new, before, after in zip(is_new, around, around[2:], strict=False)]


# -- querying the store ----------------------------------------------------------------------------------


def find_known_passages(store: Store, embedder: Embedder | None, document: Document, text: str) -> list[KnownPassage]:
    """Return stored passages that are similar to a text, with the same labels and at least its metadata."""
    where = _select_similar(document)
    rankings = [store.lexical(part, top_k=SEARCH_LIMIT, where=where) for part in _group_sentences(text)]
    if not any(rankings) and embedder is not None and store.statistics().model == embedder.name:
        vector = embedder.embed_passages([text])[0]  # "I am what I am" has only stop words
        rankings.append(store.dense(vector, top_k=SEARCH_LIMIT, where=where))
    ids = dict.fromkeys(scored.id for ranking in rankings for scored in ranking)
    passages = store.passages(list(ids), where=where)
    documents = store.documents(list({p.document_id for p in passages.values()}), where=where)
    return [
        KnownPassage(p.id, p.document_id, p.text, p.title)
        for id_ in ids
        if (p := passages.get(id_)) and (d := documents.get(p.document_id)) and _has_same_readers(d, document)
    ]


def _group_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in at most MAX_SEARCHES groups."""
    sentences = [s.text for s in split_wordings(text)]
    size = -(-len(sentences) // MAX_SEARCHES)
    yield from (" ".join(sentences[at : at + size]) for at in range(0, len(sentences), max(size, 1)))


def _select_similar(document: Document) -> Filter:
    """Return a filter for documents that a document may repeat: with the same readers, and the same session or day."""
    similar = Filter(document.labels, document.metadata, document.user, document.agent, document.session)
    if document.session or not document.at:
        return similar
    since = document.at.replace(hour=0, minute=0, second=0, microsecond=0)
    return replace(similar, since=since, until=since + timedelta(days=1))


def _has_same_readers(existing: Document, new: Document) -> bool:
    is_same = (existing.labels, pipeline.get_scope(existing)) == (new.labels, pipeline.get_scope(new))
    return is_same and _includes(existing.metadata, new.metadata) and outlasts(existing, new)


def outlasts(existing: Document, new: Document) -> bool:
    """Return whether a stored document can replace a new one because it expires no earlier."""
    return existing.expires is None or (new.expires is not None and existing.expires >= new.expires)


def _includes(existing: Metadata, wanted: Metadata) -> bool:
    return all(key in existing and _to_list(existing[key]) == _to_list(value) for key, value in wanted.items())


def _to_list(value: object) -> object:
    return list(value) if isinstance(value, list | tuple) else value


# -- remembering ---------------------------------------------------------------------------------------


def remember(
    store: Store,
    embedder: Embedder | None,
    extractor: Extractor | None,
    document: Document,
    text: str,
    facts: Sequence[NewFact],
    *,
    author: Author,
) -> str:
    """Store the new part of a memory and count a use of the known part; return the id of its document."""
    split = split_new_from_known(text, find_known_passages(store, embedder, document, text))
    if split.recalled:
        store.count_uses(passages=[k.passage_id for k in split.recalled], at=document.recorded_at)
    if not split.new:
        stated = [pipeline.build_fact_document(fact, document) for fact in facts]
        remember_facts(store, embedder, stated, author=author)
        return split.recalled[0].document_id
    if split.new != text:
        scope = pipeline.get_scope(document)
        document = replace(document, id=document_id(text=split.new, labels=document.labels, scope=scope))
    indexed = pipeline.index_text(document, split.new, facts, extractor=extractor)
    pipeline.write(store, embedder, [indexed], author=author)
    return document.id


def remember_facts(
    store: Store,
    embedder: Embedder | None,
    documents: Sequence[IndexedDocument],
    *,
    author: Author,
    single_valued: Sequence[str] = (),
) -> tuple[str, ...]:
    """Store new facts and count a use of known ones; return the ids of their documents.

    A fact with a single-valued predicate is new if another object was stated since it was stored.
    """
    documents = admit_documents(author, documents)
    own = read_whole_documents(store, group_pairs((d.document.user, d.document.id) for d in documents))
    others = _find_assertions(store, documents)
    found = [_find_existing(d, own.get(d.document.id), others) for d in documents]
    known = [(d, was) for d, was in zip(documents, found, strict=True) if was and single_valued]
    ended = _find_ended(store, known, single_valued)
    existing = [was.id if was and was.id not in ended else "" for was in found]
    repeated = [d for d, id_ in zip(documents, existing, strict=True) if id_]
    if repeated:
        used = [f.id for d in repeated for f in d.facts]
        store.count_uses(facts=used, at=repeated[0].document.recorded_at)
    pipeline.write(store, embedder, [d for d, id_ in zip(documents, existing, strict=True) if not id_], author=author)
    return tuple(id_ or d.document.id for d, id_ in zip(documents, existing, strict=True))


def _find_assertions(store: Store, indexed: Sequence[IndexedDocument]) -> dict[str, tuple[Fact, Document]]:
    """Return the stored facts, each with the document of its most trusted assertion."""
    found: dict[str, tuple[Fact, Document]] = {}
    for labels, user in {(d.document.labels, d.document.user) for d in indexed}:
        where = Filter(labels=labels, user=user)
        ids = [f.id for d in indexed if (d.document.labels, d.document.user) == (labels, user) for f in d.facts]
        facts = store.facts(ids, statuses=STATUSES, where=where)
        passages = store.passages([f.passage_id for f in facts.values()], where=where)
        documents = store.documents([p.document_id for p in passages.values()], where=where)
        found |= {id_: (f, documents[passages[f.passage_id].document_id]) for id_, f in facts.items()}
    return found


def _find_ended(
    store: Store, known: Sequence[tuple[IndexedDocument, Document]], single_valued: Sequence[str]
) -> set[str]:
    """Return the ids of documents whose fact is stated again after its subject had another object."""
    ended: set[str] = set()
    for labels, user in {(new.document.labels, new.document.user) for new, _ in known}:
        again = [(new, was) for new, was in known if (new.document.labels, new.document.user) == (labels, user)]
        subjects = sorted({fact.subject_id for new, _ in again for fact in new.facts})
        where = Filter(labels=labels, user=user)
        told = store.assertions_of_entities(subjects, predicates=single_valued, newest=1, where=where)
        newest = {fact.series: fact for of_one in told.values() for fact in of_one}
        ended |= {was.id for new, was in again if _is_ended(was, newest.get(new.facts[0].series), new)}
    return ended


def _is_ended(was: Document, newest: Fact | None, again: IndexedDocument) -> bool:
    (fact,) = again.facts
    if newest is None or newest.id == fact.id or fact.valid_from or not again.document.at:
        return False
    return (was.at or was.recorded_at) < newest.began < again.document.at


def _find_existing(
    new: IndexedDocument, own: IndexedDocument | None, others: dict[str, tuple[Fact, Document]]
) -> Document | None:
    """Return the document that already states the fact, or None if the fact is new.

    Only facts from conversations may be repeated in other words: an edit changes the words on purpose.
    """
    (fact,) = new.facts
    if own is not None:
        is_equal = own.digest == _set_time(new, own.document.at).digest
        may_stand = fact.source == CONVERSATION and outlasts(own.document, new.document)
        is_same = is_equal or (may_stand and _is_restated(own, new))
        return own.document if is_same else None
    assertion, document = others.get(fact.id, (None, None))
    if assertion is None or document is None or fact.source != CONVERSATION:
        return None
    said = new.document if document.at else replace(new.document, at=None)  # a document without a time has no day
    is_same = _has_same_readers(document, said) and _get_validity(assertion) == _get_validity(fact)
    return document if is_same else None


def _set_time(indexed: IndexedDocument, at: datetime | None) -> IndexedDocument:
    """Return a document of a fact with another time of its statement."""
    passages = tuple(replace(passage, at=at) for passage in indexed.passages)
    return replace(indexed, document=replace(indexed.document, at=at), passages=passages)


def _is_restated(own: IndexedDocument, other: IndexedDocument) -> bool:
    """Return whether two statements of a fact differ only in case, punctuation or fillers."""
    (old,), (new,) = own.facts, other.facts
    types = {e.id: e.type for e in own.entities}
    return (
        _includes(own.document.metadata, other.document.metadata)
        and (_get_validity(old), old.weight, old.confidence) == (_get_validity(new), new.weight, new.confidence)
        and get_words(old.statement) == get_words(new.statement)
        and all(e.type in ("", types.get(e.id)) for e in other.entities)
    )


def _get_validity(fact: Fact) -> tuple[object, ...]:
    return fact.status, fact.valid_from, fact.valid_to
