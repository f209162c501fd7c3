"""Random small worlds, questions, recipes and filters, and how to ask one on a real store.

A world is a list of `Told`: documents over few words and few names, so that texts, facts and names meet often.
Whatever a document alone says (statements, descriptions, types, and for a labelled one also words, names,
predicates and aliases) carries a token with the document's number, so that a test can tell from any text which
documents it came from, and by which claim.
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

from databases import fresh_name, server
from waylore.cells.members import Federation
from waylore.cells.store import open_federated
from waylore.config import Context, Hybrid
from waylore.indexing import pipeline
from waylore.protocols import Embedder, Reranker, Vectors
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.context import Style, context
from waylore.retrieval.search import search
from waylore.store.postgres.store import PostgresStore
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.suite import day
from waylore.text import pieces
from waylore.types.identity import document_id
from waylore.types.knowledge import SOURCES, Claim, Contribution, Document
from waylore.types.search import EVERYTHING, Filter, Found, Query

NOW = day("2024-05-02")
DAYS = tuple(map(day, ["2020-01-01", "2022-01-01", "2024-01-01", "2026-01-01"]))
NAMES = ("Ada", "Byron", "Ada Byron", "Kiel", "Engine", "Lothair", "Zeno", "Mull")
WORDS = ("harbour", "ferry", "lighthouse", "storm", "winter", "keeper")
PREDICATES = ("knows", "needs", "cites")
GRAPHS = tuple(name for name, recipe in RECIPES.items() if recipe.graph)
STYLES: tuple[Style, ...] = ("passages", "graph", "narrative")
ROOMY = Context(max_tokens=10**6, graph_tokens=10**6)
TOKEN = re.compile(r"(?:said|kind|told|hush)(\d+)x(\d*)")
AnyStore = TypeVar("AnyStore", bound=SqliteStore)
ENGINE: ContextVar[str] = ContextVar("ENGINE", default="sqlite")
CELLS: ContextVar[Federation] = ContextVar("CELLS")
TEXTSEARCH: ContextVar[str] = ContextVar("TEXTSEARCH")


class Halves(HashingEmbedder):
    """Hashes words to vectors of four halves, some negative: cosines are exact in any order, and often ties."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        rows = super().embed_passages(texts)
        largest = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :4]
        halves = np.zeros_like(rows)
        signs = np.where(np.take_along_axis(rows, largest, axis=1) < 0, -0.5, 0.5)
        np.put_along_axis(halves, largest, signs.astype(rows.dtype), axis=1)
        return halves


EMBEDDER = Halves(16, quiet=True)


@dataclass(frozen=True)
class Told:
    """A document as a test draws it; its place in the world is its number."""

    text: str
    title: str = ""
    labels: frozenset[str] = frozenset()
    lang: str = ""
    claims: tuple[Claim, ...] = ()


SAMPLE = (
    Told("Ada keeps the lighthouse", "Ada", claims=(Claim("Ada", "needs", "Engine", weight=9),)),
    Told("Ada wrote in winter", claims=(Claim("Ada", "cites", "Byron", weight=8, source="user_edit"),)),
    Told("The engine was built there", "Engine", claims=(Claim("Engine", "needs", "Kiel", weight=8),)),
    Told("Byron is a poet", "Byron", claims=(Claim("Byron", "cites", "Lothair", weight=7),)),
    Told("Lothair sails", "Lothair", claims=(Claim("Lothair", "knows", "Zeno", weight=9),)),
    Told("Kiel has boats", "Kiel", claims=(Claim("Kiel", "has", "2 piers", is_value=True),)),
    Told("A storm came to the harbour in winter"),
    Told("The keeper fears a storm"),
    Told("The ferry leaves the harbour", claims=(Claim("Zeno", "needs", "Zeno", status="staged"),)),
)
QUESTION = "What does Ada need when a storm comes to the harbour?"


def is_seen(told: Told, where: Filter) -> bool:
    """Whether a filter lets a document through: our own reading of what `Filter` says."""
    is_allowed = where.labels is None or not told.labels or bool(told.labels & where.labels)
    wanted = where.metadata.get("lang")
    return is_allowed and (wanted is None or told.lang == wanted)


def holds(claim: Claim, as_of: datetime) -> bool:
    """Whether a claim is valid at a moment."""
    begun = claim.valid_from is None or claim.valid_from <= as_of
    return begun and (claim.valid_to is None or claim.valid_to > as_of)


def written(told: Told, number: int, *, embedder: Embedder | None = EMBEDDER) -> Contribution:
    """What is written of a document: claims and entities with tokens, and vectors if there is an embedder."""
    claims = [replace(c, statement=f"said{number}x{at}") for at, c in enumerate(told.claims)]
    text, uri = told.text, str(number)
    if told.labels:
        text, uri = f"{text} hush{number}x", f"hush{number}x"
        claims.append(Claim(NAMES[number % 3], f"hush{number}x", "Kiel", f"said{number}x", weight=10))
        claims.append(Claim("Ada", "knows", f"Hush{number}x", f"said{number}x", weight=10))
    document = Document(
        document_id(uri=uri),
        told.title,
        uri,
        metadata={"lang": told.lang} if told.lang else {},
        labels=told.labels,
        recorded_at=DAYS[0],
    )
    plain = pipeline.contribution(document, text, claims)
    entities = tuple(
        replace(
            entity,
            type=f"kind{number}x",
            description=f"told{number}x",
            aliases=(f"Hush{number}x {place}",) if told.labels else (),
        )
        for place, entity in enumerate(plain.entities)
    )
    whole = replace(plain, entities=entities)
    return whole if embedder is None else pipeline.embedded([whole], embedder)[0]


def contributions(world: Sequence[Told], *, embedder: Embedder | None = EMBEDDER) -> list[Contribution]:
    """All documents of a world as they are written."""
    return [written(told, number, embedder=embedder) for number, told in enumerate(world)]


@contextmanager
def holding(
    told: Sequence[Contribution], kind: type[AnyStore], *, model: str | None = EMBEDDER.name
) -> Iterator[AnyStore]:
    """A store of some kind, of its own, that holds these contributions."""
    with tempfile.TemporaryDirectory() as folder:
        store = _opened(kind, Path(folder))
        try:
            store.write(told, model=model)
            yield store
        finally:
            store.close()


def _opened(kind: type[AnyStore], folder: Path) -> AnyStore:
    """What a test asks for as SQLite's is of the engine under test; what it made itself stays what it is."""
    if kind is SqliteStore and ENGINE.get() == "postgres":
        return cast("AnyStore", PostgresStore(server(), fresh_name("world")))
    if kind is SqliteStore and ENGINE.get() == "textsearch":
        return cast("AnyStore", PostgresStore(TEXTSEARCH.get(), fresh_name("world")))
    if kind is SqliteStore and ENGINE.get() == "cells":
        return cast("AnyStore", open_federated(CELLS.get(), fresh_name("world")))
    return kind(folder / "world.waylore")


def ask(
    store: Store,
    question: str,
    recipe: Recipe,
    *,
    where: Filter = EVERYTHING,
    as_of: datetime | None = NOW,
    embedder: Embedder | None = EMBEDDER,
    reranker: Reranker | None = None,
) -> Found:
    """Search a store itself, without the engine and its cache."""
    query = Query(question, where=where, as_of=as_of)
    return search(store, embedder, query, recipe, now=NOW, reranker=reranker)


def ids(found: Found) -> list[str]:
    """The passages that were found, in order."""
    return [hit.passage.id for hit in found.hits]


def everything_in(found: Found) -> str:
    """All text that a caller can read from an answer but the question: itself, explained, and as context."""
    texts = [repr(replace(found, query=""))]
    texts += [str(hit.explanation) for hit in found.hits]
    texts += [context(found, style=style, config=ROOMY, count=pieces).text for style in STYLES]
    return "\n".join(texts)


def sources_of(text: str) -> set[tuple[int, str]]:
    """The documents, and the claims where they can be told, whose tokens occur in a text."""
    return {(int(number), claim) for number, claim in TOKEN.findall(text.casefold())}


@dataclass(frozen=True)
class Case:
    """A world and a question about it."""

    world: tuple[Told, ...]
    question: str
    recipe: Recipe
    where: Filter
    as_of: datetime
    embedder: Embedder | None

    @contextmanager
    def store(self) -> Iterator[SqliteStore]:
        """A store that holds the world."""
        with holding(contributions(self.world), SqliteStore) as store:
            yield store

    def ask(self, store: Store) -> Found:
        """The answer of a store."""
        options = {"where": self.where, "as_of": self.as_of, "embedder": self.embedder}
        return ask(store, self.question, self.recipe, **options)  # type: ignore[arg-type]

    def hybrid(self, store: Store) -> Found:
        """The answer without the graph."""
        return replace(self, recipe=replace(self.recipe, graph="")).ask(store)


# -- strategies ----------------------------------------------------------------------------------------

spans = st.tuples(st.sampled_from([None, *DAYS]), st.sampled_from([None, *DAYS])).map(
    lambda ends: ends if None in ends else tuple(sorted(ends, key=str))
)
plain_claims = st.builds(
    Claim,
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
    Told,
    text=st.lists(st.sampled_from(WORDS + NAMES), min_size=1, max_size=6).map(" ".join),
    title=st.sampled_from(["", *NAMES]),
    labels=st.sampled_from([frozenset(), frozenset(), frozenset({"red"}), frozenset({"blue"})]),
    lang=st.sampled_from(["", "en", "fr"]),
    claims=st.lists(claims, max_size=4).map(tuple),
)
worlds = st.lists(documents, min_size=3, max_size=8).map(tuple)
questions = st.builds(
    lambda name, words: f"What of {name} {' '.join(words)}?",
    st.sampled_from(NAMES),
    st.lists(st.sampled_from((*NAMES, *WORDS, *WORDS, "Hush1x", "hush2x 0")), max_size=4),
)
filters = st.builds(
    Filter,
    labels=st.sampled_from([None, frozenset({"red"}), frozenset({"green", "blue"}), frozenset()]),
    metadata=st.sampled_from([{}, {}, {}, {"lang": "en"}]),
)
hybrids = st.sampled_from(
    [
        Hybrid(),
        Hybrid(depth=1, candidates=1),
        Hybrid("rrf"),
        Hybrid("rrf", 0.5, 0.5, rrf_k=1, candidates=3),
        Hybrid(vector_weight=0.2, text_weight=0.8, candidates=2),
        Hybrid(vector_weight=0.0),
        Hybrid(text_weight=0.0),
    ]
)
few = st.sampled_from([50, 2, 1])


@st.composite
def recipes(draw: st.DrawFn, names: Sequence[str] = (*GRAPHS, *RECIPES)) -> Recipe:
    """One of the recipes with other numbers; the gate is open to thin evidence more often than by default."""
    base = RECIPES[draw(st.sampled_from(names))]
    return replace(
        base,
        top_k=draw(st.integers(1, 8)),
        hybrid=draw(st.just(base.hybrid) | hybrids),
        linking=replace(base.linking, facts=draw(st.sampled_from([5, 1, 0])), facts_per_entity=draw(few)),
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


def promised(
    examples: int, *strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A property of so many random examples, or of a quarter of them in cells, where each takes longest."""

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        all_, some = (
            settings(max_examples=most)(given(*strategies)(test)) for most in (examples, max(examples // 4, 5))
        )

        def checked(**fixtures: object) -> None:
            (some if ENGINE.get() in ("cells", "textsearch") else all_)(**fixtures)

        return update_wrapper(checked, all_, updated=())

    return decorated


def cases(
    names: Sequence[str] = (*GRAPHS, *RECIPES), where: st.SearchStrategy[Filter] = filters
) -> st.SearchStrategy[Case]:
    """Worlds with questions about them, some without vectors, as of some moment, for some caller."""
    moments = st.sampled_from([NOW, *DAYS, day("2021-06-01")])
    embedders = st.sampled_from([EMBEDDER, EMBEDDER, None])
    return st.builds(Case, worlds, questions, recipes(names), where, moments, embedders)
