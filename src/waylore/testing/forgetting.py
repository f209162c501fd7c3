"""Test forgetting: receipts, traces of removed items, and compaction."""

from dataclasses import replace

import pytest

from waylore.deadline import Deadline
from waylore.errors import DeadlineExceeded, StoreUnavailable
from waylore.store.protocol import Store
from waylore.store.receipts import record_as
from waylore.testing.world import (
    KING,
    LOTHAIR,
    MODEL,
    QUEEN,
    RULES,
    RULES_ID,
    SECRET,
    WORLD,
    OpenStore,
    StoreFixtures,
    count_items,
    day,
    list_vectors,
    page,
    question,
    stage_other_model,
)
from waylore.types.author import OWNER, Author
from waylore.types.identity import entity_id, make_enrichment_uri
from waylore.types.knowledge import STATUSES, IndexedDocument, NewFact
from waylore.types.search import Filter

REQUEST = "1" * 32


def enrich(indexed: IndexedDocument, *facts: NewFact) -> IndexedDocument:
    """Return a document that states facts beside another one, in a passage without text."""
    other = page("…", *facts, uri=make_enrichment_uri(indexed.document.id), metadata=indexed.document.metadata)
    silent = tuple(replace(passage, text="", vector=None) for passage in other.passages)
    return replace(other, passages=silent, mentions=())


ADDED = enrich(QUEEN, NewFact("Ermengarde of Tours", "daughter", "Bertha"))


def replace_text(indexed: IndexedDocument, text: str) -> IndexedDocument:
    """Return a document whose first passage has another text, under the same id."""
    first, *others = indexed.passages
    return replace(indexed, passages=(replace(first, text=text), *others))


class ForgettingTests(StoreFixtures):
    """Receipts, traces of removed items, and compaction."""

    def test_forget_equals_never_having_added(self, world: Store, open_store: OpenStore) -> None:
        world.forget([SECRET.document.id], author=OWNER)
        other = open_store("other")
        other.write([QUEEN, KING], author=OWNER, model=MODEL)
        assert list(world.export()) == list(other.export())
        assert list_vectors(world.export()) == list_vectors(other.export())
        assert count_items(world) == count_items(other)
        other.close()

    def test_silent_passage_states_facts_and_is_not_found(self, world: Store) -> None:
        before, wanted = count_items(world), [("queen", 9), ("Ermengarde", 9)]
        found = [world.lexical(text, top_k=k) for text, k in wanted]
        near = world.dense(question("queen"), top_k=9, where=Filter(metadata={"lang": "fr"}))
        world.write([ADDED], author=OWNER, model=MODEL)
        assert [world.lexical(text, top_k=k) for text, k in wanted] == found
        assert world.dense(question("queen"), top_k=9, where=Filter(metadata={"lang": "fr"})) == near
        assert ADDED.passages[0].id not in {s.id for s in world.dense(question("queen"), top_k=9)}
        assert world.statistics().passages == before[1]
        [fact] = world.facts_of_entities([entity_id("Bertha")], per_entity=9)[entity_id("Bertha")]
        assert fact.passage_id == ADDED.passages[0].id
        world.forget([ADDED.document.id], author=OWNER)
        assert count_items(world) == before

    def test_enrichment_is_forgotten_with_its_document(self, world: Store) -> None:
        world.write([ADDED], author=OWNER, model=MODEL)
        receipt = world.forget([QUEEN.document.id], author=OWNER)
        assert set(receipt.documents) == {QUEEN.document.id, ADDED.document.id}
        assert entity_id("Bertha") in receipt.entities
        assert world.find_remains(receipt) == ()
        assert world.documents([ADDED.document.id]) == {}

    def test_enrichment_is_removed_with_the_text_that_it_read(self, world: Store) -> None:
        world.write([ADDED], author=OWNER, model=MODEL)
        world.write([replace_text(QUEEN, "A new text.")], author=OWNER, model=MODEL)
        assert world.documents([ADDED.document.id]) == {}
        assert world.write([QUEEN, ADDED], author=OWNER, model=MODEL) == 2
        assert world.write([replace_text(QUEEN, "A new text."), ADDED], author=OWNER, model=MODEL) == 2
        assert world.documents([ADDED.document.id])

    def test_receipt_lists_exactly_the_removed_items(self, world: Store) -> None:
        receipt = world.forget([SECRET.document.id], author=OWNER)
        assert receipt.documents == (SECRET.document.id,)
        assert receipt.passages == (SECRET.passages[0].id,)
        assert set(receipt.entities) == {entity_id("Falcon"), entity_id("Burgundy")}
        assert set(receipt.facts) == {f.id for f in SECRET.facts} - {RULES_ID}

    def test_recorded_request_is_done_once(self, world: Store) -> None:
        with record_as(REQUEST):
            receipt = world.forget([SECRET.document.id], author=OWNER, missing=["0" * 32])
        assert (receipt.id, receipt.documents, receipt.missing) == (REQUEST, (SECRET.document.id,), ("0" * 32,))
        world.write([SECRET], author=OWNER, model=MODEL)
        for documents in ([SECRET.document.id], []):
            with record_as(REQUEST):
                assert world.forget(documents, author=OWNER) == receipt
                assert world.write([], author=OWNER, model=MODEL) == 0
        assert world.documents([SECRET.document.id])
        assert world.get_receipt(REQUEST, author=OWNER) == receipt

    def test_recorded_write_is_done_once(self, world: Store) -> None:
        with record_as(REQUEST):
            assert world.write([replace_text(SECRET, "A new text.")], author=OWNER, model=MODEL) == 1
        world.write([SECRET], author=OWNER, model=MODEL)
        with record_as(REQUEST):
            assert world.write([replace_text(SECRET, "A new text.")], author=OWNER, model=MODEL) == 0
        assert world.passages([SECRET.passages[0].id])[SECRET.passages[0].id].text == SECRET.passages[0].text

    def test_request_that_changes_nothing_is_not_recorded(self, world: Store) -> None:
        with record_as(REQUEST):
            assert world.forget(["0" * 32], author=OWNER).id == ""
            assert world.write([SECRET], author=OWNER, model=MODEL) == 0
        assert world.get_receipt(REQUEST, author=OWNER) is None
        assert world.forget([SECRET.document.id], author=OWNER).id == ""  # without a request

    def test_receipt_belongs_to_its_collection(self, world: Store, open_store: OpenStore) -> None:
        with record_as(REQUEST):
            world.forget([SECRET.document.id], author=OWNER)
        other = open_store("other")
        assert other.get_receipt(REQUEST, author=OWNER) is None
        other.close()

    def test_receipt_is_shown_to_its_author_and_to_authors_without_labels(self, world: Store) -> None:
        me, other = (Author(name, SECRET.document.labels) for name in ("me", "other"))
        with record_as(REQUEST):
            receipt = world.forget([SECRET.document.id], author=me)
        assert world.get_receipt(REQUEST, author=me) == world.get_receipt(REQUEST, author=OWNER) == receipt
        assert world.get_receipt(REQUEST, author=other) is None

    def test_nothing_is_forgotten_after_the_deadline(self, world: Store) -> None:
        deadline = Deadline()
        deadline.cancel()
        with deadline.activate(), pytest.raises((DeadlineExceeded, StoreUnavailable)):
            world.forget([SECRET.document.id], author=OWNER)
        assert world.documents([SECRET.document.id])

    def test_shared_fact_keeps_assertion_of_other_document(self, world: Store) -> None:
        assert world.facts([RULES_ID])[RULES_ID].statement == "Lothair II rules Lotharingia by the sword"
        world.forget([SECRET.document.id], author=OWNER)
        assert world.facts([RULES_ID])[RULES_ID].weight == RULES.weight
        assert world.entities([LOTHAIR])[LOTHAIR].passages == 1

    def test_searches_do_not_find_forgotten_document(self, world: Store) -> None:
        world.forget([SECRET.document.id], author=OWNER)
        assert world.lexical("Falcon codename", top_k=9) == ()
        assert SECRET.passages[0].id not in {s.id for s in world.dense(question("Falcon"), top_k=9)}
        assert world.entities_by_names(["Falcon"]) == {}
        assert entity_id("Falcon") not in {s.id for s in world.nearest_entities(question("falcon"), top_k=9)}
        assert world.passages([SECRET.passages[0].id]) == {}
        assert world.documents([SECRET.document.id]) == {}
        assert world.facts([SECRET.facts[0].id], statuses=STATUSES) == {}

    def test_forget_unknown_document_removes_nothing(self, world: Store) -> None:
        version = world.version()
        assert world.forget(["0" * 32], author=OWNER).documents == ()
        assert world.version() == version

    def test_forgotten_documents_leave_no_traces(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("other")
        other.write(WORLD, author=OWNER, model=MODEL)  # the same ids, which the other collection keeps
        world.count_uses(passages=[SECRET.passages[0].id], facts=[RULES_ID], at=day("2024-05-02"))
        stage_other_model(world, limit=100, rounds=1)
        for document in (SECRET, KING, QUEEN):
            assert world.find_remains(world.forget([document.document.id], author=OWNER)) == ()
        other.close()

    def test_find_remains_reports_document_added_again(self, world: Store) -> None:
        receipt = world.forget([SECRET.document.id], author=OWNER)
        world.write([SECRET], author=OWNER, model=MODEL)
        lines = world.find_remains(receipt)
        removed = (*receipt.documents, *receipt.passages, *receipt.entities, *receipt.facts)
        assert all(any(id_ in line for line in lines) for id_ in removed)

    def test_compact_changes_no_knowledge(self, world: Store) -> None:
        receipt = world.forget([SECRET.document.id], author=OWNER)
        before, found = list(world.export()), world.lexical("Lothair", top_k=9)
        world.compact()
        assert list(world.export()) == before
        assert world.lexical("Lothair", top_k=9) == found
        assert world.find_remains(receipt) == ()

    def test_everything_can_be_forgotten_and_added_again(self, world: Store) -> None:
        before = list(world.export())
        world.forget([c.document.id for c in WORLD], author=OWNER)
        assert list(world.export()) == []
        assert set(count_items(world)) == {0}
        assert world.statistics().model is None
        world.write(WORLD, author=OWNER, model=MODEL)
        assert list(world.export()) == before
