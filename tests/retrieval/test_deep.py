"""`deep` asks again for what the best candidates leave open: in one bounded call, with the caller's own words."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from retrieval.worlds import (
    Case,
    DrawnDocument,
    cases,
    fill_store,
    index_document,
    index_world,
    promise,
    search_store,
)
from waylore.config import GateConfig
from waylore.indexing import pipeline
from waylore.protocols import BatchEmbedder, Vectors
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN, DEEP
from waylore.store.sqlite.store import SqliteStore
from waylore.types.identity import document_id
from waylore.types.knowledge import Document, NewFact, Vector
from waylore.types.search import Filter

OPEN = GateConfig(min_confidence=0.0, min_graph_score=0.0)
ASKING, PLAIN = replace(DEEP, gate=OPEN), replace(CHAIN, gate=OPEN)
QUESTION = "Which storm sank the ferry of the keeper of Kiel?"
WORLD = [
    DrawnDocument("The harbour of Kiel has a keeper.", facts=(NewFact("Kiel", "is kept by", "Ada Byron"),)),
    DrawnDocument("Ada Byron owned a ferry.", facts=(NewFact("Ada Byron", "owned", "Engine"),)),
    DrawnDocument("Engine sank in the storm.", facts=(NewFact("Engine", "sank in", "winter"),)),
    DrawnDocument("A secret name.", facts=(NewFact("Ada Byron", "is called", "Falcon"),), labels=frozenset({"spies"})),
    *(DrawnDocument(f"A lighthouse {n} without light.") for n in range(8)),
]


class RecordingEmbedder(HashingEmbedder):
    """Records the questions of each call. It fails if it is broken."""

    def __init__(self, *, is_broken: bool = False) -> None:
        super().__init__(64, quiet=True)
        self.is_broken = is_broken
        self.calls: list[list[str]] = []

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        if self.is_broken:
            raise OSError("the model does not answer")
        return super().embed_queries(texts)


class SingleEmbedder:
    """An embedder that embeds one question at a time."""

    def __init__(self) -> None:
        self._model = HashingEmbedder(64, quiet=True)
        self.name, self.dimension = self._model.name, self._model.dimension
        self.calls: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._model.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        self.calls.append(text)
        return self._model.embed_query(text)


@pytest.fixture(scope="module")
def store() -> Iterator[SqliteStore]:
    embedder = HashingEmbedder(64, quiet=True)
    with fill_store(index_world(WORLD, embedder=embedder), SqliteStore, model=embedder.name) as store:
        yield store


def test_question_is_asked_again_in_one_bounded_call(store: SqliteStore) -> None:
    embedder = RecordingEmbedder()
    found = search_store(store, QUESTION, ASKING, embedder=embedder)
    [texts] = embedder.calls
    assert 0 < len(texts) <= DEEP.deep.rewrites
    assert any("Ada Byron" in text for text in texts)
    assert found.missing == ()
    placed = [p for hit in found.hits for p in hit.placements if p.search == "rewrite"]
    assert placed
    assert {p.query for p in placed} <= set(texts)


def test_candidates_of_one_page_are_not_asked_for_again() -> None:
    """Rewrites did harm in folders of long pages, so the answer is that of `chain`."""
    embedder = RecordingEmbedder()
    text = "\n\n".join([*(drawn.text for drawn in WORLD[:3]), *(f"Storm {n} of Kiel. " * 60 for n in range(8))])
    page = pipeline.index_text(Document(document_id(uri="page"), uri="page"), text, WORLD[0].facts)
    with fill_store(pipeline.embed_documents([page], embedder), SqliteStore, model=embedder.name) as store:
        found = search_store(store, QUESTION, ASKING, embedder=embedder)
        plain = search_store(store, QUESTION, PLAIN, embedder=embedder)
    assert len(page.passages) > 3
    assert embedder.calls == []
    assert found.hits == plain.hits


def test_failed_call_gives_the_answer_of_chain(store: SqliteStore) -> None:
    broken = search_store(store, QUESTION, ASKING, embedder=RecordingEmbedder(is_broken=True))
    plain = search_store(store, QUESTION, PLAIN, embedder=RecordingEmbedder())
    assert broken.missing == ("rewrite: the model does not answer",)
    assert [(hit.passage.id, hit.score) for hit in broken.hits] == [(hit.passage.id, hit.score) for hit in plain.hits]


def test_embedder_without_batches_is_called_a_few_times(store: SqliteStore) -> None:
    embedder = SingleEmbedder()
    assert not isinstance(embedder, BatchEmbedder)
    assert search_store(store, QUESTION, ASKING, embedder=embedder).missing == ()
    assert 1 < len(embedder.calls) <= 1 + 4


def test_rewrites_have_no_word_that_the_caller_may_not_see(store: SqliteStore) -> None:
    """A hidden document gives a visible entity another name. Who may read it asks with it, others do not."""
    asked: dict[bool, str] = {}
    for is_spy in (True, False):
        embedder = RecordingEmbedder()
        where = Filter(labels=frozenset({"spies"} if is_spy else ()))
        found = search_store(store, QUESTION, replace(ASKING, top_k=20), embedder=embedder, where=where)
        shown = [p.query for hit in found.hits for p in hit.placements]
        asked[is_spy] = " ".join([*(text for call in embedder.calls for text in call), *shown])
    assert "Falcon" in asked[True]
    assert "Falcon" not in asked[False]


@promise(40, cases(["deep"]))
def test_hidden_documents_change_nothing_that_is_asked(case: Case) -> None:
    """The texts that leave for the embedder are those of a store that never had what is hidden."""
    asked: list[list[list[str]]] = []
    for is_hidden_stored in (True, False):
        embedder = RecordingEmbedder()
        kept = [n for n, drawn in enumerate(case.world) if is_hidden_stored or not drawn.labels]
        documents = [index_document(case.world[n], n, embedder=embedder) for n in kept]
        with fill_store(documents, SqliteStore, model=embedder.name) as store:
            search_store(store, case.question, ASKING, embedder=embedder, where=Filter(labels=frozenset()))
        asked.append(embedder.calls)
    assert asked[0] == asked[1]
