"""Random small worlds, questions, recipes and filters, and functions to search them on a real store.

A world is a list of `DrawnDocument`: documents over few words and few names, so that texts, facts and names
meet often. Everything that only one document states (statements, descriptions, types, and for a labelled one
also words, names, predicates and aliases) carries a token with the document's number. So a test can tell from
any text which documents and which facts it came from.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from databases import get_server_url, make_name
from waylore.cells.members import Federation
from waylore.cells.store import open_federated
from waylore.config import ContextConfig, HybridConfig
from waylore.fence import Fence
from waylore.indexing import pipeline
from waylore.protocols import Embedder, Reranker, Vectors
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.context.block import Layout
from waylore.retrieval.context.render import render_context
from waylore.retrieval.parts import split_question
from waylore.retrieval.search import search
from waylore.store.postgres.store import PostgresStore
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import day
from waylore.text import estimate_tokens
from waylore.types.author import OWNER
from waylore.types.identity import document_id
from waylore.types.knowledge import SOURCES, Document, IndexedDocument, NewFact
from waylore.types.search import NO_FILTER, Filter, Query, SearchResult

NOW = day("2024-05-02")
DAYS = tuple(map(day, ["2020-01-01", "2022-01-01", "2024-01-01", "2026-01-01"]))
NAMES = ("Ada", "Byron", "Ada Byron", "Kiel", "Engine", "Lothair", "Zeno", "Mull")
WORDS = ("harbour", "ferry", "lighthouse", "storm", "winter", "keeper")
PREDICATES = ("knows", "needs", "cites")
GRAPHS = tuple(name for name, recipe in RECIPES.items() if recipe.graph)
ADDITIVE = tuple(name for name, recipe in RECIPES.items() if recipe.has_hybrid)  # all but graph_only
LAYOUTS: tuple[Layout, ...] = ("passages", "graph", "narrative")
ROOMY = ContextConfig(max_tokens=10**6, graph_tokens=10**6)
TOKEN = re.compile(r"(?:said|kind|told|hush)(\d+)x(\d*)")
AnyStore = TypeVar("AnyStore", bound=SqliteStore)
ENGINE: ContextVar[str] = ContextVar("ENGINE", default="sqlite")
CELLS: ContextVar[Federation] = ContextVar("CELLS")
TEXTSEARCH: ContextVar[str] = ContextVar("TEXTSEARCH")


class Halves(HashingEmbedder):
    """Hashes words to vectors of four halves, some negative. Cosines are exact in any order, and often tie."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        rows = super().embed_passages(texts)
        largest = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :4]
        halves = np.zeros_like(rows)
        signs = np.where(np.take_along_axis(rows, largest, axis=1) < 0, -0.5, 0.5)
        np.put_along_axis(halves, largest, signs.astype(rows.dtype), axis=1)
        return halves


EMBEDDER = Halves(16, quiet=True)


@dataclass(frozen=True)
class DrawnDocument:
    """A document that a test draws; its place in the world is its number."""

    text: str
    title: str = ""
    labels: frozenset[str] = frozenset()
    lang: str = ""
    facts: tuple[NewFact, ...] = ()


SAMPLE = (
    DrawnDocument("Ada keeps the lighthouse", "Ada", facts=(NewFact("Ada", "needs", "Engine", weight=9),)),
    DrawnDocument("Ada wrote in winter", facts=(NewFact("Ada", "cites", "Byron", weight=8, source="user_edit"),)),
    DrawnDocument("The engine was built there", "Engine", facts=(NewFact("Engine", "needs", "Kiel", weight=8),)),
    DrawnDocument("Byron is a poet", "Byron", facts=(NewFact("Byron", "cites", "Lothair", weight=7),)),
    DrawnDocument("Lothair sails", "Lothair", facts=(NewFact("Lothair", "knows", "Zeno", weight=9),)),
    DrawnDocument("Kiel has boats", "Kiel", facts=(NewFact("Kiel", "has", "2 piers", is_value=True),)),
    DrawnDocument("A storm came to the harbour in winter"),
    DrawnDocument("The keeper fears a storm"),
    DrawnDocument("The ferry leaves the harbour", facts=(NewFact("Zeno", "needs", "Zeno", status="staged"),)),
)
QUESTION = "What does Ada need when a storm comes to the harbour?"


def is_seen(document: DrawnDocument, where: Filter) -> bool:
    """Return whether a filter lets a document through, by an independent reading of `Filter`."""
    is_allowed = where.labels is None or not document.labels or bool(document.labels & where.labels)
    wanted = where.metadata.get("lang")
    return is_allowed and (wanted is None or document.lang == wanted)


def is_valid(fact: NewFact, as_of: datetime) -> bool:
    """Return whether a fact is valid at a moment."""
    has_started = fact.valid_from is None or fact.valid_from <= as_of
    return has_started and (fact.valid_to is None or fact.valid_to > as_of)


def index_document(drawn: DrawnDocument, number: int, *, embedder: Embedder | None = EMBEDDER) -> IndexedDocument:
    """Return a document with facts and entities that carry tokens, and vectors if there is an embedder."""
    facts = [replace(c, statement=f"said{number}x{at}") for at, c in enumerate(drawn.facts)]
    text, uri = drawn.text, str(number)
    if drawn.labels:
        text, uri = f"{text} hush{number}x", f"hush{number}x"
        facts.append(NewFact(NAMES[number % 3], f"hush{number}x", "Kiel", f"said{number}x", weight=10))
        facts.append(NewFact("Ada", "knows", f"Hush{number}x", f"said{number}x", weight=10))
    document = Document(
        document_id(uri=uri),
        drawn.title,
        uri,
        metadata={"lang": drawn.lang} if drawn.lang else {},
        labels=drawn.labels,
        recorded_at=DAYS[0],
    )
    plain = pipeline.index_text(document, text, facts)
    entities = tuple(
        replace(
            entity,
            type=f"kind{number}x",
            description=f"told{number}x",
            aliases=(f"Hush{number}x {place}",) if drawn.labels else (),
        )
        for place, entity in enumerate(plain.entities)
    )
    whole = replace(plain, entities=entities)
    return whole if embedder is None else pipeline.embed_documents([whole], embedder)[0]


def index_world(world: Sequence[DrawnDocument], *, embedder: Embedder | None = EMBEDDER) -> list[IndexedDocument]:
    """Return all documents of a world, indexed."""
    return [index_document(document, number, embedder=embedder) for number, document in enumerate(world)]


@contextmanager
def fill_store(
    documents: Sequence[IndexedDocument], kind: type[AnyStore], *, model: str | None = EMBEDDER.name
) -> Iterator[AnyStore]:
    """Open a new store of some kind with these documents."""
    with tempfile.TemporaryDirectory() as folder:
        store = _open(kind, Path(folder))
        try:
            store.write(documents, author=OWNER, model=model)
            yield store
        finally:
            store.close()


def _open(kind: type[AnyStore], folder: Path) -> AnyStore:
    """Open a store of the engine under test if the kind is SQLite's; other kinds stay as they are."""
    if kind is SqliteStore and ENGINE.get() == "postgres":
        return cast("AnyStore", PostgresStore(get_server_url(), make_name("world")))
    if kind is SqliteStore and ENGINE.get() == "textsearch":
        return cast("AnyStore", PostgresStore(TEXTSEARCH.get(), make_name("world")))
    if kind is SqliteStore and ENGINE.get() == "cells":
        return cast("AnyStore", open_federated(CELLS.get(), make_name("world")))
    return kind(folder / "world.waylore")


def search_store(
    store: Store,
    question: str,
    recipe: Recipe,
    *,
    where: Filter = NO_FILTER,
    as_of: datetime | None = NOW,
    embedder: Embedder | None = EMBEDDER,
    reranker: Reranker | None = None,
    min_similarity: float | None = None,
) -> SearchResult:
    """Search a store itself, without the engine and its cache."""
    query = Query(question, where=where, as_of=as_of, min_similarity=min_similarity)
    return search(store, embedder, query, recipe, now=NOW, reranker=reranker)


def list_ids(result: SearchResult) -> list[str]:
    """Return the ids of the passages of a result, in order."""
    return [hit.passage.id for hit in result.hits]


def collect_text(result: SearchResult) -> str:
    """Return all text of a result except the question, also of its explanations and contexts."""
    texts = [repr(replace(result, query=""))]
    texts += [str(hit.explanation) for hit in result.hits]
    fence = Fence("x")
    texts += [
        render_context(result, layout=layout, config=ROOMY, count=estimate_tokens, fence=fence).text
        for layout in LAYOUTS
    ]
    return "\n".join(texts)


def find_sources(text: str) -> set[tuple[int, str]]:
    """Return the documents, and the facts if known, whose tokens occur in a text."""
    return {(int(number), fact) for number, fact in TOKEN.findall(text.casefold())}


@dataclass(frozen=True)
class Case:
    """A world and a question about it."""

    world: tuple[DrawnDocument, ...]
    question: str
    recipe: Recipe
    where: Filter
    as_of: datetime
    embedder: Embedder | None

    @contextmanager
    def store(self) -> Iterator[SqliteStore]:
        """Open a store with the world."""
        with fill_store(index_world(self.world), SqliteStore) as store:
            yield store

    def ask(self, store: Store) -> SearchResult:
        """Return the result of a store."""
        options = {"where": self.where, "as_of": self.as_of, "embedder": self.embedder}
        return search_store(store, self.question, self.recipe, **options)  # type: ignore[arg-type]

    def hybrid(self, store: Store) -> SearchResult:
        """Return the result without the graph."""
        return replace(self, recipe=replace(self.recipe, graph="", asks_parts=False)).ask(store)

    @property
    def has_parts(self) -> bool:
        """Return whether the question asks for several things, which are searched too."""
        return self.recipe.asks_parts and bool(split_question(self.question, self.recipe.parts))


# -- strategies ----------------------------------------------------------------------------------------

spans = st.tuples(st.sampled_from([None, *DAYS]), st.sampled_from([None, *DAYS])).map(
    lambda ends: ends if None in ends else tuple(sorted(ends, key=str))
)
plain_claims = st.builds(
    NewFact,
    subject=st.sampled_from(NAMES),
    predicate=st.sampled_from(PREDICATES),
    object=st.sampled_from(NAMES),
    weight=st.integers(1, 10).map(float),
    confidence=st.sampled_from([1.0, 0.9, 0.5, 0.0]),
    source=st.sampled_from(SOURCES),
    status=st.sampled_from(["confirmed", "confirmed", "confirmed", "staged", "retracted"]),
    is_value=st.sampled_from([False, False, False, True]),
)
claims = st.builds(
    lambda claim, span: replace(claim, valid_from=span[0], valid_to=span[1]),
    plain_claims,
    st.just((None, None)) | st.just((None, None)) | spans,
)
documents = st.builds(
    DrawnDocument,
    text=st.lists(st.sampled_from(WORDS + NAMES), min_size=1, max_size=6).map(" ".join),
    title=st.sampled_from(["", *NAMES]),
    labels=st.sampled_from([frozenset(), frozenset(), frozenset({"red"}), frozenset({"blue"})]),
    lang=st.sampled_from(["", "en", "fr"]),
    facts=st.lists(claims, max_size=4).map(tuple),
)
worlds = st.lists(documents, min_size=3, max_size=8).map(tuple)
questions = st.builds(
    lambda name, words, rest: f"What of {name} {' '.join(words)}{rest}?",
    st.sampled_from(NAMES),
    st.lists(st.sampled_from((*NAMES, *WORDS, *WORDS, "Hush1x", "hush2x 0")), max_size=4),
    st.sampled_from(
        ["", "", "", f", and which {WORDS[0]} of {NAMES[-1]}", f"? Where is {NAMES[0]}, and who has {WORDS[1]}"]
    ),
)
filters = st.builds(
    Filter,
    labels=st.sampled_from([None, frozenset({"red"}), frozenset({"green", "blue"}), frozenset()]),
    metadata=st.sampled_from([{}, {}, {}, {"lang": "en"}]),
)
hybrids = st.sampled_from(
    [
        HybridConfig(),
        HybridConfig(candidates=1),
        HybridConfig("weighted"),
        HybridConfig("weighted", depth=1, candidates=1),
        HybridConfig("rrf"),
        HybridConfig("rrf", 0.5, 0.5, rrf_k=1, candidates=3),
        HybridConfig(vector_weight=0.2, text_weight=0.8, candidates=2),
        HybridConfig(vector_weight=0.0),
        HybridConfig(text_weight=0.0),
    ]
)
few = st.sampled_from([50, 2, 1])


@st.composite
def recipes(draw: st.DrawFn, names: Sequence[str] = (*GRAPHS, *RECIPES)) -> Recipe:
    """Draw a recipe with other numbers. Its gate opens more often than by default."""
    base = RECIPES[draw(st.sampled_from(names))]
    return replace(
        base,
        top_k=draw(st.integers(1, 8)),
        hybrid=draw(st.just(base.hybrid) | hybrids),
        linking=replace(base.linking, max_facts=draw(st.sampled_from([5, 1, 0])), facts_per_entity=draw(few)),
        gate=replace(
            base.gate,
            min_confidence=draw(st.sampled_from([0.0, 0.0, 0.5])),
            min_graph_score=draw(st.sampled_from([0.0, 0.3])),
        ),
        walk=replace(
            base.walk,
            max_hops=draw(st.integers(1, 3)),
            facts_per_entity=draw(few),
            passages_per_entity=draw(few),
            frontier=draw(few),
            max_entities=draw(st.sampled_from([400, 3])),
        ),
        chain=replace(
            base.chain,
            walked=draw(st.sampled_from([40, 1])),
            common=draw(st.sampled_from([8, 1])),
            min_graph_score=draw(st.sampled_from([0.0, 0.3])),
        ),
        merge=replace(
            base.merge,
            graph_weight=draw(st.sampled_from([0.3, 1.0, 0.0])),
            max_graph_passages=draw(st.sampled_from([None, 4, 1, 0])),
            max_facts=draw(st.sampled_from([30, 2])),
        ),
    )


def promise(examples: int, *strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Check a property with random examples: a quarter of them, an eighth on servers, and all in the profile `full`."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        all_, quarter, some = (
            settings(max_examples=max(most, 5))(given(*strategies)(test))
            for most in (examples, examples // 4, examples // 8)
        )

        def check(**fixtures: object) -> None:
            if settings.get_current_profile_name() == "full":
                all_(**fixtures)
            else:
                (quarter if ENGINE.get() == "sqlite" else some)(**fixtures)

        return update_wrapper(check, all_, updated=())

    return decorate


def cases(
    names: Sequence[str] = (*GRAPHS, *RECIPES), where: st.SearchStrategy[Filter] = filters
) -> st.SearchStrategy[Case]:
    """Return worlds with questions, some without vectors, at some time, for some caller."""
    moments = st.sampled_from([NOW, *DAYS, day("2021-06-01")])
    embedders = st.sampled_from([EMBEDDER, EMBEDDER, None])
    return st.builds(Case, worlds, questions, recipes(names), where, moments, embedders)
