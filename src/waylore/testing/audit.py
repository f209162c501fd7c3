"""Test the audit log: an entry for each change, in its transaction, with ids and without content."""

from dataclasses import replace

import numpy as np
import pytest

from waylore.errors import Forbidden
from waylore.store.protocol import Store
from waylore.store.receipts import record_as
from waylore.testing.authors import RED, note
from waylore.testing.world import MODEL, OpenStore, StoreFixtures
from waylore.types.audit import MAX_DOCUMENTS, find_break
from waylore.types.author import OWNER


class AuditTests(StoreFixtures):
    """The changes and their authors in the log."""

    def test_each_change_has_an_entry(self, store: Store) -> None:
        mine, public = note("Mine.", "red", uri="mine.md"), note("Public.")
        store.write([mine], author=RED, model=MODEL)
        with record_as("ab" * 16):
            store.write([public], author=OWNER, model=MODEL)
        store.write([note("Mine.", "blue", uri="mine.md")], author=OWNER, model=MODEL)
        store.forget([mine.document.id, "0" * 32], author=OWNER)
        found = [(e.author, e.verb, e.count, e.documents, e.labels_before, e.labels_after) for e in store.audit()]
        assert found == [
            ("key:red", "write", 1, (mine.document.id,), (), ("red",)),
            ("local", "write", 1, (public.document.id,), (), ()),
            ("local", "relabel", 1, (mine.document.id,), ("red",), ("blue",)),
            ("local", "forget", 1, (mine.document.id,), ("blue",), ()),
        ]
        assert [entry.request for entry in store.audit()] == ["", "ab" * 16, "", ""]
        assert [entry.number for entry in store.audit(after=1, limit=2)] == [2, 3]
        assert [entry.number for entry in store.audit(after=-3, limit=2)] == [2, 3]
        assert [entry.number for entry in store.audit(after=-99)] == [1, 2, 3, 4]

    def test_each_change_of_labels_is_apart(self, store: Store) -> None:
        """If two documents swap their labels, their labels together are the same before and after."""
        uris = ("a.md", "b.md", "c.md", "d.md")
        labels: dict[str, tuple[str, ...]] = {"a.md": ("red",), "b.md": ("blue",), "c.md": ("red",), "d.md": ()}
        store.write([note("First.", *labels[uri], uri=uri) for uri in uris], author=OWNER, model=MODEL)
        labels |= {"a.md": ("blue",), "b.md": ("red",), "d.md": ("red",)}
        changed = [note("Second.", *labels[uri], uri=uri) for uri in uris]
        store.write([*changed, note("New.", uri="e.md")], author=OWNER, model=MODEL)
        a, b, c, d, e = (note("Any.", uri=uri).document.id for uri in (*uris, "e.md"))
        found = [(e.verb, e.documents, e.labels_before, e.labels_after) for e in store.audit(after=1)]
        assert found == [
            ("write", (c, e), ("red",), ("red",)),
            ("relabel", (a,), ("red",), ("blue",)),
            ("relabel", (b,), ("blue",), ("red",)),
            ("relabel", (d,), (), ("red",)),
        ]

    def test_what_changes_nothing_has_no_entry(self, store: Store) -> None:
        store.write([note("Mine.", "blue")], author=OWNER, model=MODEL)
        store.write([note("Mine.", "blue")], author=OWNER, model=MODEL)
        store.forget(["0" * 32], author=OWNER)
        for change in (
            lambda: store.write([note("New.", "red")], author=RED, model=MODEL),
            lambda: store.forget([note("Mine.").document.id], author=RED),
        ):
            with pytest.raises(Forbidden):
                change()
        assert [entry.verb for entry in store.audit()] == ["write"]

    def test_new_model_and_new_weights_have_entries(self, store: Store) -> None:
        store.write([note("Mine.")], author=OWNER, model=MODEL)
        while items := store.list_unembedded("other", limit=99):
            vectors = [replace(item, vector=np.ones(3, np.float32)) for item in items]
            store.stage_vectors(vectors, author=OWNER, model="other")
        assert store.activate_model("other", author=OWNER)
        store.set_weights("", author=OWNER)
        assert [entry.verb for entry in store.audit()] == ["write", "reembed", "tune"]

    def test_entry_lists_some_ids_and_counts_all(self, store: Store) -> None:
        many = [note(f"Note {n}.", uri=f"{n}.md") for n in range(MAX_DOCUMENTS + 5)]
        store.write(many, author=OWNER, model=MODEL)
        [entry] = store.audit()
        assert (entry.count, len(entry.documents)) == (MAX_DOCUMENTS + 5, MAX_DOCUMENTS)

    def test_entries_follow_from_each_other(self, store: Store, open_store: OpenStore) -> None:
        other = open_store("another")
        for n in range(4):
            for each in (store, other):
                each.write([note(f"Note {n}.")], author=OWNER, model=MODEL)
        entries = store.audit()
        assert [entry.number for entry in entries] == [entry.number for entry in other.audit()] == [1, 2, 3, 4]
        assert find_break(entries) is None
        assert find_break(entries[2:]) is None  # old entries may be deleted
        assert find_break(entries[:1] + entries[2:]) == entries[2]
        assert find_break([entries[0], replace(entries[1], author="other"), *entries[2:]]) is not None
        other.close()

    def test_document_has_its_author(self, store: Store) -> None:
        store.write([note("Mine.", "red")], author=RED, model=MODEL)
        store.write([note("Imported.", uri="b.md")], author=replace(OWNER, identity="key:9"), model=MODEL)
        imported = note("Imported.", uri="c.md")
        imported = replace(imported, document=replace(imported.document, author="earlier"))
        store.write([imported], author=OWNER, model=MODEL)
        found = {document.uri: document.author for document in store.list_documents()}
        assert found == {"note.md": "key:red", "b.md": "key:9", "c.md": "earlier"}
        forged = note("Forged.", "red", uri="d.md")
        store.write([replace(forged, document=replace(forged.document, author="local"))], author=RED, model=MODEL)
        assert store.documents([forged.document.id])[forged.document.id].author == "key:red"
        assert {each.document.uri: each.document.author for each in store.export()}["c.md"] == "earlier"
