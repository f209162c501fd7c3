"""The documents, helpers and fixtures that the tests of the Store protocol share.

The world is three small documents about the same king, one of them with a label. Vectors come from a hashing
embedder, so that no model is needed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from waylore import names as naming
from waylore.indexing import pipeline
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.protocol import Store
from waylore.types.author import OWNER
from waylore.types.identity import document_id, entity_id, fact_id
from waylore.types.knowledge import (
    STATUSES,
    Document,
    IndexedDocument,
    Metadata,
    NewFact,
    Source,
    Vector,
)
from waylore.types.search import Filter

EMBEDDER = HashingEmbedder(64, quiet=True)
OTHER_EMBEDDER = HashingEmbedder(96, quiet=True)
MODEL = EMBEDDER.name
PUBLIC = Filter(labels=frozenset())
OpenStore = Callable[[str], Store]


def day(text: str) -> datetime:
    """Return midnight of an ISO date, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def page(
    text: str,
    *facts: NewFact,
    title: str = "",
    uri: str = "",
    labels: Sequence[str] = (),
    metadata: Metadata | None = None,
    source: Source = "file",
) -> IndexedDocument:
    """Return a text with the facts it states, embedded. Equal arguments give an equal document."""
    document = Document(
        id=document_id(uri=uri, text=text, labels=frozenset(labels)),
        title=title,
        uri=uri,
        source=source,
        metadata=metadata or {},
        labels=frozenset(labels),
        recorded_at=day("2024-05-01"),
    )
    return pipeline.embed_documents([pipeline.index_text(document, text, facts)], EMBEDDER)[0]


def describe_entities(document: IndexedDocument, **descriptions: str) -> IndexedDocument:
    """Add descriptions to the entities of a document. A key is a name with underscores for spaces."""
    by_id = {entity_id(name.replace("_", " ")): text for name, text in descriptions.items()}
    entities = tuple(replace(e, description=by_id.get(e.id, "")) for e in document.entities)
    return replace(document, entities=entities)


def question(text: str) -> Vector:
    """Return the vector of a question."""
    return EMBEDDER.embed_query(text)


def sort_parts(documents: Iterator[IndexedDocument]) -> list[IndexedDocument]:
    """Return documents by id, with their parts in the order of an export."""
    return [
        replace(
            c,
            entities=tuple(sorted(c.entities, key=lambda e: e.id)),
            mentions=tuple(sorted(c.mentions, key=lambda m: (_position(c, m.passage_id), m.entity_id))),
            facts=tuple(sorted(c.facts, key=lambda f: (_position(c, f.passage_id), f.id))),
            pairs=tuple(sorted(c.pairs, key=lambda f: (_position(c, f.passage_id), f.id))),
        )
        for c in sorted(documents, key=lambda c: c.document.id)
    ]


def _position(document: IndexedDocument, passage: str) -> tuple[int, str]:
    return next((p.position, p.id) for p in document.passages if p.id == passage)


def list_vectors(documents: Iterator[IndexedDocument]) -> list[list[float]]:
    """Return all vectors of an export, because equality of documents ignores them."""
    parts = (p.vector for c in documents for p in c.parts)
    return [[] if v is None else [round(float(x), 5) for x in v] for v in parts]


RULES = NewFact("Lothair II", "rules", "Lotharingia", weight=8, subject_type="person", object_type="place")
MOTHER = NewFact("Lothair II", "mother", "Ermengarde of Tours", weight=9)
BORN = NewFact("Lothair II", "born", "835", is_value=True, weight=3)
PAIR = NewFact("Lothair II", "", "Ermengarde of Tours", "His mother was Ermengarde of Tours.", is_pair=True)
KING = page(
    "Lothair II was king of Lotharingia. His mother was Ermengarde of Tours.",
    RULES,
    MOTHER,
    BORN,
    PAIR,
    title="Lothair II",
    metadata={"lang": "en", "year": 855, "tags": ["king", "frank"]},
)
QUEEN = page(
    "Ermengarde of Tours married Lothair I and is buried at Erstein.",
    NewFact("Ermengarde of Tours", "spouse", "Lothair I", weight=7),
    title="Ermengarde of Tours",
    metadata={"lang": "fr"},
)
SECRET = page(
    "The codename of Lothair II is Falcon, and he rules Burgundy too.",
    NewFact("Lothair II", "codename", "Falcon", weight=10),
    NewFact("Lothair II", "rules", "Burgundy", weight=10),
    replace(RULES, statement="Lothair II rules Lotharingia by the sword", weight=10, source="user_edit"),
    NewFact("Lothair II", "", "Falcon", "The codename of Lothair II is Falcon", is_pair=True),
    labels=["spies"],
)
BEATLES = page("The Beatles sang.", NewFact("The Beatles", "sang", "songs"), metadata={"lang": "en"})
WORLD = (KING, QUEEN, SECRET)
LOTHAIR = entity_id("Lothair II")
LOTHARINGIA = entity_id("Lotharingia")
RULES_ID = fact_id(LOTHAIR, "rules", LOTHARINGIA, is_entity=True)


def strip_vectors(document: IndexedDocument) -> IndexedDocument:
    """Return a document without vectors."""
    return replace(
        document,
        passages=tuple(replace(p, vector=None) for p in document.passages),
        entities=tuple(replace(e, vector=None) for e in document.entities),
        facts=tuple(replace(f, vector=None) for f in document.facts),
        pairs=tuple(replace(p, vector=None) for p in document.pairs),
    )


def compute_cosine(a: Vector | None, b: Vector | None) -> float:
    """Return the cosine similarity of two vectors, rounded."""
    assert a is not None
    assert b is not None
    return round(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), 3)


def count_items(store: Store) -> tuple[int, ...]:
    """Return the number of items of each kind."""
    counts = store.statistics()
    return counts.documents, counts.passages, counts.entities, counts.facts, counts.mentions


def stage_other_model(store: Store, *, limit: int, rounds: int) -> None:
    """Embed items with the other model and stage their vectors, `limit` items in each round."""
    for _ in range(rounds):
        items = store.list_unembedded(OTHER_EMBEDDER.name, limit=limit)
        if not items:
            return
        vectors = pipeline.embed_texts(items, OTHER_EMBEDDER)
        store.stage_vectors(
            [replace(i, vector=vectors[i.embeddable]) for i in items], author=OWNER, model=OTHER_EMBEDDER.name
        )


def assert_unseen(store: Store, where: Filter) -> None:
    """Assert that no read returns anything of the secret document."""
    passage, falcon = SECRET.passages[0].id, entity_id("Falcon")
    codename = next(f.id for f in SECRET.facts if f.predicate == "codename")
    vector = question("Falcon codename")
    assert passage not in {s.id for s in store.dense(vector, top_k=99, where=where)}
    assert passage not in {s.id for s in store.lexical("Falcon codename rules", top_k=99, where=where)}
    assert falcon not in {s.id for s in store.nearest_entities(vector, top_k=99, where=where)}
    assert store.entities_by_names(["Falcon"], where=where) == {}
    assert store.entities([falcon], where=where, vectors=True) == {}
    assert falcon not in {entity.id for entity in store.list_entities(where=where)}
    assert store.find_entities_by_key(naming.keys("Falcon"), max_per_key=9, where=where) == {}
    facts = store.facts_of_entities([LOTHAIR, falcon], per_entity=99, where=where)
    assert codename not in {f.id for fs in facts.values() for f in fs}
    told = store.assertions_of_entities([LOTHAIR, falcon], predicates=["codename", "rules"], newest=99, where=where)
    assert passage not in {f.passage_id for fs in told.values() for f in fs}
    assert store.facts_of_passages([passage], per_passage=99, where=where) == {}
    pairs = store.pairs_of_entities([LOTHAIR, falcon], per_entity=99, passages_per_entity=99, where=where)
    assert passage not in {pair.passage_id for some in pairs.values() for pair in some}
    mentions = store.passages_of_entities([LOTHAIR, falcon], per_entity=99, where=where)
    assert passage not in {m.passage_id for ms in mentions.values() for m in ms}
    assert store.entities_of_passages([passage], per_passage=99, where=where) == {}
    assert store.passages([passage], where=where) == {}
    assert store.find_passages(passage[:8], where=where) == ()
    assert store.sources([passage], where=where) == {}
    assert store.cosines(vector, [passage], where=where) == {}
    assert store.word_scores("Falcon codename rules", [passage], where=where) == {}
    mentions, near = store.nearby(vector, [LOTHAIR, falcon], per_entity=99, where=where)
    assert passage not in {*near, *(m.passage_id for ms in mentions.values() for m in ms)}
    assert store.get_indexed_documents([SECRET.document.id], where=where) == {}
    assert store.documents([SECRET.document.id], where=where) == {}
    assert store.facts([codename], statuses=STATUSES, where=where) == {}


class StoreFixtures:
    """Fixtures of every class of tests. A subclass defines `open_store`."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Return a function that opens a collection by name. The tests close it."""
        raise NotImplementedError(
            "define the fixture open_store: it returns a function from a collection's name to a Store"
        )

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """Open an empty collection."""
        store = open_store("default")
        yield store
        store.close()

    @pytest.fixture
    def world(self, store: Store) -> Store:
        """Write three documents, one of them secret, to a collection."""
        store.write(WORLD, author=OWNER, model=MODEL)
        return store
