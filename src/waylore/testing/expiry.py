"""Test expiry: from then on, no read with a time shows the document; earlier reads and exports show it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from waylore.store.protocol import Store
from waylore.testing.scopes import TOLD, list_seen, say
from waylore.testing.turns import ANN as OF_ANN
from waylore.testing.turns import IDS, TALK, list_places
from waylore.testing.world import (
    KING,
    MODEL,
    QUEEN,
    RULES_ID,
    SECRET,
    OpenStore,
    StoreFixtures,
    assert_unseen,
    day,
    page,
    question,
    sort_parts,
)
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument
from waylore.types.search import Filter

NOON = day("2026-06-01") + timedelta(hours=12)
BEFORE, AFTER = NOON - timedelta(microseconds=1), NOON + timedelta(days=1)


def expire(document: IndexedDocument, moment: datetime = NOON) -> IndexedDocument:
    """Return a document that expires."""
    return replace(document, document=replace(document.document, expires=moment))


class ExpiryTests(StoreFixtures):
    """Documents that expire."""

    @pytest.fixture
    def expiring(self, store: Store) -> Store:
        """Write three documents; one of them expires at noon."""
        store.write([KING, QUEEN, expire(SECRET)], author=OWNER, model=MODEL)
        return store

    @pytest.mark.parametrize("now", [NOON, AFTER])
    def test_every_read_hides_expired_document(self, expiring: Store, now: datetime) -> None:
        assert_unseen(expiring, Filter(now=now))
        assert_unseen(expiring, Filter(now=now, labels=frozenset({"spies"})))
        assert_unseen(expiring, Filter(as_of=now))
        assert SECRET.document.id not in {d.id for d in expiring.list_documents(where=Filter(now=now))}

    @pytest.mark.parametrize("where", [Filter(), Filter(now=BEFORE), Filter(as_of=BEFORE, now=AFTER)])
    def test_every_read_shows_document_that_has_not_expired(self, expiring: Store, where: Filter) -> None:
        passage = SECRET.passages[0].id
        assert expiring.lexical("Falcon codename", top_k=1, where=where)[0].id == passage
        assert passage in {s.id for s in expiring.dense(question("Falcon codename"), top_k=9, where=where)}
        assert "Falcon" in expiring.entities_by_names(["Falcon"], where=where)
        assert expiring.documents([SECRET.document.id], where=where)[SECRET.document.id].expires == NOON
        assert expiring.facts([RULES_ID], where=where)[RULES_ID].source == "user_edit"

    def test_fact_is_read_as_unexpired_assertion_states_it(self, expiring: Store) -> None:
        fact = expiring.facts([RULES_ID], where=Filter(now=NOON))[RULES_ID]
        assert (fact.source, fact.passage_id) == ("file", KING.passages[0].id)

    def test_every_read_keeps_to_scope_and_expiry(self, store: Store) -> None:
        told = [expire(document) if document.document.session == "one" else document for document in TOLD]
        store.write(told, author=OWNER, model=MODEL)
        for user in ("ann", "ben", ""):
            own = [d for d in told if d.document.user in ("", user)]
            lasting = {d.passages[0].id for d in own if not d.document.expires}
            assert list_seen(store, Filter(user=user, now=BEFORE)) == [{d.passages[0].id for d in own}] * 13
            assert list_seen(store, Filter(user=user, now=NOON)) == [lasting] * 13

    def test_expired_documents_do_not_reduce_number_of_hits(self, store: Store) -> None:
        old = [expire(page(f"The falcon flies, falcon {n}.")) for n in range(30)]
        store.write(
            [*old, *(page(f"The falcon of {n} years flew far away.") for n in range(3))], author=OWNER, model=MODEL
        )
        for where in (Filter(now=NOON), Filter(labels=frozenset(), now=NOON)):
            assert len(store.lexical("falcon", top_k=3, where=where)) == 3
            assert len(store.dense(question("The falcon flies"), top_k=3, where=where)) == 3

    def test_expired_turn_is_no_neighbour(self, store: Store) -> None:
        store.write([*TALK[:1], expire(TALK[1]), *TALK[2:]], author=OWNER, model=MODEL)

        def read(now: datetime) -> list[int]:
            return list_places(store.turns("job", [IDS[2]], before=1, after=0, where=replace(OF_ANN, now=now)))

        assert (read(BEFORE), read(NOON)) == ([2, 3], [1, 3])

    def test_first_expiry_is_that_of_visible_documents(self, store: Store) -> None:
        assert store.first_expiry() is None
        own = expire(say("My code is 4471.", user="ann"), AFTER)
        store.write([expire(SECRET), own, KING], author=OWNER, model=MODEL)
        assert store.first_expiry() == NOON
        assert store.first_expiry(where=Filter(labels=frozenset())) is None
        assert store.first_expiry(where=Filter(labels=frozenset(), user="ann")) == AFTER
        store.forget([SECRET.document.id], author=OWNER)
        assert store.first_expiry() is None

    def test_expired_documents_of_all_users_are_listed(self, store: Store) -> None:
        own = expire(say("My code is 4471.", user="ann"))
        store.write([expire(SECRET), own, expire(QUEEN, AFTER), KING], author=OWNER, model=MODEL)
        expected = sorted([SECRET.document.id, own.document.id])
        assert [d.id for d in store.list_expired(NOON)] == expected
        assert [d.id for d in store.list_expired(NOON, limit=1)] == expected[:1]
        assert [d.id for d in store.list_expired(NOON, after=expected[0])] == expected[1:]
        assert store.list_expired(BEFORE) == ()
        receipt = store.forget(expected, author=OWNER)
        assert receipt.documents == tuple(expected)
        assert store.find_remains(receipt) == ()
        assert store.list_expired(NOON) == ()

    def test_expiry_is_exported_and_written_again(self, expiring: Store, open_store: OpenStore) -> None:
        exported = list(expiring.export())
        assert sort_parts(iter(exported)) == sort_parts(iter([KING, QUEEN, expire(SECRET)]))
        assert expiring.write(exported, author=OWNER, model=MODEL) == 0
        copy = open_store("copy")
        copy.write(exported, author=OWNER, model=MODEL)
        assert list(copy.export()) == exported
        assert_unseen(copy, Filter(now=NOON))
        copy.close()

    def test_document_gets_another_expiry(self, expiring: Store) -> None:
        assert expiring.write([expire(SECRET)], author=OWNER, model=MODEL) == 0
        assert expiring.write([SECRET], author=OWNER, model=MODEL) == 1
        assert expiring.documents([SECRET.document.id], where=Filter(now=AFTER))
        assert expiring.first_expiry() is None
