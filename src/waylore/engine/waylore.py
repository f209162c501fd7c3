"""The facade: open a collection, add to it, search it, forget. No logic of its own.

Everything here is synchronous; the `a…` twins run the same methods in a thread. A `Waylore` may be used from
many threads at once.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from cachetools import TTLCache

from waylore import text
from waylore.config import Cache, Context, Resolution
from waylore.errors import ConfigError, ModelMismatch, NotFound, QueryError, StoreError
from waylore.indexing import exports, pipeline
from waylore.indexing.blocks import Limits
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.files.add import Task, add_files
from waylore.indexing.files.progress import Added, Progress
from waylore.indexing.importers import dispatch
from waylore.indexing.memory import repeats
from waylore.protocols import Count, Embedder, Extractor, Observer, Reranker
from waylore.recipes import CHAIN, RECIPES, Recipe, route
from waylore.retrieval.context import Rendered, Style, context
from waylore.retrieval.graph import same_as
from waylore.retrieval.graph.browse import surroundings
from waylore.retrieval.graph.validity import current
from waylore.retrieval.search import NO_EMBEDDER, search
from waylore.store.partial import left_out, partial_answers
from waylore.store.protocol import Store
from waylore.store.reads import answered
from waylore.store.urls import open_store
from waylore.types.identity import document_id
from waylore.types.knowledge import Claim, Contribution, Document, Fact, Metadata, Passage, Source
from waylore.types.results import Merge, Receipt, Statistics, Surroundings
from waylore.types.search import EVERYTHING, Filter, Found, Query

log = logging.getLogger(__name__)
BATCH = 256  # documents or vectors that one transaction writes
RULES = RuleExtractor()
Clock = Callable[[], datetime]
P = ParamSpec("P")
T = TypeVar("T")


def _now() -> datetime:
    return datetime.now(UTC)


def _awaited(method: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """The method run in a thread, for callers with an event loop."""

    @wraps(method)
    async def twin(*arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(method, *arguments, **options)

    return twin


def _observed(method: Callable[Concatenate["Waylore", P], T]) -> Callable[Concatenate["Waylore", P], T]:
    """The method, with the observer watching, if there is one."""

    @wraps(method)
    def watched(self: "Waylore", /, *arguments: P.args, **options: P.kwargs) -> T:
        if self._observer is None:
            return method(self, *arguments, **options)
        with self._observer.watching(method.__name__) as tell:
            result = method(self, *arguments, **options)
            tell(result)
            return result

    return watched


class Waylore:
    """One collection of knowledge, and an embedder to search it by meaning."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None = None,
        *,
        extractor: Extractor | None = RULES,
        functional: Iterable[str] = (),
        clock: Clock = _now,
        cache: Cache = Cache(),  # noqa: B008
        observer: Observer | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._observer = observer
        self._extractor = extractor
        self._functional = tuple(functional)
        self._clock = clock
        self._answers: TTLCache[object, Found] = TTLCache(cache.size, cache.seconds)
        self._kept_version = 0
        self._asked_for: Counter[str] = Counter()
        self._keeping = Lock()
        self._used: SimpleQueue[Found] = SimpleQueue()
        self._after_answers = ThreadPoolExecutor(1, thread_name_prefix="waylore-usage")
        with partial_answers():
            known = store.statistics()
        if problem := _mismatch(known, embedder):
            raise ModelMismatch(problem)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        collection: str = "default",
        embedder: Embedder | None = None,
        extractor: Extractor | None = RULES,
        functional: Iterable[str] = (),
        clock: Clock = _now,
        cache: Cache = Cache(),  # noqa: B008
        observer: Observer | None = None,
    ) -> Self:
        """Open a collection, making it if need be.

        Without an embedder only words are searched. `extractor` finds names and facts in what is added; by
        default rules do, and None leaves texts as they are. By `functional` predicates (`works_at`) a subject
        has one object at a time: a newer fact ends the older one. An `observer` is told what is asked.
        """
        store = open_store(str(url), collection)
        try:
            return cls(
                store,
                embedder,
                extractor=extractor,
                functional=functional,
                clock=clock,
                cache=cache,
                observer=observer,
            )
        except BaseException:
            store.close()
            raise

    # -- adding ----------------------------------------------------------------------------------------

    @_observed
    def add(
        self,
        text: str,
        *,
        title: str = "",
        uri: str = "",
        metadata: Metadata | None = None,
        labels: Iterable[str] = (),
        source: Source = "file",
        facts: Sequence[Claim | tuple[str, str, str]] = (),
    ) -> str:
        """Add a text and the facts it states; return the document's identity.

        Without `facts`, names and facts are found by the extractor. A text with the same `uri` replaces what
        was there. `labels` say who may read it: everyone, if there are none. Adding the same again changes
        nothing. Of a memory (`source="conversation"`, no `uri`) only what is new is stored: what the same
        readers have already is used once more, and if that is all of it, the identity is that of the document
        which has it.
        """
        readers = frozenset(labels)
        id_ = document_id(uri=uri, text=text, labels=readers)
        frame = self._document(id_, metadata=metadata, labels=readers, source=source)
        document = replace(frame, title=title, uri=uri)
        claims = [_claim(fact, source) for fact in facts]
        if source == "conversation" and not uri:
            return repeats.remember(self._store, self._embedder, self._extractor, document, text, claims)
        added = pipeline.contribution(document, text, claims, extractor=self._extractor)
        pipeline.write(self._store, self._embedder, [added])
        return id_

    @_observed
    def add_files(
        self,
        path: str | Path,
        *,
        root: str | Path | None = None,
        uri: str = "",
        metadata: Metadata | None = None,
        labels: Iterable[str] = (),
        limits: Limits = Limits(),  # noqa: B008
        prune: bool = False,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> Added:
        """Add a file, or all files of a folder that `.gitignore` does not leave out.

        Files that did not change cost a hash; a changed one replaces what it said; `prune` forgets those that
        vanished. May be stopped at any moment: the next run goes on. Addresses are paths below `root`, or as
        given; `uri` is that of one file that lies elsewhere. What could not be read is told in `refusals`.
        """
        frame = self._document("", metadata=metadata, labels=frozenset(labels), source="file")
        task = Task(Path(path), None if root is None else Path(root), frame, limits, prune, uri)
        return add_files(self._store, self._embedder, self._extractor, task, progress)

    @_observed
    def add_facts(
        self,
        facts: Iterable[Claim | tuple[str, str, str]],
        *,
        metadata: Metadata | None = None,
        labels: Iterable[str] = (),
        source: Source = "user_edit",
    ) -> tuple[str, ...]:
        """Add facts that come without a text; each is a document of its own, whose identity is returned.

        A fact that is there already is used once more instead; if it was heard in conversation, also where
        another document states it, or where only its spelling differs.
        """
        frame = self._document("", metadata=metadata, labels=frozenset(labels), source=source)
        told = [pipeline.stated(_claim(fact, source), frame) for fact in facts]
        batches = list(pipeline.batches(told, BATCH))
        if source != "file":
            return tuple(
                id_ for batch in batches for id_ in repeats.remember_facts(self._store, self._embedder, batch)
            )
        for batch in batches:
            pipeline.write(self._store, self._embedder, batch)
        return tuple(c.document.id for c in told)

    def part(self, one: str, other: str, *, labels: Iterable[str] = ()) -> str:
        """Say that two names are not of one thing, whatever documents or their likeness say.

        Returns the identity of a document that holds this; forget it, and what joined them joins them again.
        """
        frame = self._document("", metadata=None, labels=frozenset(labels), source="user_edit")
        told = pipeline.parted(one, other, frame)
        pipeline.write(self._store, self._embedder, [told])
        return told.document.id

    @_observed
    def import_from(
        self,
        path: str | Path,
        format: str = dispatch.AUTO,  # noqa: A002
        *,
        uri: str = "",
        metadata: Metadata | None = None,
        labels: Iterable[str] = (),
        limits: Limits = dispatch.LIMITS,
        progress: Callable[[int], None] = lambda _: None,
    ) -> dispatch.Imported:
        """Add what another program knows: triples, papers, or the graph of GraphRAG, LightRAG or an MCP memory.

        Broken lines are refused with their reason and passed over. Importing the same again changes nothing.
        `progress` is told how many documents so far; `uri` is what the file is called in refusals.
        """
        frame = self._document("", metadata=metadata, labels=frozenset(labels), source="file")
        return dispatch.imported(
            self._store, self._embedder, Path(path), format, frame, uri=uri, limits=limits, progress=progress
        )

    # -- asking ----------------------------------------------------------------------------------------

    @_observed
    def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        where: Filter = EVERYTHING,
        method: str = CHAIN.name,
        recipe: Recipe | None = None,
        as_of: datetime | None = None,
        reranker: Reranker | None = None,
        count_use: bool = True,
    ) -> Found:
        """Passages that bear on a question, best first, each with its explanation.

        `method` names a recipe, or is "auto" to have one chosen by the question; `recipe` is one of your own.
        Facts count if they are valid now, or `as_of` another time. The graph may add to the `top_k` hits of
        hybrid search, it takes none away.
        """
        if not query.strip():
            raise QueryError("there is nothing to search for: the question is empty")
        if top_k is not None and top_k < 1:
            raise QueryError(f"top_k is {top_k}; ask for at least one hit")
        wanted, chosen = (recipe, "") if recipe else _recipe(method, query)
        wanted = wanted if top_k is None else replace(wanted, top_k=top_k)
        if self._functional:
            wanted = replace(wanted, walk=replace(wanted.walk, functional=self._functional))
        with partial_answers():
            found = self._found(Query(query, where=where, as_of=as_of), wanted, chosen, reranker)
        if count_use and found.hits:
            self._used.put(found)
            self._after_answers.submit(self._count_uses)
        return found

    def context(
        self,
        found: Found,
        *,
        style: Style = "graph",
        config: Context = Context(),  # noqa: B008
        count: Count = text.pieces,
    ) -> Rendered:
        """The text to hand to a model, within a budget of tokens; `waylore.providers.tokens` counts exactly."""
        return context(found, style=style, config=config, count=count)

    def prewarm(self, *names: str, most: int = 20) -> int:
        """Answer ahead for entities: those named, or those asked for most; return how many that were."""
        asked = list(names) or [name for name, _ in self._asked_for.most_common(most)]
        for name in asked:
            self.search(name, count_use=False)
        return len(asked)

    @_observed
    def get(self, document: str, *, where: Filter = EVERYTHING) -> Contribution:
        """A document with all that it says."""
        found = self._store.contributions([document], where=where)
        if document not in found:
            raise NotFound(f"no document {document} that you may see")
        return found[document]

    def passage(self, passage: str, *, where: Filter = EVERYTHING) -> tuple[Passage, Document]:
        """A passage, and the document that it is of."""
        found = self._store.passages([passage], where=where)
        sources = self._store.sources([passage], where=where)
        if passage not in found or passage not in sources:
            raise NotFound(f"no passage {passage} that you may see")
        return found[passage], sources[passage]

    @_observed
    def facts(
        self,
        name: str,
        *,
        as_of: datetime | None = None,
        limit: int = 100,
        where: Filter = EVERYTHING,
    ) -> tuple[Fact, ...]:
        """What is known of an entity, strongest first: what held `as_of` a time, or all, each with its end."""
        query = Query(name, where=where, as_of=as_of)
        named = self._store.entities_by_names([name], where=where).get(name, ())
        ids = [entity.id for entity in named]
        told = self._store.facts_of_entities(ids, per_entity=limit, as_of=as_of, where=where)
        held = answered(self._store, current(query, told, self._functional))
        distinct = {fact.id: fact for id_ in ids for fact in held.get(id_, ())}
        return tuple(distinct.values())[:limit]

    @_observed
    def graph(
        self,
        name: str,
        *,
        hops: int = 1,
        per_entity: int = 10,
        most: int = 100,
        as_of: datetime | None = None,
        where: Filter = EVERYTHING,
    ) -> tuple[Surroundings, ...]:
        """What stands around the entities of a name, as trees of facts; nothing, if nobody is called so."""
        if not 1 <= hops <= 3:
            raise QueryError(f"hops is {hops}; look 1 to 3 hops far")
        query = Query(name, where=where, as_of=as_of)
        around = surroundings(query, hops=hops, per_entity=per_entity, most=most, functional=self._functional)
        return answered(self._store, around)

    def documents(
        self,
        *,
        under: str = "",
        after: Document | None = None,
        limit: int = 1_000,
        where: Filter = EVERYTHING,
    ) -> tuple[Document, ...]:
        """Documents by address, those that begin with `under`; the next page comes `after` the last of one."""
        last = (after.uri, after.id) if after else ("", "")
        return self._store.listed(under=under, after=last, limit=limit, where=where)

    def merges(
        self,
        name: str,
        *,
        where: Filter = EVERYTHING,
        config: Resolution = Resolution(),  # noqa: B008
    ) -> tuple[Merge, ...]:
        """With what a name is taken to be the same, then what it resembles, and why; `part` undoes it."""
        asked = Query(name, where=where, as_of=self._clock())
        return answered(self._store, same_as.merges(asked, config))

    def stats(self) -> Statistics:
        """How much there is, and the embedding model."""
        return self._store.statistics()

    # -- forgetting, moving ----------------------------------------------------------------------------

    @_observed
    def forget(self, *documents: str, where: Filter = EVERYTHING) -> Receipt:
        """Remove documents with all that nothing else supports; the receipt says what went.

        What `where` hides is left alone, as if it were not there.
        """
        if where != EVERYTHING:
            documents = tuple(self._store.documents(documents, where=where))
        return self._store.forget(documents)

    def verify_forgotten(self, receipt: Receipt) -> tuple[str, ...]:
        """What is left of what went, a line each; nothing, if it is gone from every table, index and page.

        Reads everything that is stored, in proportion to its size.
        """
        return self._store.remains(receipt)

    def exported(self) -> Generator[str]:
        """What `export` writes, a line at a time."""
        return exports.lines(self._store.statistics(), self._store.export())

    def compact(self) -> None:
        """Write the store anew without a byte that belongs to nothing; nobody else can write meanwhile."""
        self._store.compact()

    @_observed
    def export(self, path: str | Path, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Write everything to a file; return how many documents that is."""
        with Path(path).open("w", encoding="utf-8") as file:
            told = pipeline.counted(self._store.export(), progress)
            return exports.dump(self._store.statistics(), told, file)

    @_observed
    def import_(self, path: str | Path, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Add everything from an export, vectors included; return how many documents were new or changed."""
        with Path(path).open(encoding="utf-8") as file:
            model, contributions = exports.load(file)
            told = pipeline.counted(contributions, progress)
            return sum(self._store.write(batch, model=model) for batch in pipeline.batches(told, BATCH))

    @classmethod
    def reembed(
        cls,
        url: str | Path,
        *,
        embedder: Embedder,
        collection: str = "default",
        progress: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Give a collection another embedding model; go on where an interrupted run stopped.

        Searches go on with the old vectors until all the new ones are there. Returns how many were made.
        """
        store = open_store(str(url), collection)
        done = 0
        try:
            is_done = store.statistics().model == embedder.name
            while not is_done:
                while items := store.unembedded(embedder.name, limit=BATCH):
                    vectors = pipeline.vectors_of(items, embedder)
                    made = [replace(item, vector=vectors[item.embeddable]) for item in items]
                    store.stage(made, model=embedder.name)
                    done += len(made)
                    progress(done)
                is_done = store.adopt(embedder.name)
        finally:
            store.close()
        return done

    # -- closing ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish counting uses and let go of the store."""
        self._after_answers.shutdown(wait=True)
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- the same, awaited -----------------------------------------------------------------------------

    aadd = _awaited(add)
    aadd_files = _awaited(add_files)
    aadd_facts = _awaited(add_facts)
    aimport_from = _awaited(import_from)
    asearch = _awaited(search)
    acontext = _awaited(context)
    aprewarm = _awaited(prewarm)
    aget = _awaited(get)
    apassage = _awaited(passage)
    amerges = _awaited(merges)
    apart = _awaited(part)
    adocuments = _awaited(documents)
    afacts = _awaited(facts)
    agraph = _awaited(graph)
    astats = _awaited(stats)
    aforget = _awaited(forget)
    averify_forgotten = _awaited(verify_forgotten)
    acompact = _awaited(compact)
    aexport = _awaited(export)
    aimport_ = _awaited(import_)

    def _found(self, query: Query, recipe: Recipe, chosen: str, reranker: Reranker | None) -> Found:
        """An answer, kept for a while (S14). A write by anyone changes the version, and so the key."""
        known = self._store.statistics()
        problem = _mismatch(known, self._embedder)
        embedder = None if problem else self._embedder
        key = (query.text, repr(query.where), query.as_of, recipe, known.version)
        with self._keeping:
            if known.version != self._kept_version:  # what was kept of another can never be given again
                self._answers.clear()
                self._kept_version = known.version
            found = None if reranker or left_out() else self._answers.get(key)
        is_kept = found is not None
        if found is None:
            now = self._clock()
            valid = query if query.as_of else replace(query, as_of=now)
            found = search(self._store, embedder, valid, recipe, now=now, reranker=reranker)
            if problem:
                found = replace(found, missing=(f"dense: {problem}", *found.missing[1:]))
            if not reranker and set(found.missing) <= {NO_EMBEDDER}:
                with self._keeping:
                    self._answers[key] = found
        with self._keeping:
            self._asked_for.update(entity.name for entity in found.entities)
        return replace(found, chosen=chosen, is_kept=is_kept)

    def _count_uses(self) -> None:
        """Uses are worth counting, but not worth an error: a file that cannot be written can be read."""
        used: list[Found] = []
        while not self._used.empty():
            used.append(self._used.get())
        hits = [hit for found in used for hit in found.hits]
        facts = [fact.id for hit in hits if hit.path for fact in hit.path.facts]
        try:
            if hits:
                self._store.touch(passages=[hit.passage.id for hit in hits], facts=facts, at=self._clock())
        except StoreError as error:
            log.warning("uses were not counted: %s", error)

    def _document(
        self, id_: str, *, metadata: Metadata | None, labels: frozenset[str], source: Source
    ) -> Document:
        return Document(
            id=id_,
            source=source,
            metadata=metadata or {},
            labels=labels,
            recorded_at=self._clock(),
        )


def _recipe(method: str, question: str) -> tuple[Recipe, str]:
    """The recipe of a method, and why it was chosen where the choice was ours."""
    if method == "auto":
        rule = route(question)
        return RECIPES[rule.recipe], f"{rule.recipe}: {rule.reason}"
    if method not in RECIPES:
        raise ConfigError(f"there is no method {method!r}: use auto, {', '.join(RECIPES)}")
    return RECIPES[method], ""


def _mismatch(known: Statistics, embedder: Embedder | None) -> str:
    """What is wrong with searching a collection with this embedder, if anything."""
    if embedder is None or not known.documents or known.model == embedder.name:
        return ""
    return (
        f"the collection was embedded with {known.model or 'no model'}, not with {embedder.name}: "
        "open it with that model, or change it with `waylore reembed` (Waylore.reembed(url, embedder=…))"
    )


def _claim(fact: Claim | tuple[str, str, str], source: Source) -> Claim:
    return fact if isinstance(fact, Claim) else Claim(*fact, source=source)
