"""The facade: open a collection, add to it, search it, forget. Each method checks its arguments and calls one stage.

Everything here is synchronous; the `a…` twins run the same methods in a thread. A `Waylore` may be used from
many threads at once.
"""

import copy
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, get_args

from waylore import text as texts
from waylore.config import CacheConfig, ContextConfig
from waylore.dates import Moment, to_datetime
from waylore.deadline import check_each
from waylore.engine import arguments, transfer
from waylore.engine.answers import Answers, describe_mismatch
from waylore.engine.arguments import FactLike, Strings, Where
from waylore.engine.wrappers import check_call, make_async, make_async_generator, observe
from waylore.errors import ArgumentError, ModelMismatch, NotFound
from waylore.fence import Fence, make_fence
from waylore.indexing import exports, pipeline
from waylore.indexing.blocks import Limits
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.files.addresses import find_address, locate
from waylore.indexing.files.progress import AddReport, Progress, merge_reports
from waylore.indexing.files.task import Task
from waylore.indexing.importers import dispatch
from waylore.indexing.importers.dispatch import ImportReport
from waylore.indexing.memory import repeats
from waylore.lengths import MAX_QUERY, MAX_TEXT, MAX_TITLE
from waylore.project import find_project_folder
from waylore.protocols import CountTokens, Embedder, Extractor, Observer, Reranker
from waylore.recipes import AUTO, Recipe, TurnShare
from waylore.retrieval.context.block import Layout
from waylore.retrieval.context.render import RenderedContext, count_hits, render_context
from waylore.retrieval.graph import same_as
from waylore.retrieval.graph.validity import MAX_ASSERTIONS, select_current
from waylore.store.partial import partial_answers
from waylore.store.protocol import Store
from waylore.store.reads import run_stage
from waylore.store.receipts import hide_name
from waylore.store.urls import open_store, parse_url
from waylore.types.author import OWNER, Author
from waylore.types.identity import MARK_DIGITS, document_id, get_file, is_id
from waylore.types.knowledge import (
    SAME,
    USER_NAME,
    Document,
    Fact,
    IndexedDocument,
    Metadata,
    NewFact,
    Passage,
    Source,
    get_enriched,
    has_ended,
)
from waylore.types.messages import Message
from waylore.types.results import AddedId, DayCounts, Merge, Receipt, RememberReport, Statistics, UserCounts
from waylore.types.search import NO_FILTER, Filter, GroupBy, Hit, Query, SearchResult

if TYPE_CHECKING:  # a search does not need these modules
    from waylore.indexing.enrichment import Enrichment
    from waylore.indexing.redaction import NamedDocument
    from waylore.indexing.secrets.sieve import Sieve
    from waylore.retrieval.relations.predicates import PredicateMatcher
    from waylore.types.audit import AuditEntry, Verb
    from waylore.types.relations import Connection, Direction, EntityList, Related
    from waylore.types.views import Assertion, ChangeList, Profile, Provenance, Timeline

RULES = RuleExtractor()
MAX_MATCHING = 1_000  # passages that `forget(matching=…)` examines
MAX_ENRICHED = 10_000  # passages that one call of `enrich` reads
MAX_AROUND = 50  # turns before and after a passage
MAX_LISTED_ASSERTIONS = 256  # assertions of one subject and predicate, in a list of this many facts
EXPIRED_PAGE = 1_000  # expired documents that are read at a time
BATCH_FACTS = 1_024  # facts in one transaction; no fewer than a request may have, so a request is written as a whole
Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


def _read_clock(clock: Clock, timezone: tzinfo) -> datetime:
    return to_datetime(clock(), "clock").astimezone(timezone)


def _ignore(_: object) -> None:
    """Ignore progress."""


class Waylore:
    """One collection of knowledge, and an embedder to search it by meaning."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None = None,
        *,
        extractor: Extractor | str | None = RULES,
        single_valued: Strings = (),
        clock: Clock = _now,
        timezone: str = "UTC",
        cache: CacheConfig | float | None = CacheConfig(),  # noqa: B008
        observer: Observer | None = None,
        method: str | Recipe = AUTO,
        top_k: int | None = None,
        reranker: Reranker | None = None,
        author: Author = OWNER,
        scrub: bool = True,
    ) -> None:
        if isinstance(store, str | bytes | Path):
            raise ArgumentError(f"store must be an open Store; use Waylore.open({str(store)!r})")
        self._closed = Event()
        self._author = arguments.check_type("author", author, Author)
        self._scrub = arguments.check_type("scrub", scrub, bool)
        self._store = store
        self._get_secret = lru_cache(maxsize=1)(partial(_read_secret, store))  # once for all views
        self._embedder = arguments.check_embedder(embedder)
        self._observer = arguments.check_observer(observer)
        self._extractor = arguments.check_extractor(extractor, RULES)
        self._single_valued = arguments.to_strings("single_valued", single_valued)
        zone = arguments.to_timezone("timezone", timezone)
        self._clock = partial(_read_clock, arguments.check_callable("clock", clock), zone)
        self._method, self._top_k = method, top_k
        self._choose_recipe(None, "", None)
        self._reranker = arguments.check_reranker(reranker)
        with partial_answers():
            known = store.statistics()
        if problem := describe_mismatch(known, embedder):
            raise ModelMismatch(problem)
        self._answers = Answers(store, embedder, arguments.to_cache(cache), self._clock)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        collection: str = "default",
        embedder: Embedder | None = None,
        extractor: Extractor | str | None = RULES,
        single_valued: Strings = (),
        clock: Clock = _now,
        timezone: str = "UTC",
        cache: CacheConfig | float | None = CacheConfig(),  # noqa: B008
        observer: Observer | None = None,
        method: str | Recipe = AUTO,
        top_k: int | None = None,
        reranker: Reranker | None = None,
        author: Author = OWNER,
        scrub: bool = True,
    ) -> Self:
        """Open a collection; create it if it does not exist.

        url: a file name, `postgresql://…`, or `cells+` and the address of a catalogue.
        collection: the name of the collection.
        embedder: makes vectors; None searches by words only.
        extractor: finds names and facts in added texts; None stores texts without them.
        single_valued: predicates, such as `works_at`, with one object at a time for each subject. A newer fact
            ends the older one, which may hold again later.
        clock: returns the current time.
        timezone: the IANA name of the zone, such as `Europe/Berlin`, in which "yesterday" in a question or a message
            is a day. Dates without an offset are UTC in any zone.
        cache: how long answers are cached: a number of seconds, or None for no cache.
        observer: is called around each method.
        method, top_k, reranker: the defaults of `search`.
        author: the reader and writer, with its labels; the owner of the store has all of them.
        scrub: leave keys, passwords, card numbers and other secrets out of what is added, with a mark in their place.
        """
        address = arguments.check_url(url)
        name = arguments.check_collection(collection, is_cells=parse_url(address).is_cells)
        arguments.check_embedder(embedder)
        store = open_store(address, name)
        try:
            return cls(
                store,
                embedder,
                extractor=extractor,
                single_valued=single_valued,
                clock=clock,
                timezone=timezone,
                cache=cache,
                observer=observer,
                method=method,
                top_k=top_k,
                reranker=reranker,
                author=author,
                scrub=scrub,
            )
        except BaseException:
            store.close()
            raise

    @check_call
    def as_author(self, author: Author) -> Self:
        """Return a view of the same open collection that reads and writes as an author."""
        view = copy.copy(self)
        view._author = arguments.check_type("author", author, Author)
        return view

    def now(self) -> datetime:
        """Return the time by the clock of this memory, in its timezone."""
        return self._clock()

    @property
    def author(self) -> Author:
        """The reader and writer of this view."""
        return self._author

    # -- add -------------------------------------------------------------------------------------------

    @observe
    def add(
        self,
        text: str,
        *,
        title: str | None = "",
        uri: str | Path | None = "",
        metadata: Metadata | None = None,
        labels: Strings = (),
        source: Source = "file",
        facts: Iterable[FactLike] | None = (),
        user: str | None = "",
        agent: str | None = "",
        session: str | None = "",
        at: Moment | None = None,
        expires: Moment | None = None,
    ) -> AddedId:
        """Add a text and the facts it states, and return the id of its document.

        The id is a string. Its `left_out` counts the secrets of each kind that were left out of the text, title,
        metadata and facts.

        text: one text of at most a million characters. Adding the same text again changes nothing.
        title: the title that hits show, at most 1,000 characters.
        uri: the address of the document; a text with the same address replaces it.
        metadata: values to filter by; dates become ISO text, and None leaves a key out.
        labels: permissions; a document without labels is visible to every caller of the collection. An author with
            labels writes only with its own labels, and with all of them if none are given.
        source: user_edit, file, system or conversation, but not above the author's. With conversation and no `uri`,
            sentences that the same readers already have are not stored again; their use count grows. If all
            sentences are known, the id of the existing document is returned.
        facts: the facts that the text states; without them the extractor finds names and facts.
        user: whose document it is; only calls for the same user see it. The same text of two users is two documents.
        agent, session: the agent and the session that it comes from, to filter by and to forget by.
        at: the time of its event, such as the time at which it was said; None if unknown.
        expires: from this time on, calls leave the document out, with all its passages and facts, unless their `as_of`
            is earlier. None means never. `forget(expired=True)` removes expired documents.
        """
        remedy = "call add for each text, or add_files for files"
        sieve = self._make_sieve()
        clean = sieve.take(arguments.check_text("text", text, remedy, MAX_TEXT))
        source = arguments.check_source(source)
        frame = self._make_document(metadata, labels, source, user, agent, session, at, expires, sieve=sieve)
        address = arguments.check_uri("uri", uri)
        id_ = document_id(uri=address, text=clean.text, labels=frame.labels, scope=pipeline.get_scope(frame))
        name = sieve.clean_title(arguments.check_optional("title", title, MAX_TITLE))
        document = replace(frame, id=id_, title=name, uri=address)
        stated = [sieve.clean_fact(fact) for fact in arguments.to_facts(() if facts is None else facts, source)]
        if source == "conversation" and not address:
            id_ = repeats.remember(
                self._store, self._embedder, self._extractor, document, clean.text, stated, author=self._author
            )
        else:
            added = pipeline.index_text(document, clean.text, stated, extractor=self._extractor)
            self._write([clean.restore_offsets(added)])
        return AddedId(id_, sieve.left_out)

    @observe
    def add_files(
        self,
        path: str | Path | Iterable[str | Path],
        *,
        root: str | Path | None = None,
        uri: str | None = "",
        metadata: Metadata | None = None,
        labels: Strings = (),
        limits: Limits = Limits(),  # noqa: B008
        prune: bool = False,
        progress: Callable[[Progress], None] = _ignore,
        expires: Moment | None = None,
    ) -> AddReport:
        """Add a file, or all files of a folder that `.gitignore` does not exclude.

        path: a file or folder, or several. An unchanged file costs a hash; a changed one replaces its documents.
        root: addresses are paths relative to this folder. Without it, a file below the folder that holds `waylore.toml`
            has its path relative to that folder as its address, and any other file its absolute path.
        uri: the address of one file that is stored elsewhere.
        metadata, labels, expires: for every document, as in `add`.
        limits: the size of files that are read.
        prune: forget the documents of files that no longer exist.
        progress: is called with the state of the work.

        An interrupted run is resumed by the next one. Files that cannot be read are listed in `skipped`.
        """
        sieve = self._make_sieve()
        frame = self._make_document(metadata, labels, "file", expires=expires, sieve=sieve)
        below = None if root is None else arguments.to_path("root", root)
        arguments.check_type("limits", limits, Limits)
        arguments.check_callable("progress", progress)
        address = arguments.check_optional("uri", uri)
        arguments.check_type("prune", prune, bool)
        from waylore.indexing.files.add import add_files  # noqa: PLC0415 (a search starts without it)

        project = find_project_folder()
        located = [locate(each, below) for each in arguments.check_exist(arguments.to_paths(path))]
        tasks = [
            Task(top, above, project, frame, self._author, limits, prune, address, self._scrub)
            for top, above in located
        ]
        common = AddReport(left_out=sieve.left_out)
        return merge_reports(
            [common, *(add_files(self._store, self._embedder, self._extractor, task, progress) for task in tasks)]
        )

    @observe
    def add_facts(
        self,
        facts: Iterable[FactLike],
        *,
        metadata: Metadata | None = None,
        labels: Strings = (),
        source: Source = "user_edit",
        user: str | None = "",
        agent: str | None = "",
        session: str | None = "",
        at: Moment | None = None,
        expires: Moment | None = None,
    ) -> tuple[AddedId, ...]:
        """Add facts that come without a text, and return the ids of their documents, one for each fact.

        As with `add`, `left_out` of an id counts the secrets that were left out.

        facts: `NewFact`s, dicts with their fields, or subjects, predicates and objects. A fact that was added on the
            same day or in the same session counts as used again; on another day it is a new statement. With the source
            conversation, this also holds if another document states the fact, or if only the spelling differs.
        metadata, labels, source, user, agent, session, expires: as in `add`.
        at: when the facts were said. None means now, except for facts with the source file or with a period: their time
            is unknown.
        """
        source = arguments.check_source(source)
        about = self._make_sieve()
        frame = self._make_document(metadata, labels, source, user, agent, session, at, expires, sieve=about)
        now = frame if source == "file" or frame.at else replace(frame, at=frame.recorded_at)
        stated, left_out = [], []
        for given in arguments.to_facts(facts, source):
            sieve = about.fork()  # metadata belongs to each fact
            fact = sieve.clean_fact(given)
            stated.append(pipeline.build_fact_document(fact, frame if fact.valid_from or fact.valid_to else now))
            left_out.append(sieve.left_out)
        return tuple(map(AddedId, self._add_facts(stated, source), left_out))

    @observe
    def remember(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any] | Message],
        *,
        user: str | None = "",
        agent: str | None = "",
        session: str | None = "",
        at: Moment | None = None,
        facts: Iterable[FactLike] | None = (),
        tools: bool = False,
        metadata: Metadata | None = None,
        labels: Strings = (),
        expires: Moment | None = None,
    ) -> RememberReport:
        """Store messages of a conversation, each as a turn with its speaker and time, and return a report.

        messages: a string, a dict or a list of dicts with `role` and `content`, as OpenAI has them, and optionally
            `name`, `id` and `at`; or a `Message`. Messages that are already stored change nothing.
        user: whose memory it is; only calls for the same user see it.
        agent, session: the agent, and the session that the messages belong to.
        at: when they were said, for messages without a time of their own; None means now.
        facts: the facts that the last message states; without them the extractor finds names and facts.
        tools: also store calls of tools and their results.
        metadata, labels, expires: as in `add`. A stored message that would expire earlier is stored again.
        """
        from waylore.indexing.conversations.messages import to_messages  # noqa: PLC0415 (a search starts without it)
        from waylore.indexing.memory import turns  # noqa: PLC0415

        arguments.check_type("tools", tools, bool)
        said = [message for message in to_messages(messages) if tools or not message.is_tool]
        if not said:
            raise ArgumentError("messages must not be empty; pass messages with text, or tools=True for calls of tools")
        for message in said:
            arguments.check_text("messages", message.content, "split a longer message", MAX_TEXT)
        sieve = self._make_sieve()
        frame = self._make_document(metadata, labels, "conversation", user, agent, session, at, expires, sieve=sieve)
        stated = [sieve.clean_fact(fact) for fact in arguments.to_facts(() if facts is None else facts, "conversation")]
        made = turns.make_turns([sieve.clean_message(message) for message in said], frame, self._clock())
        report = turns.remember_turns(self._store, self._embedder, self._extractor, made, stated, author=self._author)
        return replace(report, left_out=sieve.left_out)

    @check_call
    def mark_distinct(self, name: str, other: str, *, labels: Strings = ()) -> str:
        """Record that two names mean different things, even if documents or similar spellings suggest otherwise.

        Returns the id of a document that holds this; forget it to undo it.
        """
        pair = self._check_names(name, other)
        document = pipeline.build_distinct_document(*pair, self._make_document(None, labels, "user_edit"))
        self._write([document])
        return document.document.id

    @check_call
    def mark_same(self, name: str, other: str, *, labels: Strings = ()) -> str:
        """Record that two names mean the same thing.

        Returns the id of a document that holds this; forget it to undo it.
        """
        first, second = self._check_names(name, other)
        frame = self._make_document(None, labels, "user_edit")
        [id_] = self._add_facts([pipeline.build_fact_document(NewFact(first, SAME, second), frame)], "user_edit")
        return id_

    @observe
    def import_(
        self,
        path: str | Path,
        format: str = dispatch.AUTO,  # noqa: A002
        *,
        uri: str | None = "",
        metadata: Metadata | None = None,
        labels: Strings = (),
        user: str | None = "",
        limits: Limits = dispatch.IMPORT_LIMITS,
        progress: Callable[[int], None] = _ignore,
    ) -> ImportReport:
        """Import an export of Waylore, or the data of another program.

        Secrets are left out, except from an export of Waylore, which is imported as it was stored.

        path: a file or folder. Importing the same again changes nothing.
        format: auto, waylore (an export), triples, ntriples, research, graphrag, lightrag, mcp-memory, mem0 or zep.
        uri: the name of the file in the report of skipped lines.
        metadata, labels: for every document; an export has its own.
        user: whose documents they are. Rows of other users in an export of mem0 or Zep are skipped. Without `user`,
            memories and messages belong to the users that the export names.
        limits: the size of files that are read.
        progress: is called with the number of documents so far.

        Broken lines are skipped and reported with their reason.
        """
        [file] = arguments.check_exist([arguments.to_path("path", path)])
        sieve = self._make_sieve()
        frame = self._make_document(metadata, labels, "file", user, sieve=sieve)
        arguments.check_type("limits", limits, Limits)
        arguments.check_callable("progress", progress)
        kind = arguments.check_choice("format", format, (dispatch.AUTO, transfer.EXPORT, *dispatch.FORMATS))
        address = arguments.check_optional("uri", uri)
        if kind == transfer.EXPORT or (kind == dispatch.AUTO and exports.is_export(file)):
            return transfer.import_export(self._store, self._embedder, file, progress, author=self._author)
        return dispatch.import_file(
            self._store,
            self._embedder,
            file,
            kind,
            frame,
            author=self._author,
            sieve=sieve,
            extractor=self._extractor,
            uri=address,
            limits=limits,
            progress=progress,
        )

    @observe
    def enrich(
        self,
        extractor: Extractor,
        *,
        where: Where = None,
        user: str | None = "",
        limit: int = 10_000,
        run: str | None = "",
        progress: Callable[["Enrichment"], None] = _ignore,
    ) -> "Enrichment":
        """Let an extractor, such as a language model, add facts to the passages that were hits most often.

        Added facts are staged and of the source system. They are forgotten together with the passage, and
        `undo_enrichment` removes all facts of a run.

        extractor: reads the passages; its budget ends the run. Passages that it has read before are left out.
        where: read the passages of the documents with this metadata instead, the most used first.
        user: also the passages of this user.
        limit: the number of passages, at most 10,000.
        run: the name of the run; the time of its beginning if absent. Use it again to continue an interrupted run.
        progress: is called with the counts of what was added so far.
        """
        from waylore.indexing.enrichment import EnrichmentRun, enrich_passages  # noqa: PLC0415 (a search starts without it)

        self._author.require_all()
        reader = arguments.check_extractor(extractor, RULES)
        if reader is None:
            raise ArgumentError("extractor must be an Extractor, for example LLMExtractor(…), got None")
        name = arguments.check_optional("run", run, MAX_TITLE) or f"{self._clock():%Y%m%d-%H%M%S}"
        visible = self._narrow(where, user)
        frame = EnrichmentRun(
            name, self._clock(), visible, arguments.check_count("limit", limit, MAX_ENRICHED), self._author
        )
        self._answers.write_uses()  # the order of passages depends on the counts
        return enrich_passages(
            self._store,
            self._embedder,
            reader,
            frame,
            by_filter=arguments.to_filter(where) != NO_FILTER,
            progress=arguments.check_callable("progress", progress),
        )

    @observe
    def undo_enrichment(self, run: str) -> Receipt:
        """Remove everything that a run of `enrich` added, and return a receipt."""
        from waylore.indexing.enrichment import list_enrichments  # noqa: PLC0415

        self._author.require_all()
        name = arguments.check_text("run", run, "give the name of a run", MAX_TITLE)
        found = list_enrichments(self._store, name)
        if not found:
            raise NotFound(f"no run {name}; `enrich` returns its name")
        return self._store.forget(found, author=self._author)

    # -- search ----------------------------------------------------------------------------------------

    @property
    def method(self) -> str | Recipe:
        """The method or recipe that `search` uses if a call does not give one."""
        return self._method

    @observe
    def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        where: Where = None,
        method: str | Recipe | None = None,
        as_of: Moment | None = None,
        reranker: Reranker | None = None,
        rerank: bool | None = None,
        record_use: bool = True,
        min_similarity: float | None = None,
        user: str | None = "",
        agent: str | None = "",
        session: str | None = "",
        since: Moment | None = None,
        until: Moment | None = None,
        group_by: GroupBy = "turn",
    ) -> SearchResult:
        """Search the collection and return hits, best first, each with its explanation.

        query: the question, or keywords; at most 8,000 characters.
        top_k: number of hits; None takes that of `open`, else the recipe's (10).
        where: metadata that a document must have, as a dict or a Filter; None searches everything.
        method: "auto", "graph", "hybrid", "vector", "keyword", the name of another recipe, or a Recipe of your own.
            None takes that of `open` ("auto").
        as_of: use the facts that were valid at this time, and no passage that was said later; None means now. A date
            or an ISO string will do.
        reranker: reorders the hits by reading question and passage together; None takes that of `open`.
        rerank: False reranks nothing; True raises an error if there is no reranker.
        record_use: count the hits as used, each at most once an hour for an author; only the recipe `activation`
            reads the counts.
        min_similarity: minimum cosine of a hit and the question, -1 to 1; there may be fewer than `top_k` hits. None
            sets no minimum. Without an embedder, and with the method "keyword", it has no effect.
        user: also search the documents of this user. Without it, only documents without a user are searched.
        agent, session: search only passages of this agent or session.
        since, until: search only passages whose event was at or after `since` and before `until`.
        group_by: "session" returns only the best turn of each session; documents that are not turns are not grouped.

        Raises ArgumentError for a bad argument, StoreUnavailable if the store cannot be reached. A search that
        could not run is listed in `SearchResult.missing`.
        """
        query = arguments.check_text("query", query, "the question is one string", MAX_QUERY)
        chosen = arguments.choose_reranker(rerank, reranker, self._reranker)
        arguments.check_type("record_use", record_use, bool)
        known_at = arguments.to_moment(as_of)
        wanted = arguments.add_scope(
            arguments.to_filter(where), user=user, agent=agent, session=session, since=since, until=until
        )
        visible = self._narrow(wanted if known_at is None else replace(wanted, as_of=known_at))
        question = Query(
            query,
            where=visible,
            as_of=known_at,
            min_similarity=arguments.check_cosine("min_similarity", min_similarity),
            group_by=arguments.check_choice("group_by", group_by, get_args(GroupBy)),
        )
        with partial_answers():
            result = self._answers.search(question, partial(self._choose_recipe, method, query, top_k), chosen)
        if record_use:
            self._answers.record_use(result, self._author.identity)
        return result

    @check_call
    def context(
        self,
        result: SearchResult | str,
        *,
        layout: Layout = "passages",
        max_tokens: int | None = None,
        config: ContextConfig | None = None,
        count: CountTokens = texts.estimate_tokens,
    ) -> RenderedContext:
        """Return the text to hand to a model, within a budget of tokens.

        Passages are put between the marks of a fence, and the first sentence says that they are data.

        result: the result of `search`, or a question to search for first, with as many hits as fill the budget.
        layout: passages; graph and narrative put a block of entities and facts of up to 500 tokens before them.
        max_tokens: length of the text in tokens; None takes the config's (4,000).
        config: which parts the text has; None takes the default.
        count: counts the tokens of a text; `waylore.providers.tokens` has exact counters.
        """
        arguments.check_callable("count", count)
        wanted = ContextConfig() if config is None else arguments.check_type("config", config, ContextConfig)
        if max_tokens is not None:
            wanted = replace(wanted, max_tokens=arguments.check_count("max_tokens", max_tokens))
        if isinstance(result, str):
            question = arguments.check_text("result", result, "ask one question", MAX_QUERY)
            result = self.search(question, top_k=count_hits(wanted.max_tokens))
        arguments.check_type("result", result, SearchResult)
        lines = result.set_answer.lines if result.set_answer else ()
        fence = make_fence(self._get_secret(), [*(hit.passage.text for hit in result.hits), *lines])
        return render_context(result, layout=arguments.check_layout(layout), config=wanted, count=count, fence=fence)

    @check_call
    def make_fence(self, *texts: str) -> Fence:
        """Return the fence that marks recalled texts as data. Use it in prompts that you build yourself.

        texts: all texts that are put into the prompt. `Fence.enclose` returns one of them between the marks,
            without control and invisible characters. Equal texts get equal marks.
        """
        return make_fence(self._get_secret(), [arguments.check_type("texts", text, str) for text in texts])

    @check_call
    def warm_cache(self, *names: str, limit: int = 20) -> int:
        """Search for entities ahead of time, so that their answers are cached; return the number of searches.

        names: the entities; without any, the entities that questions named most often.
        limit: the number of entities if no names are given.
        """
        frequent = arguments.check_count("limit", limit)
        searched = arguments.to_strings("names", names) or self._answers.list_frequent_names(frequent)
        for name in searched:
            self.search(name, record_use=False)
        return len(searched)

    @observe
    def get(
        self, document: str, *, where: Where = None, user: str | None = "", include_expired: bool = False
    ) -> IndexedDocument:
        """Return a document with all its passages, entities, mentions and facts."""
        id_ = arguments.check_text("document", document, "give the id of a document")
        visible = self._narrow(where, user, include_expired=include_expired)
        known = self._store.get_indexed_documents([id_], where=visible)
        if id_ not in known:
            raise NotFound(f"no document {id_}; list ids with documents()")
        return known[id_]

    @check_call
    def get_passage(self, passage: str, *, where: Where = None, user: str | None = "") -> tuple[Passage, Document]:
        """Return a passage and its document.

        passage: its id, or the first eight or more digits of it, if no other visible passage begins with them.
        """
        wanted = arguments.check_text("passage", passage, "give the id of a passage")
        visible = self._narrow(where, user)
        id_ = self._complete_id(wanted, visible)
        passages = self._store.passages([id_], where=visible)
        documents = self._store.sources([id_], where=visible)
        if id_ not in passages or id_ not in documents:
            raise NotFound(f"no passage {id_}; a hit has its id in hit.id")
        return passages[id_], documents[id_]

    def _complete_id(self, beginning: str, visible: Filter) -> str:
        """Return the id of the only visible passage that begins with these digits, or the digits if no passage does."""
        if len(beginning) < MARK_DIGITS or is_id(beginning):
            return beginning
        found = self._store.find_passages(beginning, where=visible)
        if len(found) > 1:
            raise ArgumentError(f"several passages have an id that begins with {beginning}; give more of its digits")
        return found[0] if found else beginning

    @observe
    def facts(
        self,
        name: str,
        *,
        as_of: Moment | None = None,
        limit: int = 100,
        where: Where = None,
        user: str | None = "",
    ) -> tuple[Fact, ...]:
        """Return the facts of an entity, strongest first.

        name: the name of the entity.
        as_of: only facts that were valid at this time and said before it; None returns all, each with its period.
        limit: the number of facts.
        where: metadata that a document must have, as a dict or a Filter.
        user: also the facts of this user.
        """
        name = arguments.check_text("name", name, "give the name of an entity", MAX_TITLE)
        limit, known_at = arguments.check_count("limit", limit), arguments.to_moment(as_of)
        visible = replace(self._narrow(where, user), as_of=known_at)
        query = Query(name, where=visible, as_of=known_at)
        ids = [entity.id for entity in self._store.entities_by_names([name], where=visible).get(name, ())]
        known = self._store.facts_of_entities(ids, per_entity=limit, as_of=query.as_of, where=visible)
        newest = max(MAX_ASSERTIONS, min(limit, MAX_LISTED_ASSERTIONS))
        stage = select_current(query, known, self._single_valued, per_entity=limit, newest=newest)
        current = run_stage(self._store, stage)
        distinct = {(fact.id, fact.valid_from): fact for id_ in ids for fact in current.get(id_, ())}
        return tuple(distinct.values())[:limit]

    @observe
    def related(
        self,
        entity: str,
        *,
        predicates: Strings = None,
        direction: "Direction" = "both",
        hops: int = 1,
        as_of: Moment | None = None,
        where: Where = None,
        user: str | None = "",
        limit: int = 50,
    ) -> "Related":
        """Return the facts of an entity as a tree, and whether the tree has all stored and visible facts.

        Each has its passage, and the fact that superseded it. An entity with other names is one thing. If several
        things have the name, the answer has no facts, and `candidates` has the things.

        entity: the name or the id of the entity.
        predicates: only facts that state one of these relations, also in other words: `depends on` finds `needs`. The
            answer lists the predicates that matched, and others.
        direction: "out" follows facts from subject to object, "in" from object to subject, "both" in both directions.
        hops: maximum distance in facts, 1 to 6.
        as_of: only facts that were valid at this time and said before it; None returns all, with their periods.
        where: metadata that a document must have, as a dict or a Filter.
        user: also what documents of this user say.
        limit: the number of facts to show, at most 1,000. Up to 500 facts are counted exactly, or as many as this.
        """
        from waylore.retrieval.relations import facts, related  # noqa: PLC0415 (a search starts without it)
        from waylore.types.relations import Direction  # noqa: PLC0415

        query = self._ask_graph(arguments.check_text("entity", entity, "give a name", MAX_TITLE), as_of, where, user)
        options = related.RelatedOptions(
            self._match_predicates(arguments.to_strings("predicates", predicates)),
            arguments.check_choice("direction", direction, get_args(Direction)),
            arguments.check_count("hops", hops, arguments.MAX_GRAPH_HOPS),
            arguments.check_count("limit", limit, facts.MAX_TOTAL),
            self._single_valued,
        )
        return run_stage(self._store, related.read_related(query, options))

    @observe
    def connect(
        self,
        a: str,
        b: str,
        *,
        max_hops: int = 4,
        limit: int = 3,
        as_of: Moment | None = None,
        where: Where = None,
        user: str | None = "",
    ) -> "Connection":
        """Return the shortest paths between two entities, and how many entities and facts were read.

        A step is a fact, or a statement that names both of its ends. Of equally short paths, those with more facts come
        first. If no path was found and `exhaustive` is true, there is no path within `max_hops`.

        a, b: the names or ids of two entities.
        max_hops: maximum number of steps, 1 to 6.
        limit: the number of paths, at most 100.
        as_of: only facts that were valid at this time and said before it; None uses those of all times.
        where: metadata that a document must have, as a dict or a Filter.
        user: also what documents of this user say.
        """
        from waylore.retrieval.relations import connect  # noqa: PLC0415

        ends = (
            arguments.check_text("a", a, "give a name", MAX_TITLE),
            arguments.check_text("b", b, "give a name", MAX_TITLE),
        )
        options = connect.ConnectOptions(
            arguments.check_count("max_hops", max_hops, arguments.MAX_GRAPH_HOPS),
            arguments.check_count("limit", limit, connect.MAX_PATHS),
            self._single_valued,
        )
        query = self._ask_graph(a, as_of, where, user)
        return run_stage(self._store, connect.read_connection(query, ends, options))

    @observe
    def list_entities(
        self,
        *,
        type: str | None = "",  # noqa: A002
        predicate: str | None = "",
        object: str | None = "",  # noqa: A002
        name: str | None = "",
        after: str | None = "",
        limit: int = 50,
        as_of: Moment | None = None,
        where: Where = None,
        user: str | None = "",
    ) -> "EntityList":
        """Return a page of entities, and their total number.

        type: only entities of this type.
        predicate: only subjects of facts that state this relation, also in other words.
        object: only entities that a fact relates to this entity, given by name or id. With `predicate`,
            `list_entities(predicate="owns", object="Quarry")` lists the owners of Quarry.
        name: only entities with this name or alias; if no entity has it, entities whose names have the same words.
        after: the cursor of the previous page, `EntityList.after`.
        limit: the number of entities, at most 1,000. Up to 1,000 are counted exactly.
        as_of: only facts that were valid at this time and said before it; None uses those of all times.
        where: metadata that a document must have, as a dict or a Filter.
        user: also what documents of this user say.
        """
        from waylore.retrieval.relations import entities, facts  # noqa: PLC0415

        relation = arguments.check_optional("predicate", predicate, MAX_TITLE)
        options = entities.EntityOptions(
            self._match_predicates((relation,) if relation else ()),
            arguments.check_optional("type", type, MAX_TITLE),
            arguments.check_optional("object", object, MAX_TITLE),
            arguments.check_optional("name", name, MAX_TITLE),
            arguments.check_cursor("after", after),
            arguments.check_count("limit", limit, facts.MAX_TOTAL),
            self._single_valued,
        )
        return run_stage(self._store, entities.read_entities(self._ask_graph("", as_of, where, user), options))

    # -- views -----------------------------------------------------------------------------------------

    @observe
    def timeline(
        self,
        entity: str,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = 100,
        where: Where = None,
        user: str | None = "",
    ) -> "Timeline":
        """Return all assertions of an entity in order of time, each with the periods in which it held.

        Each has its passage, the assertion that ended it, and how: `changed`, `corrected` or `ended`.

        entity: the name of the entity.
        since, until: only assertions that held in this period.
        limit: the number of assertions; the newest are returned, and `has_more` says that older ones were left out.
        where: metadata that a document must have, as a dict or a Filter.
        user: also what documents of this user say.
        """
        from waylore.retrieval import views  # noqa: PLC0415 (a search starts without it)

        name = arguments.check_text("entity", entity, "give the name of an entity", MAX_TITLE)
        query = Query(name, where=self._narrow(where, user))
        options = views.ViewOptions(*arguments.check_view(since, until, limit), self._single_valued)
        return run_stage(self._store, views.read_timeline(query, options, self._clock()))

    @observe
    def profile(self, user: str | None = "", budget: int = 400, *, where: Where = None) -> "Profile":
        """Return the current facts about a user, one line for each relation, with its date and passage.

        The most used lines come first, then the newest. `has_more` says that some lines did not fit.

        user: the user; without one, the person whom conversations without a user call "user".
        budget: length of all lines in tokens.
        where: metadata that a document must have, as a dict or a Filter.
        """
        from waylore.retrieval import views  # noqa: PLC0415

        visible = self._narrow(where, user)
        tokens = arguments.check_count("budget", budget, arguments.MAX_LIMIT)
        query = Query(visible.user or USER_NAME, where=visible)
        facts = self.facts(query.text, as_of=self._clock(), limit=views.MAX_FACTS, where=where, user=visible.user)
        return run_stage(self._store, views.read_profile(query, facts, tokens))

    @observe
    def changes(
        self,
        *,
        user: str | None = "",
        since: Moment | None = None,
        until: Moment | None = None,
        entity: str | None = "",
        limit: int = 100,
        where: Where = None,
    ) -> "ChangeList":
        """Return the facts that began, changed, were corrected or ended in a period, in order of time.

        user: changes of this user, and of people and things that facts of the user name. Without one, the person whom
            conversations without a user call "user".
        since, until: changes at or after `since` and before `until`. Without `until`, up to now.
        entity: only changes of this entity.
        limit: the number of changes, the newest; `has_more` says that older ones were left out.
        where: metadata that a document must have, as a dict or a Filter.
        """
        from waylore.retrieval import views  # noqa: PLC0415

        visible = self._narrow(where, user)
        name = arguments.check_optional("entity", entity, MAX_TITLE)
        first, last, count = arguments.check_view(since, until, limit)
        options = views.ViewOptions(first, last or self._clock(), count, self._single_valued)
        query = Query(name or visible.user or USER_NAME, where=visible)
        return run_stage(self._store, views.read_changes(query, options, with_near=not name))

    @observe
    def provenance(
        self, item: "Hit | Fact | Assertion | str", *, around: int = 2, where: Where = None, user: str | None = ""
    ) -> "Provenance":
        """Return where a hit or a fact comes from: speaker, session, time, document, and the turns around it.

        item: a hit, a fact, an assertion of a view, or the id of a passage.
        around: how many turns before and after it; for other documents, passages.
        where: metadata that a document must have, as a dict or a Filter.
        user: also the documents of this user; without one, those of the user of the hit.
        """
        from waylore.retrieval import views  # noqa: PLC0415

        id_, owner = arguments.to_passage(item)
        count = 0 if around == 0 else arguments.check_count("around", around, MAX_AROUND)
        query = Query(id_, where=self._narrow(where, user or owner))
        found = run_stage(self._store, views.read_provenance(query, id_, count))
        if found is None:
            raise NotFound(f"no passage {id_}; a hit has its id in hit.id, a fact in fact.passage_id")
        return found

    @check_call
    def documents(
        self,
        *,
        under: str | None = "",
        after: Document | None = None,
        limit: int = 1_000,
        where: Where = None,
        user: str | None = "",
        include_expired: bool = False,
    ) -> tuple[Document, ...]:
        """Return documents by address, a page at a time.

        under: only documents whose address begins with this.
        after: the last document of the previous page.
        limit: the number of documents.
        where: metadata that a document must have, as a dict or a Filter.
        user: also the documents of this user.
        include_expired: also documents that have expired.
        """
        prefix, page = arguments.check_optional("under", under), arguments.check_count("limit", limit)
        last = None if after is None else arguments.check_type("after", after, Document)
        place = (last.uri, last.id) if last else ("", "")
        visible = self._narrow(where, user, include_expired=include_expired)
        listed = pipeline.list_documents(self._store, prefix, where=visible, after=place, size=page)
        own = (document for document in listed if not get_enriched(document))  # without documents that a model added
        return tuple(islice(own, page))

    @check_call
    def merges(self, name: str, *, where: Where = None) -> tuple[Merge, ...]:
        """Return the entities that are treated as the same as a name, then similar ones, each with the evidence.

        `mark_distinct` undoes a merge.
        """
        name = arguments.check_text("name", name, "give the name of an entity", MAX_TITLE)
        query = Query(name, where=self._narrow(where), as_of=self._clock())
        return run_stage(self._store, same_as.list_merges(query))

    @check_call
    def stats(self) -> Statistics:
        """Return the size of the collection, and its embedding model."""
        self._author.require_all()
        return self._store.statistics()

    @check_call
    def growth(self) -> tuple[DayCounts, ...]:
        """Return the number of visible documents, and of their passages, that were written on each day (UTC).

        An author without labels counts all documents, also documents of users and expired ones, as in `stats`.
        """
        return self._store.growth(everyone=not self._author.is_limited, where=self._narrow(None))

    @check_call
    def users(self, *, after: str | None = "", limit: int = 1_000) -> tuple[UserCounts, ...]:
        """Return the users of the collection with the number of their documents and passages, a page at a time.

        after: the last user of the previous page.
        limit: the number of users.
        """
        self._author.require_all()
        last = arguments.check_optional("after", after, MAX_TITLE)
        return self._store.users(after=last, limit=arguments.check_count("limit", limit))

    # -- forget ----------------------------------------------------------------------------------------

    @observe
    def forget(
        self,
        *documents: str | Iterable[str],
        where: Where = None,
        user: str | None = "",
        agent: str | None = "",
        session: str | None = "",
        since: Moment | None = None,
        until: Moment | None = None,
        matching: str | None = "",
        expired: bool = False,
        older_than: timedelta | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Remove documents with everything that no other document supports, and return a receipt.

        documents: ids, addresses and paths of files, one by one or as a list. The path of a file selects all its
            documents. Names without a document are in `Receipt.missing`. Without names, the other arguments select the
            documents to remove.
        where: documents outside of this filter are treated as if they did not exist.
        user, agent, session: only documents of this user, agent or session. Without names, documents without a user
            stay.
        since, until: only documents whose event was in this period.
        matching: only documents with a passage that contains these words, in any case; at most 1,000 passages.
        expired: only documents that have expired. Without names and a user, expired documents of all users that you may
            change.
        older_than: with `expired`, also documents whose event (without one: whose writing) is older than this.
        dry_run: remove nothing; the receipt has the documents that would be removed.
        """
        wanted = arguments.add_scope(
            arguments.to_filter(where), user=user, agent=agent, session=session, since=since, until=until
        )
        is_expired = arguments.check_type("expired", expired, bool)
        words = arguments.check_optional("matching", matching, MAX_TITLE)
        age = arguments.check_age(older_than, is_expired=is_expired)
        found = self._find_to_forget(documents, replace(wanted, now=None), words, is_expired=is_expired, age=age)
        missing = [hide_name(name) for name, ids in found.items() if name and not ids]
        known = [id_ for ids in found.values() for id_ in ids]
        if arguments.check_type("dry_run", dry_run, bool):
            return Receipt(
                documents=tuple(known), missing=tuple(name for name, ids in found.items() if name and not ids)
            )
        verb: Verb = "expire" if is_expired else "forget"
        receipt = self._store.forget(known, author=self._author, missing=missing, verb=verb)
        return replace(receipt, missing=tuple(name for name in found if hide_name(name) in receipt.missing))

    def _find_to_forget(
        self,
        documents: Sequence[str | Iterable[str]],
        wanted: Filter,
        matching: str,
        *,
        is_expired: bool,
        age: timedelta | None,
    ) -> dict[str, tuple[str, ...]]:
        """Return the ids of the documents to forget, by name; ids that were not selected by name have the name ""."""
        visible = self._author.narrow(wanted)
        if matching and (documents or is_expired):
            raise ArgumentError("matching selects documents by their words; pass it without documents and expired")
        if matching:
            return {"": self._select_matching(matching, visible)}
        if documents:
            names = check_each(arguments.to_documents(documents))
            found = {name: self._find_documents(name, visible) for name in names}
            return {name: self._keep_expired(ids, visible, age) for name, ids in found.items()} if is_expired else found
        if is_expired:
            return {"": tuple(self._select_expired(None if wanted == NO_FILTER else visible, age))}
        arguments.check_selection(wanted)
        return {"": tuple(self._select_documents(visible))}

    def _select_matching(self, words: str, where: Filter) -> tuple[str, ...]:
        """Return the ids of the user's documents (or of documents without a user) that contain some words."""
        found = self._store.lexical(words, top_k=MAX_MATCHING + 1, where=where)
        if len(found) > MAX_MATCHING:
            raise ArgumentError(
                f"matching finds more than {MAX_MATCHING:,} passages; use rarer words, a session or a time"
            )
        passages = self._store.passages([scored.id for scored in found], where=where)
        wanted = texts.normalise(words)
        ids = [p.document_id for p in passages.values() if f" {wanted} " in f" {texts.normalise(p.text)} "]
        known = self._store.documents(list(dict.fromkeys(ids)), where=where)
        return tuple(id_ for id_, document in known.items() if document.user == where.user)

    def _keep_expired(self, ids: Sequence[str], where: Filter, age: timedelta | None) -> tuple[str, ...]:
        """Return the given documents that have expired or are older than an age."""
        now, known = self._clock(), self._store.documents(ids, where=where)
        return tuple(id_ for id_ in ids if has_ended(known[id_], now, age))

    def _select_expired(self, where: Filter | None, age: timedelta | None) -> Generator[str]:
        """Yield the ids of the expired documents that the author may change, of all users or of a filter.

        With an age, all documents are read, and older ones are yielded too.
        """
        after, now = "", self._clock()
        read = self._store.list_all_documents if age else partial(self._store.list_expired, now)
        while page := read(after=after, limit=EXPIRED_PAGE):
            ended = [each for each in page if has_ended(each, now, age)]
            chosen = [each for each in ended if self._author.may_change(each.labels, each.user)]
            if where is not None:
                shown = self._store.documents([each.id for each in chosen], where=where)
                chosen = [each for each in chosen if each.id in shown and each.user == where.user]
            yield from (each.id for each in chosen)
            after = page[-1].id

    def _select_documents(self, where: Filter) -> Generator[str]:
        """Yield the ids of all documents that a filter selects; with a user, only that user's documents."""
        found = pipeline.list_documents(self._store, where=where)
        yield from (each.id for each in found if each.user == where.user)

    @observe
    def find_about(
        self,
        names: Strings,
        *,
        where: Where = None,
        user: str | None = "",
        progress: Callable[[int], None] = _ignore,
    ) -> "tuple[NamedDocument, ...]":
        """Return all documents that contain a name, by address, each with the statements that contain it.

        Every document that you may see is read.

        names: a name or several, as whole words in any case. Other names of the same thing are not searched for.
        """
        from waylore.indexing.redaction import Names, find_named  # noqa: PLC0415 (searches do not need it)

        visible = self._narrow(where, user, include_expired=True)
        report = arguments.check_callable("progress", progress)
        return tuple(find_named(self._store, Names(arguments.to_names(names)), visible, report))

    @observe
    def remove_statements(
        self, names: Strings, *, documents: Strings, where: Where = None, user: str | None = ""
    ) -> Receipt:
        """Remove the statements with a name from documents, leave marks in their place, and return a receipt.

        Changed passages get new vectors. A document whose address, user or speaker has the name is refused: forget it.

        names: as for `find_about`, which lists the statements.
        documents: the ids of the documents.
        """
        from waylore.indexing.redaction import Names, redact_documents  # noqa: PLC0415 (searches do not need it)

        if self._embedder is None and (model := self._store.statistics().model):
            raise ModelMismatch(f"the collection was embedded with {model}: open it with that model, for new vectors")
        visible, ids = self._narrow(where, user, include_expired=True), arguments.to_documents([documents])
        called = Names(arguments.to_names(names))
        return redact_documents(self._store, self._embedder, called, ids, visible, author=self._author)

    @check_call
    def get_receipt(self, receipt: str) -> Receipt:
        """Return a stored receipt of forgotten documents; the HTTP service stores its receipts for 30 days.

        An author with labels gets only the receipts of its own calls.

        receipt: its id. The receipt has an id in place of each address that was missing.
        """
        id_ = arguments.check_text("receipt", receipt, "give the id of a receipt")
        known = self._store.get_receipt(id_, author=self._author) if is_id(id_) else None
        if known is None or not known.documents:
            raise NotFound(f"no receipt {id_:.60}; receipts are stored for 30 days")
        return known

    @check_call
    def audit(self, *, after: int = 0, limit: int = 100) -> "tuple[AuditEntry, ...]":
        """Return the audit log, oldest entry first: who changed which documents, and when. Entries have no content.

        after: the number of an entry; later entries are returned. -5 returns the newest five.
        """
        self._author.require_all()
        start = arguments.check_count("after", after, maximum=2**62, minimum=-(2**62))
        return self._store.audit(after=start, limit=arguments.check_count("limit", limit))

    @observe
    def quarantine(self, author: str) -> Receipt:
        """Hide all documents of an author until `release`, and return a receipt.

        They are in no search, list, graph, count or export. Later documents of the author are not hidden: revoke its
        key first.

        author: the identity in documents and the audit log, such as `key:4f1c2a9be07d3351`.
        """
        from waylore.engine import quarantine  # noqa: PLC0415 (searches do not need it)

        self._author.require_all()
        return quarantine.take_back(self._store, arguments.check_text("author", author), author=self._author)

    @observe
    def release(self, author: str) -> Receipt:
        """Bring back the documents that `quarantine` hid, unchanged, and return a receipt.

        A document that was added again meanwhile stays in quarantine, and its id is in `Receipt.missing`.
        """
        from waylore.engine import quarantine  # noqa: PLC0415

        self._author.require_all()
        return quarantine.release(self._store, arguments.check_text("author", author), author=self._author)

    @observe
    def forget_quarantined(self, author: str) -> Receipt:
        """Remove for good the documents that `quarantine` hid, and return a receipt."""
        from waylore.engine import quarantine  # noqa: PLC0415

        self._author.require_all()
        return quarantine.forget_quarantined(self._store, arguments.check_text("author", author), author=self._author)

    @check_call
    def list_quarantined(self) -> dict[str, int]:
        """Return the authors whose documents are in quarantine, each with the number of documents."""
        from waylore.engine import quarantine  # noqa: PLC0415

        self._author.require_all()
        return quarantine.count_quarantined(self._store)

    @check_call
    def verify_forgotten(self, receipt: Receipt) -> tuple[str, ...]:
        """Return one line for each trace of the receipt's items that is still stored.

        An empty tuple proves that they are gone from every table, index and page. Reads the whole store.
        """
        self._author.require_all()
        return self._store.find_remains(arguments.check_type("receipt", receipt, Receipt))

    @check_call
    def compact(self) -> None:
        """Rewrite the store without unused bytes. Other processes cannot write meanwhile."""
        self._author.require_all()
        self._store.compact()

    # -- move ------------------------------------------------------------------------------------------

    @check_call
    def export_lines(self) -> Generator[str]:
        """Return the lines of an export, one by one."""
        self._author.require_all()
        return exports.to_lines(self._store.statistics(), self._store.export())

    @observe
    def export(self, path: str | Path, *, progress: Callable[[int], None] = _ignore) -> int:
        """Write the collection to a file and return the number of documents.

        An older file is replaced only when the new one is complete.
        """
        self._author.require_all()
        file = arguments.to_path("path", path)
        return transfer.export_file(self._store, file, arguments.check_callable("progress", progress))

    @classmethod
    def reembed(
        cls,
        url: str | Path,
        *,
        embedder: Embedder,
        collection: str = "default",
        progress: Callable[[int], None] = _ignore,
        author: Author = OWNER,
    ) -> int:
        """Give an existing collection another embedding model, and return the number of new vectors.

        Searches use the old vectors until all new ones exist. An interrupted run is resumed by the next one.
        """
        checked = arguments.check_url(url)
        address = parse_url(checked)
        name = arguments.check_collection(collection, is_cells=address.is_cells)
        if arguments.check_embedder(embedder) is None:
            raise ArgumentError("embedder must be an Embedder, for example FastEmbedder(), got None")
        arguments.check_callable("progress", progress)
        arguments.check_type("author", author, Author)
        if address.is_file and not address.path.exists():
            raise NotFound(f"no store at {address.path}; check the path")
        store = open_store(checked, name)
        try:
            return transfer.reembed_store(store, embedder, progress, author=author)
        finally:
            store.close()

    # -- close -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish counting uses and close the store, for all views of it. Further calls raise ClosedError."""
        if not self._closed.is_set():
            self._closed.set()
            self._answers.close()
            self._store.close()

    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        return self._closed.is_set()

    def observe_call(self, verb: str) -> AbstractContextManager[Callable[[object], None]] | None:
        """Return the observer's context around a call, or None without an observer."""
        return self._observer.observe(verb) if self._observer else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- async twins -----------------------------------------------------------------------------------

    aadd = make_async(add)
    aadd_files = make_async(add_files)
    aadd_facts = make_async(add_facts)
    aremember = make_async(remember)
    aimport_ = make_async(import_)
    aenrich = make_async(enrich)
    aundo_enrichment = make_async(undo_enrichment)
    asearch = make_async(search)
    acontext = make_async(context)
    awarm_cache = make_async(warm_cache)
    aget = make_async(get)
    aget_passage = make_async(get_passage)
    amerges = make_async(merges)
    amark_distinct = make_async(mark_distinct)
    amark_same = make_async(mark_same)
    adocuments = make_async(documents)
    afacts = make_async(facts)
    arelated = make_async(related)
    aconnect = make_async(connect)
    alist_entities = make_async(list_entities)
    atimeline = make_async(timeline)
    aprofile = make_async(profile)
    achanges = make_async(changes)
    aprovenance = make_async(provenance)
    astats = make_async(stats)
    agrowth = make_async(growth)
    ausers = make_async(users)
    aforget = make_async(forget)
    aget_receipt = make_async(get_receipt)
    averify_forgotten = make_async(verify_forgotten)
    aquarantine = make_async(quarantine)
    arelease = make_async(release)
    acompact = make_async(compact)
    aexport = make_async(export)
    aexport_lines = make_async_generator(export_lines)

    @classmethod
    async def areembed(
        cls,
        url: str | Path,
        *,
        embedder: Embedder,
        collection: str = "default",
        progress: Callable[[int], None] = _ignore,
        author: Author = OWNER,
    ) -> int:
        """Call `reembed` in a thread."""
        run = make_async(cls.reembed)
        return await run(url, embedder=embedder, collection=collection, progress=progress, author=author)

    def _choose_recipe(
        self, method: str | Recipe | None, query: str, top_k: int | None, *find_turns: Callable[[], TurnShare]
    ) -> tuple[Recipe, str]:
        recipe, reason = arguments.to_recipe(self._method if method is None else method, query, *find_turns)
        hits = self._top_k if top_k is None else top_k
        if hits is not None:
            recipe = replace(recipe, top_k=arguments.check_count("top_k", hits, arguments.MAX_TOP_K))
        if self._single_valued:
            recipe = replace(recipe, walk=replace(recipe.walk, single_valued=self._single_valued))
        return recipe, reason

    def _ask_graph(self, name: str, as_of: Moment | None, where: Where, user: str | None) -> Query:
        known_at = arguments.to_moment(as_of)
        return Query(name, where=replace(self._narrow(where, user), as_of=known_at), as_of=known_at)

    def _match_predicates(self, asked: Sequence[str]) -> "PredicateMatcher":
        from waylore.retrieval.relations.predicates import PredicateMatcher  # noqa: PLC0415

        return PredicateMatcher(asked, self._embedder.embed_passages if self._embedder else None)

    def _find_documents(self, name: str, where: Filter) -> tuple[str, ...]:
        """Return the ids of the visible documents with this id, address or path."""
        if name in self._store.documents([name], where=where):
            return (name,)
        for uri in (name, find_address(name)):
            listed = self._store.list_documents(under=uri, after=("", ""), limit=arguments.MAX_LIMIT, where=where)
            if found := tuple(each.id for each in listed if uri in (each.uri, get_file(each.uri))):
                return found
        return ()

    def _make_document(
        self,
        metadata: Metadata | None,
        labels: Strings,
        source: Source,
        user: str | None = "",
        agent: str | None = "",
        session: str | None = "",
        at: Moment | None = None,
        expires: Moment | None = None,
        *,
        sieve: "Sieve | None" = None,
    ) -> Document:
        """Return the common fields of all documents of a call, without an id."""
        about = arguments.to_metadata(metadata)
        return Document(
            id="",
            source=self._author.cap(source),
            metadata=sieve.clean_fields(about) if sieve else about,
            labels=self._author.choose_labels(arguments.to_labels(labels)),
            recorded_at=self._clock(),
            user=self._author.choose_user(arguments.check_optional("user", user, MAX_TITLE)),
            agent=arguments.check_optional("agent", agent, MAX_TITLE),
            session=arguments.check_optional("session", session, MAX_TITLE),
            at=arguments.to_moment(at, "at"),
            expires=arguments.to_moment(expires, "expires"),
        )

    def _make_sieve(self) -> "Sieve":
        """Make a sieve that leaves secrets out of the texts of one call."""
        from waylore.indexing.secrets.sieve import make_sieve  # noqa: PLC0415 (a search starts without it)

        return make_sieve(self._scrub)

    def _check_names(self, name: str, other: str) -> tuple[str, str]:
        """Return two names without secrets."""
        first, second = map(self._make_sieve().clean, arguments.check_names(name, other))
        return first, second

    def _add_facts(self, stated: Sequence[IndexedDocument], source: Source) -> tuple[str, ...]:
        """Write documents of facts, and return their ids."""
        batches = list(pipeline.split_into_batches(stated, BATCH_FACTS))
        if source != "file":
            remember = partial(
                repeats.remember_facts,
                self._store,
                self._embedder,
                author=self._author,
                single_valued=self._single_valued,
            )
            return tuple(id_ for batch in batches for id_ in remember(batch))
        for batch in batches:
            self._write(batch)
        return tuple(each.document.id for each in stated)

    def _write(self, documents: Sequence[IndexedDocument]) -> None:
        pipeline.write(self._store, self._embedder, documents, author=self._author)

    def _narrow(self, where: Where, user: str | None = "", *, include_expired: bool = False) -> Filter:
        """Return the filter of a call, with the labels and the user of the author, and with the time for expiry."""
        now = None if arguments.check_type("include_expired", include_expired, bool) else self._clock()
        wanted = arguments.add_scope(arguments.to_filter(where), user=user)
        return self._author.narrow(replace(wanted, now=now))


def _read_secret(store: Store) -> bytes:
    """Return the key of the marks around recalled texts. Cells that cannot be reached are left out."""
    with partial_answers():
        return store.secret()
