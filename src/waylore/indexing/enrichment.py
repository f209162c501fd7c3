"""Let an extractor read stored passages, and store the new facts of each as a separate document.

Such a document has one silent passage, which states the new facts and is never a hit. It refers to the passage that was
read, and stores forget it together with the document of that passage. Known facts of the passage are left out. A
passage that this extractor has read before is skipped, so that an interrupted run can be continued.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from waylore.deadline import check_each
from waylore.indexing import pipeline
from waylore.indexing.assembly import assemble_document, compute_fact_id
from waylore.protocols import Embedder, Extraction, Extractor
from waylore.store.protocol import Store
from waylore.types.author import Author
from waylore.types.identity import identity, make_enrichment_uri, passage_id
from waylore.types.knowledge import ENRICHED, STATUSES, Document, Fact, IndexedDocument, Passage
from waylore.types.search import NO_FILTER, Filter

AGENT = "enrich:"  # prefix of a run's name; together they are the agent of its documents
BATCH_PASSAGES = 32  # passages that are read before new facts are written
MAX_KNOWN_FACTS = 10_000  # in a passage


@dataclass(frozen=True, slots=True)
class Enrichment:
    """The facts and entities that a run added, and the passages that it read.

    `known` passages were read by the same extractor before. `unread` passages got no answer, or the budget was used up.
    """

    run: str
    read: int = 0
    enriched: int = 0
    facts: int = 0
    entities: int = 0
    known: int = 0
    unread: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"run {self.run}: {self.read:,} passages read in {self.seconds:.1f} s, {self.facts:,} facts of "
            f"{self.entities:,} entities added to {self.enriched:,} of them; {self.known:,} were read before, "
            f"{self.unread:,} were not read"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, as every surface writes them in JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class EnrichmentRun:
    """The parameters of a run: its name and time, the filter and number of passages, and the author."""

    name: str
    now: datetime
    where: Filter
    limit: int
    author: Author


def enrich_passages(
    store: Store,
    embedder: Embedder | None,
    extractor: Extractor,
    run: EnrichmentRun,
    *,
    by_filter: bool,
    progress: Callable[[Enrichment], None],
) -> Enrichment:
    """Read the most used passages, or all passages that the filter of a run selects, and write their new facts."""
    start, done = time.monotonic(), Enrichment(run.name)
    chosen = islice(_list_passages(store, run) if by_filter else _list_used(store, run), run.limit)
    for ids in check_each(pipeline.split_into_batches(chosen, BATCH_PASSAGES)):
        fresh = _select_new(store, extractor, run, ids)
        extractions = _extract(extractor, fresh)
        added = _build_documents(store, extractor, run, fresh, extractions)
        pipeline.write(store, embedder, added, author=run.author)
        _forget_orphans(store, run, added)
        before, done = done, _count(done, len(ids), extractions, added, time.monotonic() - start)
        progress(done)
        if fresh and done.read == before.read:
            break  # no passage of the batch got an answer: the budget is used up or the model does not answer
    return done


def list_enrichments(store: Store, run: str) -> list[str]:
    """Return the ids of the documents of a run, of all users."""
    users, found = [""], dict[str, None]()
    while page := store.users(after=users[-1], limit=pipeline.PAGE):
        users += [each.user for each in page]
    for user in users:
        where = Filter(agent=AGENT + run, user=user)
        found |= dict.fromkeys(
            document.id for document in pipeline.list_documents(store, make_enrichment_uri(""), where=where)
        )
    return list(found)


# -- which passages --------------------------------------------------------------------------------------


def _list_used(store: Store, run: EnrichmentRun) -> Iterator[str]:
    """Yield the passages that were hits, the most used first."""
    yield from (scored.id for scored in store.most_used(limit=run.limit, where=run.where))


def _list_passages(store: Store, run: EnrichmentRun) -> Iterator[str]:
    """Yield the passages that the filter selects: the most used first, then the others by address."""
    used = list(_list_used(store, run))
    yield from used
    seen = set(used)
    for batch in pipeline.split_into_batches(pipeline.list_documents(store, where=run.where), BATCH_PASSAGES):
        indexed = store.get_indexed_documents([each.id for each in batch], where=run.where)
        passages = (passage for each in batch if each.id in indexed for passage in indexed[each.id].passages)
        yield from (passage.id for passage in passages if passage.id not in seen and not passage.is_silent)


def _select_new(
    store: Store, extractor: Extractor, run: EnrichmentRun, ids: Sequence[str]
) -> list[tuple[Document, Passage]]:
    """Return the passages, with their documents, that the extractor has not read yet."""
    passages, sources = store.passages(ids, where=run.where), store.sources(ids, where=run.where)
    stored = store.digests([make_id(extractor, id_) for id_ in ids])
    return [
        (sources[id_], passages[id_])
        for id_ in ids
        if id_ in passages and id_ in sources and make_id(extractor, id_) not in stored
    ]


# -- new facts ------------------------------------------------------------------------------------------


def make_id(extractor: Extractor, passage: str) -> str:
    """Return the id of the document that an extractor adds for a passage, the same in every run."""
    return identity("document", "enrichment", extractor.name, passage)


def _extract(extractor: Extractor, fresh: Sequence[tuple[Document, Passage]]) -> list[Extraction]:
    """Return the extraction of each passage; consecutive passages of one document are read in one call."""
    groups = [list(group) for _, group in groupby(fresh, key=lambda each: each[0].id)]
    with ThreadPoolExecutor(extractor.concurrency, thread_name_prefix="waylore-enrich") as pool:
        reads = [
            pool.submit(copy_context().run, extractor.extract, group[0][0], [passage for _, passage in group])
            for group in groups
        ]
        return [extraction for read in reads for extraction in read.result()]


def _build_documents(
    store: Store,
    extractor: Extractor,
    run: EnrichmentRun,
    fresh: Sequence[tuple[Document, Passage]],
    extractions: Sequence[Extraction],
) -> list[IndexedDocument]:
    ids = [passage.id for _, passage in fresh]
    stated = store.facts_of_passages(ids, per_passage=MAX_KNOWN_FACTS, statuses=STATUSES, where=run.where)
    read = [(*each, extraction) for each, extraction in zip(fresh, extractions, strict=True)]
    found = [
        build_enrichment(make_id(extractor, passage.id), document, passage, extraction, stated.get(passage.id, ()), run)
        for document, passage, extraction in read
        if not extraction.provisional
    ]
    return [each for each in found if each.facts]


def build_enrichment(
    id_: str, document: Document, passage: Passage, extraction: Extraction, stated: Iterable[Fact], run: EnrichmentRun
) -> IndexedDocument:
    """Index the new facts that an extractor adds to a passage as staged facts."""
    known = {fact.id for fact in stated}
    added = tuple(
        replace(fact, source="system", status="staged")
        for fact in extraction.facts
        if not fact.is_pair and compute_fact_id(fact) not in known
    )
    names = {name for fact in added for name in (fact.subject, fact.object)}
    own = replace(
        extraction, facts=added, names={name: type_ for name, type_ in extraction.names.items() if name in names}
    )
    frame = replace(
        document,
        id=id_,
        title="",
        uri=make_enrichment_uri(document.id),
        source="system",
        metadata={**document.metadata, ENRICHED: passage.id},
        recorded_at=run.now,
        agent=AGENT + run.name,
        session="",
    )
    silent = Passage(passage_id(id_, ""), id_, "", speaker=passage.speaker, at=passage.at)
    return replace(assemble_document(frame, [silent], [own]), mentions=())


def _forget_orphans(store: Store, run: EnrichmentRun, added: Sequence[IndexedDocument]) -> None:
    """Forget new facts of passages that were forgotten in the meantime."""
    of = {str(each.document.metadata[ENRICHED]): each.document.id for each in added}
    existing = _list_existing(store, list(of), added)
    orphans = [id_ for passage, id_ in of.items() if passage not in existing]
    if orphans:
        store.forget(orphans, author=run.author)


def _list_existing(store: Store, passages: Sequence[str], added: Sequence[IndexedDocument]) -> set[str]:
    users = {each.document.user for each in added}
    return {id_ for user in users for id_ in store.passages(passages, where=replace(NO_FILTER, user=user))}


def _count(
    done: Enrichment, chosen: int, extractions: Sequence[Extraction], added: Sequence[IndexedDocument], seconds: float
) -> Enrichment:
    read = sum(not extraction.provisional for extraction in extractions)
    return replace(
        done,
        read=done.read + read,
        enriched=done.enriched + len(added),
        facts=done.facts + sum(len(each.facts) for each in added),
        entities=done.entities + sum(len(each.entities) for each in added),
        known=done.known + chosen - len(extractions),
        unread=done.unread + len(extractions) - read,
        seconds=seconds,
    )
