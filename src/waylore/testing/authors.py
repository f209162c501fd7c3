"""Test the rights of an author to add, replace and forget. They are checked inside the transaction of a write."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from waylore.errors import Forbidden
from waylore.store.protocol import Store
from waylore.testing.world import MODEL, OpenStore, StoreFixtures, page
from waylore.types.author import OWNER, Author
from waylore.types.knowledge import SOURCES, IndexedDocument, NewFact

RED = Author("key:red", frozenset({"red"}))
BOTH = Author("key:both", frozenset({"red", "blue"}))
FOREIGN: tuple[Sequence[str], ...] = ((), ("blue",), ("red", "blue"), ("blue", "green"))


def note(text: str, *labels: str, uri: str = "note.md") -> IndexedDocument:
    """Return a document at an address."""
    return page(text, NewFact("Mara", "writes", text), uri=uri, labels=labels)


class AuthorTests(StoreFixtures):
    """What an author may add, replace and forget."""

    @pytest.mark.parametrize("labels", FOREIGN)
    def test_limited_author_replaces_only_documents_with_its_own_labels(
        self, store: Store, labels: Sequence[str]
    ) -> None:
        store.write([note("Old.", *labels)], author=OWNER, model=MODEL)
        before = list(store.export())
        new = [note("Another.", "red", uri="other.md"), note("New.", "red")]
        with pytest.raises(Forbidden, match="choose another address"):
            store.write(new, author=RED, model=MODEL)
        with pytest.raises(Forbidden):
            store.write(new[:1], author=RED, model=MODEL, replacing=[before[0].document.id])
        with pytest.raises(Forbidden):
            store.write(
                [note("A row.", "red", uri="note.md#1")], author=RED, model=MODEL, fingerprints={"note.md": "1"}
            )
        assert list(store.export()) == before
        assert store.fingerprints(["note.md"]) == {}

    @pytest.mark.parametrize("labels", FOREIGN)
    def test_limited_author_forgets_only_documents_with_its_own_labels(
        self, store: Store, labels: Sequence[str]
    ) -> None:
        mine, other = note("Mine.", "red", uri="mine.md"), note("Another's.", *labels)
        store.write([mine, other], author=OWNER, model=MODEL)
        before = list(store.export())
        with pytest.raises(Forbidden):
            store.forget([mine.document.id, other.document.id], author=RED)
        assert list(store.export()) == before
        assert store.forget([mine.document.id], author=RED).documents == (mine.document.id,)

    def test_author_changes_documents_with_its_own_labels(self, store: Store) -> None:
        for labels in (["red"], ["blue"], ["blue", "red"]):
            store.write([note("Old.", *labels)], author=OWNER, model=MODEL)
            assert store.write([note("New.", "red")], author=BOTH, model=MODEL, fingerprints={"note.md": "1"}) == 1
            assert store.write([note("Newer.")], author=OWNER, model=MODEL) == 1

    def test_new_document_of_a_limited_author_has_its_labels(self, store: Store) -> None:
        store.write([note("No labels."), note("One.", "blue", uri="one.md")], author=BOTH, model=MODEL)
        assert {d.uri: d.labels for d in store.list_documents()} == {"note.md": BOTH.labels, "one.md": {"blue"}}

    @pytest.mark.parametrize("author", [RED, Author("key:none", frozenset())])
    def test_limited_author_writes_no_other_labels(self, store: Store, author: Author) -> None:
        for labels in FOREIGN[1:]:
            with pytest.raises(Forbidden, match="labels must be among your own"):
                store.write([note("New.", *labels)], author=author, model=MODEL)
        if not author.labels:
            with pytest.raises(Forbidden):
                store.write([note("Public.")], author=author, model=MODEL)
        assert list(store.export()) == []

    def test_labels_are_read_inside_the_transaction(self, store: Store, open_store: OpenStore) -> None:
        """A handle that has read a document must notice that another handle has changed its labels since."""
        other = open_store("default")
        store.write([note("Mine.", "red")], author=RED, model=MODEL)
        assert store.digests([note("Mine.").document.id])
        other.write([note("Ours.", "red", "blue")], author=OWNER, model=MODEL)
        with pytest.raises(Forbidden):
            store.write([note("Mine again.", "red")], author=RED, model=MODEL)
        with pytest.raises(Forbidden):
            store.forget([note("Mine.").document.id], author=RED)
        other.close()

    def test_source_is_lowered_to_that_of_the_author(self, store: Store) -> None:
        fact = NewFact("Mara", "writes", "books")
        pages = [page(s, replace(fact, source=s), uri=s, labels=["red"], source=s) for s in SOURCES]
        for author, expected in (
            (RED, ["conversation"] * 4),
            (replace(RED, max_source="file"), ["file", *SOURCES[1:]]),
        ):
            store.write(pages, author=author, model=MODEL)
            stored = store.get_indexed_documents([p.document.id for p in pages])
            found = [stored[p.document.id] for p in pages]
            assert [(d.document.source, d.facts[0].source) for d in found] == [(s, s) for s in expected]
            assert store.write(pages, author=author, model=MODEL) == 0

    def test_model_is_changed_by_an_unlimited_author(self, store: Store) -> None:
        store.write([note("Mine.", "red")], author=RED, model=MODEL)
        [item, *_] = store.list_unembedded("other", limit=9)
        with pytest.raises(Forbidden, match="whole collection"):
            store.stage_vectors([item], author=RED, model="other")
        with pytest.raises(Forbidden, match="whole collection"):
            store.activate_model("other", author=RED)
        with pytest.raises(Forbidden, match="whole collection"):
            store.set_weights('{"bias": 0.0, "odds": 1.0}', author=RED)
