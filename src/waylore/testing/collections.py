"""Test collections: isolation, other handles, statistics, exports, and a change of the model."""

from dataclasses import replace
from datetime import date, datetime

from waylore.store.protocol import Store
from waylore.testing.world import (
    EMBEDDER,
    KING,
    MODEL,
    OTHER_EMBEDDER,
    PUBLIC,
    QUEEN,
    RULES_ID,
    SECRET,
    WORLD,
    OpenStore,
    StoreFixtures,
    assert_unseen,
    count_items,
    day,
    list_vectors,
    page,
    question,
    sort_parts,
    stage_other_model,
    strip_vectors,
)
from waylore.types.author import OWNER
from waylore.types.knowledge import NewFact
from waylore.types.results import DayCounts
from waylore.types.search import Filter, Scored


class CollectionTests(StoreFixtures):
    """Isolation, other handles, statistics, exports, and a change of the model."""

    def test_collections_are_isolated(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("other")
        assert_unseen(other, Filter())
        assert other.statistics().documents == 0
        assert other.forget([KING.document.id], author=OWNER).documents == ()
        other.write([strip_vectors(page("The codename of the other is Sparrow."))], author=OWNER, model=None)
        assert world.lexical("Sparrow", top_k=3) == ()
        assert list(world.export()) == sort_parts(iter(WORLD))
        before = [s.score for s in world.lexical("Falcon", top_k=3)]
        other.write([strip_vectors(page(f"Falcon number {i}.")) for i in range(30)], author=OWNER, model=None)
        assert [s.score for s in world.lexical("Falcon", top_k=3)] == before
        other.close()

    def test_quarantine_is_another_collection(self, world: Store) -> None:
        quarantine = world.open_quarantine()
        assert quarantine.statistics().documents == 0
        quarantine.write([page("Zanzibar is an island.")], author=OWNER, model=MODEL)
        assert_unseen(quarantine, Filter())
        quarantine.close()
        assert world.lexical("Zanzibar", top_k=3) == ()
        assert list(world.export()) == sort_parts(iter(WORLD))
        again = world.open_quarantine()
        assert len(again.lexical("Zanzibar", top_k=3)) == 1
        again.close()

    def test_all_documents_are_listed_by_id(self, store: Store) -> None:
        """Documents of every user and label are listed, expired ones too."""
        first, *others = (page(f"Note {n}.", labels=["red"] if n % 2 else ()) for n in range(4))
        owned = replace(first, document=replace(first.document, user="mara", expires=day("2020-01-01")))
        store.write([owned, *others], author=OWNER, model=MODEL)
        ids = sorted(each.document.id for each in (owned, *others))
        assert [document.id for document in store.list_all_documents()] == ids
        assert [document.id for document in store.list_all_documents(after=ids[1], limit=1)] == ids[2:3]

    def test_release_replaces_nothing(self, store: Store) -> None:
        old, new = page("Old.", uri="one.md"), page("New.", uri="one.md")
        store.write([old], author=OWNER, model=MODEL)
        assert store.write([new, page("Other.")], author=OWNER, model=MODEL, verb="release") == 1
        assert store.digests([old.document.id]) == {old.document.id: old.digest}

    def test_changed_document_is_not_forgotten(self, store: Store) -> None:
        """If a digest is given, it must be the digest of the stored document."""
        old, new = page("Old.", uri="one.md"), page("New.", uri="one.md")
        store.write([new], author=OWNER, model=MODEL)
        id_ = new.document.id
        assert store.forget([id_], author=OWNER, digests={id_: old.digest}).documents == ()
        assert store.forget([id_], author=OWNER, digests={id_: new.digest}, verb="quarantine").documents == (id_,)
        assert [entry.verb for entry in store.audit()] == ["write", "quarantine"]

    def test_write_is_visible_to_other_handle(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("default")
        assert other.lexical("Zanzibar", top_k=3) == ()
        version = other.version()
        late = page("Zanzibar is an island.", labels=["sailors"])
        world.write([late], author=OWNER, model=MODEL)
        assert other.version() > version
        sailors = Filter(labels=frozenset({"sailors"}))
        assert [s.id for s in other.lexical("Zanzibar", top_k=3, where=sailors)] == [late.passages[0].id]
        other.close()

    def test_count_uses_keeps_version(self, world: Store) -> None:
        version = world.version()
        ids = [RULES_ID]
        world.count_uses(facts=ids, passages=[KING.passages[0].id], at=day("2024-06-01"))
        world.count_uses(facts=ids * 2, at=day("2024-05-15"))
        fact = world.facts(ids)[RULES_ID]
        assert (fact.access_count, fact.last_accessed) == (3, day("2024-06-01"))
        assert world.version() == version
        assert list(world.export()) == sort_parts(iter(WORLD))

    def test_most_used_passages_are_those_that_the_caller_sees(self, world: Store) -> None:
        king, queen, secret = (each.passages[0].id for each in (KING, QUEEN, SECRET))
        world.count_uses(passages=[king, secret], at=day("2024-06-01"))
        world.count_uses(passages=[secret, secret], facts=[RULES_ID], at=day("2024-06-02"))
        assert world.most_used(limit=9) == (Scored(secret, 3.0), Scored(king, 1.0))
        assert world.most_used(limit=1) == (Scored(secret, 3.0),)
        assert world.most_used(limit=9, where=PUBLIC) == (Scored(king, 1.0),)
        assert queen not in {scored.id for scored in world.most_used(limit=9)}

    def test_growth_counts_what_the_caller_sees_by_day(self, store: Store) -> None:
        """With `everyone` all documents count. A day has no hours, also before 1970."""
        times = ("2024-05-01T00:00:00", "2024-05-01T23:59:59.999999", "2024-05-03T12:00:00", "1969-12-31T23:00:00")
        pages = (page("One."), page("Two."), page("Three.", labels=["red"]), page("Four."))
        made = [
            replace(each, document=replace(each.document, recorded_at=datetime.fromisoformat(f"{time}+00:00")))
            for time, each in zip(times, pages, strict=True)
        ]
        owned = replace(made[3], document=replace(made[3].document, user="mara"))
        store.write([*made[:3], owned], author=OWNER, model=MODEL)
        first, second, early = date(2024, 5, 1), date(2024, 5, 3), date(1969, 12, 31)
        assert store.growth() == (DayCounts(first, 2, 2), DayCounts(second, 1, 1))
        assert store.growth(where=PUBLIC) == (DayCounts(first, 2, 2),)
        assert store.growth(where=Filter(user="mara")) == (DayCounts(early, 1, 1), *store.growth())
        assert store.growth(everyone=True, where=PUBLIC) == (DayCounts(early, 1, 1), *store.growth())
        store.forget([made[0].document.id, owned.document.id], author=OWNER)
        assert store.growth(everyone=True) == (DayCounts(first, 1, 1), DayCounts(second, 1, 1))

    def test_secret_belongs_to_collection(self, world: Store, open_store: OpenStore) -> None:
        secret = world.secret()
        assert len(secret) == 32
        again, other = open_store("default"), open_store("other")
        assert again.secret() == secret != other.secret()
        again.close()
        other.close()

    def test_statistics_counts_items(self, world: Store) -> None:
        assert count_items(world) == (3, 3, 6, 6, sum(len(c.mentions) for c in WORLD))
        statistics = world.statistics()
        assert (statistics.model, statistics.dimension) == (MODEL, EMBEDDER.dimension)

    def test_export_can_be_written_to_other_collection(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("copy")
        other.write(list(world.export()), author=OWNER, model=MODEL)
        assert list(other.export()) == list(world.export())
        assert list_vectors(other.export()) == list_vectors(world.export())
        vector = question("who rules?")
        assert other.dense(vector, top_k=9) == world.dense(vector, top_k=9)
        assert other.lexical("mother king", top_k=9) == world.lexical("mother king", top_k=9)
        other.close()

    def test_empty_collection_activates_model_without_keeping_it(self, store: Store) -> None:
        assert store.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        assert store.statistics().model is None
        assert store.write([KING], author=OWNER, model=MODEL) == 1

    def test_weights_belong_to_a_collection_until_it_has_another_model(self, world: Store) -> None:
        before, weights = world.statistics(), '{"bias": 0.5, "odds": 2.0}'
        assert before.weights == ""
        world.set_weights(weights, author=OWNER)
        after = world.statistics()
        assert after.weights == weights
        assert after.version > before.version  # answers with the old weights are no longer cached
        world.write([page("One more page.")], author=OWNER, model=MODEL)
        assert world.statistics().weights == weights
        stage_other_model(world, limit=99, rounds=99)
        assert world.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        assert world.statistics().weights == ""

    def test_model_is_staged_then_activated(self, world: Store) -> None:
        before = world.dense(question("king"), top_k=3)
        assert not world.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        stage_other_model(world, limit=4, rounds=1)
        assert world.dense(question("king"), top_k=3) == before
        late = page("Added in the middle of it.", NewFact("Late", "came", "after"))
        world.write([late], author=OWNER, model=MODEL)
        assert not world.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        world.forget([QUEEN.document.id], author=OWNER)
        stage_other_model(world, limit=4, rounds=99)
        assert world.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        statistics = world.statistics()
        assert (statistics.model, statistics.dimension) == (OTHER_EMBEDDER.name, OTHER_EMBEDDER.dimension)
        vector = OTHER_EMBEDDER.embed_query(KING.passages[0].embeddable)
        assert world.dense(vector, top_k=1)[0].id == KING.passages[0].id
        assert {s.id for s in world.dense(vector, top_k=9)} == {c.passages[0].id for c in (KING, SECRET, late)}
        assert world.nearest_entities(vector, top_k=99)
        fact = world.facts([RULES_ID])[RULES_ID]
        assert fact.vector is not None
        assert len(fact.vector) == OTHER_EMBEDDER.dimension
        assert world.list_unembedded("third", limit=1)
