"""Test filters by permission and metadata, which must be applied inside each query and not after it."""

from dataclasses import replace
from typing import Any

from waylore import names as naming
from waylore.store.protocol import Store
from waylore.testing.world import (
    KING,
    LOTHAIR,
    LOTHARINGIA,
    MODEL,
    PUBLIC,
    QUEEN,
    RULES,
    RULES_ID,
    SECRET,
    WORLD,
    OpenStore,
    StoreFixtures,
    assert_unseen,
    describe_entities,
    page,
    question,
)
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.knowledge import NewFact
from waylore.types.search import Filter


class FilterTests(StoreFixtures):
    """Filters by permission and metadata, applied inside each query and not after it."""

    def test_reads_hide_document_without_permission(self, world: Store) -> None:
        assert_unseen(world, PUBLIC)
        assert_unseen(world, Filter(labels=frozenset({"gardeners"})))
        seen = Filter(labels=frozenset({"spies", "gardeners"}))
        assert SECRET.passages[0].id in {s.id for s in world.lexical("Falcon", top_k=3, where=seen)}
        assert SECRET.facts[0].id in world.facts([SECRET.facts[0].id], where=seen)

    def test_caller_without_permissions_sees_nothing(self, store: Store) -> None:
        store.write([SECRET], author=OWNER, model=MODEL)
        assert_unseen(store, PUBLIC)
        assert_unseen(store, Filter(labels=frozenset({"gardeners"})))

    def test_removed_permission_is_not_reused(self, world: Store, open_store: OpenStore) -> None:
        """If a handle caches permissions, a write by another handle must invalidate them at once."""
        other, mine = open_store("default"), Filter(labels=frozenset({"spies"}))
        assert other.documents([SECRET.document.id], where=mine)
        world.forget([SECRET.document.id], author=OWNER)
        other_document = page("The codename of Lothair II is Falcon.", labels=["generals"])
        world.write([other_document], author=OWNER, model=MODEL)
        assert other.documents([other_document.document.id], where=mine) == {}
        assert other_document.passages[0].id not in {s.id for s in other.lexical("Falcon", top_k=9, where=mine)}
        other.close()

    def test_hidden_assertion_is_not_used(self, world: Store) -> None:
        for facts in (
            world.facts([RULES_ID], where=PUBLIC),
            {f.id: f for f in world.facts_of_entities([LOTHAIR], per_entity=9, where=PUBLIC)[LOTHAIR]},
        ):
            assert (facts[RULES_ID].statement, facts[RULES_ID].weight) == ("", RULES.weight)

    def test_entity_is_described_by_visible_documents(self, store: Store) -> None:
        fact = NewFact("Kim", "works at", "the mill")
        store.write([describe_entities(page("Kim mills.", fact), Kim="A miller.")], author=OWNER, model=MODEL)
        secret = describe_entities(page("Kim spies.", fact, labels=["spies"]), Kim="A spy.")
        store.write([secret], author=OWNER, model=MODEL)
        kim = entity_id("Kim")
        assert store.entities([kim], where=PUBLIC)[kim].description == "A miller."
        everything = store.entities([kim])[kim].description
        assert "A miller." in everything
        assert "A spy." in everything

    def test_filters_do_not_reduce_number_of_hits(self, store: Store) -> None:
        """Two hundred better matches that the caller may not see must not displace three visible ones."""
        fact = NewFact("The mill", "grinds", "corn", weight=10)
        hidden = [
            page(f"mill mill mill number {i}", replace(fact, object=f"corn {i}"), labels=["owners"]) for i in range(200)
        ]
        seen = [
            page(
                f"A long and winding story in which, among much else, mill {name} is named.",
                replace(fact, object=f"rye {name}", weight=1),
                metadata={"kind": "story", "name": name},
            )
            for name in ("one", "two", "three")
        ]
        store.write([*hidden[:100], *seen, *hidden[100:]], author=OWNER, model=MODEL)
        expected = {c.passages[0].id for c in seen}
        for where in (PUBLIC, Filter(metadata={"kind": "story"})):
            assert {s.id for s in store.dense(question("mill"), top_k=3, where=where)} == expected
            assert {s.id for s in store.lexical("mill", top_k=3, where=where)} == expected
            mill = entity_id("The mill")
            facts = store.facts_of_entities([mill], per_entity=3, where=where)[mill]
            assert {f.passage_id for f in facts} == expected
            mentions = store.passages_of_entities([mill], per_entity=3, where=where)[mill]
            assert {m.passage_id for m in mentions} == expected
            near = store.nearest_entities(question("corn"), top_k=4, where=where)
            assert len(near) == 4
            assert not {s.id for s in near} & {entity_id(f"corn {i}") for i in range(200)}

    def test_counts_and_scores_are_of_visible_documents(self, store: Store, open_store: OpenStore) -> None:
        """Documents that a caller may not see change neither scores nor counts."""
        mill, corn = entity_id("Mill"), entity_id("Corn")
        fact = NewFact("Mill", "grinds", "Corn")
        public = [page("The mill grinds corn.", fact), page("A river, a mill and another mill.")]
        own = [
            page("Corn in sacks, at the mill.", fact, labels=["millers"]),
            page("A long day.", labels=["x", "millers"]),
        ]
        hidden = [page(f"mill river corn {n} " + "sack " * n, fact, labels=["owners"]) for n in range(7)]
        alone = open_store("alone")
        alone.write([*public, *own], author=OWNER, model=MODEL)
        store.write([*hidden[:3], *public, *own, *hidden[3:]], author=OWNER, model=MODEL)
        every = [document.passages[0].id for document in (*public, *own, *hidden)]

        def read(of: Store, where: Filter) -> list[Any]:
            return [
                of.lexical("mill in the corn, by the river", top_k=9, where=where),
                of.word_scores("mill in the corn, by the river", every, where=where),
                of.count_terms("mill in the corn, by the river", where=where),
                of.entities([mill, corn], where=where),
                of.entities_by_names(["Mill", "Corn"], where=where),
                of.find_similar_entities({mill: naming.keys("Corn")}, max_per_key=3, where=where),
            ]

        for labels in (frozenset[str](), frozenset({"millers"}), frozenset({"x", "nobody"})):
            assert read(store, Filter(labels=labels)) == read(alone, Filter(labels=labels))
        assert store.entities([mill], where=PUBLIC)[mill].passages == 1
        assert store.entities([mill], where=Filter(labels=frozenset({"millers"})))[mill].passages == 2
        assert store.entities([mill])[mill].passages == 9
        store.forget([document.document.id for document in hidden], author=OWNER)
        every_label = Filter(labels=frozenset({"millers", "x"}))
        assert read(store, Filter()) == read(alone, Filter()) == read(alone, every_label)
        alone.close()

    def test_hidden_facts_are_not_counted(self, store: Store) -> None:
        fact = NewFact("Kim", "spies on", "the mill")
        spies = Filter(labels=frozenset({"spies"}))
        assert not store.has_facts()
        secret = page("Kim spies.", fact, labels=["spies"])
        store.write([page("Kim mills."), secret], author=OWNER, model=MODEL)
        assert [store.has_facts(where=where) for where in (Filter(), spies, PUBLIC)] == [True, True, False]
        store.write([page("Kim lies.", replace(fact, status="retracted"))], author=OWNER, model=MODEL)
        assert store.has_facts(where=PUBLIC)
        store.forget([secret.document.id], author=OWNER)
        assert store.has_facts(where=spies)

    def test_metadata_filters_match_values(self, world: Store) -> None:
        def search(**metadata: Any) -> list[str]:
            ranking = world.lexical("Lothair", top_k=9, where=Filter(metadata=metadata))
            return sorted(s.id for s in ranking)

        king, queen = KING.passages[0].id, QUEEN.passages[0].id
        assert search(lang="en") == [king]
        assert search(lang=["en", "fr"]) == sorted([king, queen])
        assert search(lang="en", year=855) == [king]
        assert search(lang="fr", year=855) == []
        assert search(year="855") == []
        assert search(tags="king") == [king]
        assert search(nothing="here") == []
        assert search(lang=[]) == []

    def test_metadata_filters_apply_to_every_read(self, world: Store) -> None:
        where = Filter(metadata={"lang": "fr"})
        assert [s.id for s in world.dense(question("king"), top_k=9, where=where)] == [QUEEN.passages[0].id]
        assert world.passages([p.id for c in WORLD for p in c.passages], where=where).keys() == {QUEEN.passages[0].id}
        every = [p.id for c in WORLD for p in c.passages]
        assert world.cosines(question("king"), every, where=where).keys() == {QUEEN.passages[0].id}
        assert world.word_scores("king", every, where=where).keys() == {QUEEN.passages[0].id}
        assert world.sources(every, where=where).keys() == {QUEEN.passages[0].id}
        entities = [e.id for c in WORLD for e in c.entities]
        assert world.nearby(question("king"), entities, per_entity=9, where=where)[1].keys() == {QUEEN.passages[0].id}
        assert world.documents([c.document.id for c in WORLD], where=where).keys() == {QUEEN.document.id}
        assert world.entities([LOTHARINGIA], where=where) == {}
        assert world.entities_by_names(["Lotharingia"], where=where) == {}
        assert world.find_similar_entities({LOTHAIR: naming.keys("Lotharingia")}, max_per_key=9, where=where) == {}
        assert world.find_entities_by_key(naming.keys("Lotharingia"), max_per_key=9, where=where) == {}
        assert world.facts([RULES_ID], where=where) == {}
        assert world.facts_of_entities([LOTHAIR], per_entity=9, where=where) == {}
        assert world.facts_of_passages([KING.passages[0].id], per_passage=9, where=where) == {}
        assert world.passages_of_entities([LOTHAIR], per_entity=9, where=where) == {}
        assert world.entities_of_passages([KING.passages[0].id], per_passage=9, where=where) == {}
        assert world.get_indexed_documents([KING.document.id], where=where) == {}
