"""Test the graph: facts of entities and passages, and mentions."""

from dataclasses import replace

from waylore.store.protocol import Store
from waylore.testing.world import (
    BORN,
    KING,
    LOTHAIR,
    LOTHARINGIA,
    MODEL,
    MOTHER,
    PUBLIC,
    RULES,
    RULES_ID,
    SECRET,
    WORLD,
    StoreFixtures,
    day,
    page,
)
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.knowledge import NewFact


def _pair(subject: str, object_: str) -> NewFact:
    return NewFact(subject, "", object_, is_pair=True)


class GraphTests(StoreFixtures):
    """Facts of entities and passages, and mentions."""

    def test_facts_of_subject_and_object_come_strongest_first(self, world: Store) -> None:
        facts = world.facts_of_entities([LOTHAIR, LOTHARINGIA], per_entity=9, where=PUBLIC)
        assert [f.predicate for f in facts[LOTHAIR]] == ["mother", "rules", "born"]
        assert [str(f) for f in facts[LOTHARINGIA]] == ["Lothair II —rules→ Lotharingia"]
        born = facts[LOTHAIR][-1]
        assert (born.object, born.object_id, born.passage_id) == ("835", "", KING.passages[0].id)

    def test_facts_are_limited_for_each_entity(self, world: Store) -> None:
        ids = [LOTHAIR, entity_id("Ermengarde of Tours")]
        facts = world.facts_of_entities(ids, per_entity=1, where=PUBLIC)
        assert [[f.predicate for f in facts[i]] for i in ids] == [["mother"], ["mother"]]

    def test_facts_are_filtered_by_predicate_before_limit(self, world: Store) -> None:
        facts = world.facts_of_entities([LOTHAIR], per_entity=1, predicates=["BORN", "spouse"])
        assert [f.predicate for f in facts[LOTHAIR]] == ["born"]

    def test_limit_among_equal_facts_is_by_id(self, store: Store) -> None:
        new_facts = [NewFact("Hub", "knows", f"Person {i}") for i in range(20)]
        hub = page("Hub knows everyone.", *new_facts)
        store.write([hub], author=OWNER, model=MODEL)
        [facts] = store.facts_of_entities([entity_id("Hub")], per_entity=5).values()
        assert [f.id for f in facts] == sorted(f.id for f in hub.facts)[:5]

    def test_facts_are_filtered_by_status(self, store: Store) -> None:
        new_facts = [replace(MOTHER, status="retracted"), replace(RULES, status="staged"), BORN]
        store.write([page("Lothair II.", *new_facts)], author=OWNER, model=MODEL)
        live = store.facts_of_entities([LOTHAIR], per_entity=9)[LOTHAIR]
        assert [f.predicate for f in live] == ["rules", "born"]
        retracted = store.facts_of_entities([LOTHAIR], per_entity=9, statuses=("retracted",))[LOTHAIR]
        assert [f.predicate for f in retracted] == ["mother"]

    def test_trusted_assertion_retracts_fact_for_everyone(self, world: Store) -> None:
        edit = page("Not so.", replace(MOTHER, status="retracted", source="user_edit", weight=1), source="user_edit")
        world.write([edit], author=OWNER, model=MODEL)
        mother = next(f.id for f in KING.facts if f.predicate == "mother")
        assert mother not in {f.id for f in world.facts_of_entities([LOTHAIR], per_entity=9)[LOTHAIR]}
        assert mother not in {
            f.id for f in world.facts_of_passages([KING.passages[0].id], per_passage=9)[KING.passages[0].id]
        }
        assert world.facts([mother]) == {}
        assert world.facts([mother], statuses=("retracted",))[mother].weight == 1

    def test_facts_are_filtered_by_validity(self, store: Store) -> None:
        first = replace(RULES, valid_from=day("0855-01-01"), valid_to=day("0860-01-01"), weight=4)
        second = replace(RULES, valid_from=day("0865-01-01"), weight=6)
        store.write([page("Then.", first), page("Later.", second)], author=OWNER, model=MODEL)

        def weights(as_of: str) -> list[float]:
            found = store.facts_of_entities([LOTHAIR], per_entity=9, as_of=day(as_of))
            weights = [f.weight for fs in found.values() for f in fs]
            assert [f.weight for f in store.facts([RULES_ID], as_of=day(as_of)).values()] == weights
            return weights

        assert weights("0850-01-01") == []
        assert weights("0855-01-01") == [4]
        assert weights("0860-01-01") == []
        assert weights("0900-01-01") == [6]
        passages = [c.passages[0].id for c in store.export()]
        then = store.facts_of_passages(passages, per_passage=9, as_of=day("0856-01-01"))
        assert [f.weight for fs in then.values() for f in fs] == [4]

    def test_facts_of_passages_have_their_own_statement(self, world: Store) -> None:
        passages = [KING.passages[0].id, SECRET.passages[0].id]
        facts = world.facts_of_passages(passages, per_passage=9)
        statements = {p: {f.id: f.statement for f in fs} for p, fs in facts.items()}
        assert statements[KING.passages[0].id][RULES_ID] == ""
        assert statements[SECRET.passages[0].id][RULES_ID] == "Lothair II rules Lotharingia by the sword"
        assert [len(fs) for fs in world.facts_of_passages(passages, per_passage=1).values()] == [1, 1]

    def test_pairs_are_no_facts(self, world: Store) -> None:
        [passage], [pair] = KING.passages, KING.pairs
        assert world.statistics().facts == len({fact.id for document in WORLD for fact in document.facts})
        assert world.facts([pair.id]) == {}
        of_entities = world.facts_of_entities([LOTHAIR], per_entity=99)[LOTHAIR]
        assert all(fact.is_typed for fact in of_entities)
        stated = world.facts_of_passages([passage.id], per_passage=99)[passage.id]
        assert [fact for fact in stated if not fact.is_typed] == [pair]

    def test_pairs_come_in_the_order_of_mentions(self, store: Store) -> None:
        often = page("Ada and Ada, Byron, Zoe.", _pair("Ada", "Byron"), _pair("Ada", "Zoe"), uri="often")
        own = page("A friend of Byron.", _pair("Ada", "Byron"), title="Ada (person)")
        once = page("Ada met Carl.", _pair("Carl", "Ada"), uri="once")
        store.write([once, often, own], author=OWNER, model=MODEL)
        ada, carl = entity_id("Ada"), entity_id("Carl")

        def read(per_entity: int, passages: int) -> list[tuple[str, str]]:
            found = store.pairs_of_entities([ada], per_entity=per_entity, passages_per_entity=passages)
            return [(str(pair), pair.passage_id) for pair in found.get(ada, ())]

        first, second, last = (document.passages[0].id for document in (own, often, once))
        byron, zoe = ("Ada —names→ Byron", first), ("Ada —names→ Zoe", second)
        assert read(9, 9) == [byron, zoe, ("Carl —names→ Ada", last)]
        assert read(9, 2) == [byron, zoe]
        assert read(1, 9) == read(9, 1) == [byron]
        [pair] = store.pairs_of_entities([carl, entity_id("nobody")], per_entity=9, passages_per_entity=9)[carl]
        assert replace(pair, vector=None) == replace(once.pairs[0], vector=None)
        assert pair.vector is not None

    def test_passages_about_entity_come_first(self, store: Store) -> None:
        often = page("Ada, Ada and again Ada.", NewFact("Ada", "wrote", "notes"), uri="often")
        own = page("A mathematician who wrote notes.", NewFact("Ada", "wrote", "notes"), title="Ada (person)")
        once = page("Ada wrote notes once.", NewFact("Ada", "wrote", "notes"), uri="once")
        store.write([once, often, own], author=OWNER, model=MODEL)
        ada = entity_id("Ada")
        found = store.passages_of_entities([ada], per_entity=9)[ada]
        assert [m.passage_id for m in found] == [c.passages[0].id for c in (own, often, once)]
        assert [(m.count, m.is_own) for m in found] == [(1, True), (3, False), (1, False)]
        assert len(store.passages_of_entities([ada], per_entity=2)[ada]) == 2
        assert store.entities([ada])[ada].passages == 3

    def test_entities_of_passages_begins_with_own_entity(self, world: Store) -> None:
        [mentions] = world.entities_of_passages([KING.passages[0].id], per_passage=9).values()
        assert mentions[0].entity_id == LOTHAIR
        assert mentions[0].is_own
        assert {m.entity_id for m in mentions} == {e.id for e in KING.entities}
