"""Test writing: batches, replacement, models, digests, and fingerprints of files."""

from dataclasses import replace

import numpy as np
import pytest

from waylore.errors import DimensionMismatch, ModelMismatch
from waylore.store.protocol import Store
from waylore.testing.world import (
    KING,
    LOTHAIR,
    MODEL,
    QUEEN,
    SECRET,
    WORLD,
    OpenStore,
    StoreFixtures,
    compute_cosine,
    day,
    page,
    question,
    sort_parts,
    strip_vectors,
)
from waylore.types.author import OWNER
from waylore.types.knowledge import NewFact


class WritingTests(StoreFixtures):
    """Batches, replacement, models, digests, and fingerprints of files."""

    def test_write_returns_number_of_new_documents(self, store: Store) -> None:
        assert store.write([KING, QUEEN], author=OWNER, model=MODEL) == 2
        assert store.write([KING, QUEEN, SECRET], author=OWNER, model=MODEL) == 1

    def test_export_returns_written_documents_in_order(self, world: Store) -> None:
        assert list(world.export()) == sort_parts(iter(WORLD))

    def test_vectors_are_stored(self, world: Store) -> None:
        [found] = world.passages([KING.passages[0].id], vectors=True).values()
        assert compute_cosine(found.vector, KING.passages[0].vector) > 0.999
        fact = KING.facts[1]
        assert compute_cosine(fact.vector, world.facts([fact.id])[fact.id].vector) > 0.999

    def test_writing_twice_changes_nothing(self, world: Store) -> None:
        before, version = list(world.export()), world.version()
        assert world.write(WORLD, author=OWNER, model=MODEL) == 0
        later = replace(KING, document=replace(KING.document, recorded_at=day("2030-01-01")))
        assert world.write([later], author=OWNER, model=MODEL) == 0
        assert (list(world.export()), world.version()) == (before, version)

    def test_changed_document_replaces_old_one(self, store: Store) -> None:
        old = page("The ferry to Skye leaves at noon.", NewFact("ferry", "goes to", "Skye"), uri="doc")
        new = page("The ferry to Mull leaves at dawn.", NewFact("ferry", "goes to", "Mull"), uri="doc")
        store.write([old], author=OWNER, model=MODEL)
        assert store.write([new], author=OWNER, model=MODEL) == 1
        assert list(store.export()) == sort_parts(iter([new]))
        assert store.lexical("Skye", top_k=5) == ()
        assert store.entities_by_names(["Skye"]) == {}
        assert [s.id for s in store.dense(question("ferry"), top_k=5)] == [new.passages[0].id]

    def test_document_twice_in_one_batch_is_written_once(self, store: Store) -> None:
        first, second = page("One text.", uri="same"), page("Another text.", uri="same")
        store.write([first, second], author=OWNER, model=MODEL)
        assert list(store.export()) == sort_parts(iter([second]))

    def test_batch_is_written_completely_or_not_at_all(self, world: Store) -> None:
        before, version = list(world.export()), world.version()
        good, bad = page("A good one."), page("A bad one.")
        short = tuple(replace(p, vector=np.ones(3, dtype=np.float32)) for p in bad.passages)
        with pytest.raises(DimensionMismatch):
            world.write([good, replace(bad, passages=short)], author=OWNER, model=MODEL)
        assert (list(world.export()), world.version()) == (before, version)
        assert world.lexical("good", top_k=5) == ()

    def test_write_with_another_model_raises_error_with_remedy(self, world: Store) -> None:
        with pytest.raises(ModelMismatch, match="reembed"):
            world.write([page("Something new.")], author=OWNER, model="another-model")
        with pytest.raises(ModelMismatch, match="reembed"):
            world.write([strip_vectors(page("Something new."))], author=OWNER, model=None)

    def test_collection_without_model_has_words_and_facts(self, store: Store) -> None:
        store.write([strip_vectors(KING)], author=OWNER, model=None)
        assert store.statistics().model is None
        assert store.dense(question("king"), top_k=3) == ()
        assert [s.id for s in store.lexical("king", top_k=3)] == [KING.passages[0].id]
        assert len(store.facts_of_entities([LOTHAIR], per_entity=9)[LOTHAIR]) == 3

    def test_digests_returns_stored_documents(self, world: Store) -> None:
        ids = [KING.document.id, "0" * 32]
        assert world.digests(ids) == {KING.document.id: KING.digest}

    def test_fingerprint_lasts_until_document_is_removed(self, store: Store) -> None:
        rows = [page(f"row {i}", uri=f"a.csv#row={i}") for i in range(3)]
        store.write(rows, author=OWNER, model=MODEL, fingerprints={"a.csv": "1", "b.md": "2"})
        assert store.fingerprints(["a.csv", "b.md", "c.md"]) == {"a.csv": "1", "b.md": "2"}
        store.write(rows, author=OWNER, model=MODEL, fingerprints={"a.csv": "3"})
        assert store.fingerprints(["a.csv"]) == {"a.csv": "3"}
        store.write([page("another row", uri="a.csv#row=1")], author=OWNER, model=MODEL)
        assert store.fingerprints(["a.csv", "b.md"]) == {"b.md": "2"}
        store.write([], author=OWNER, model=MODEL, fingerprints={"a.csv": "4"})
        assert store.fingerprints([]) == {}
        store.forget([rows[0].document.id], author=OWNER)
        assert store.fingerprints(["a.csv", "b.md"]) == {"b.md": "2"}

    def test_write_removes_replaced_documents(self, store: Store, open_store: OpenStore) -> None:
        rows = [page(f"row {i}", NewFact("row", "is", str(i)), uri=f"a.csv#row={i}") for i in range(4)]
        store.write(rows[:3], author=OWNER, model=MODEL)
        replaced = [rows[1].document.id, "0" * 32]
        assert store.write([rows[3]], author=OWNER, model=MODEL, fingerprints={"a.csv": "1"}, replacing=replaced) == 1
        other = open_store("other")
        other.write([rows[0], *rows[2:]], author=OWNER, model=MODEL)
        assert sort_parts(store.export()) == sort_parts(other.export())
        assert store.fingerprints(["a.csv"]) == {"a.csv": "1"}
