"""Test searching: by vector, by words, by names, and by similar names."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from waylore import names as naming
from waylore.errors import DimensionMismatch
from waylore.store.protocol import Store
from waylore.testing.world import (
    BEATLES,
    EMBEDDER,
    LOTHAIR,
    MODEL,
    OTHER_EMBEDDER,
    PUBLIC,
    QUEEN,
    OpenStore,
    StoreFixtures,
    compute_cosine,
    page,
    question,
    stage_other_model,
)
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.knowledge import Entity, NewFact
from waylore.types.search import NO_FILTER, Filter

WORDS = "falcon harbour mill lantern river anvil orchard violin glacier saddle comet parsley".split()


class SearchingTests(StoreFixtures):
    """Searches by vector, by words, by names, and by similar names."""

    def test_dense_is_exact_in_small_collection(self, store: Store) -> None:
        pages = [page(f"Page {i} tells of {word} and {word}s.") for i, word in enumerate(WORDS)]
        store.write(pages, author=OWNER, model=MODEL)
        vector = question("tells of a falcon")
        expected = sorted((-compute_cosine(p.passages[0].vector, vector), p.passages[0].id) for p in pages)
        found = store.dense(vector, top_k=7)
        assert [s.id for s in found] == [id_ for _, id_ in expected[:7]]
        assert [s.score for s in found] == pytest.approx([-c for c, _ in expected[:7]], abs=2e-3)

    def test_many_vectors_find_what_each_finds(self, world: Store) -> None:
        asked = [question(text) for text in ("king", "queen of Tours", "falcon", "king")]
        for where in (NO_FILTER, PUBLIC, Filter(metadata={"lang": "fr"})):
            alone = [world.dense(vector, top_k=2, where=where) for vector in asked]
            assert list(world.dense_many(asked, top_k=2, where=where)) == alone
        assert list(world.dense_many([], top_k=2)) == []
        with pytest.raises(DimensionMismatch):
            world.dense_many([question("king"), np.ones(3, dtype=np.float32)], top_k=2)

    def test_ties_are_broken_by_id(self, store: Store) -> None:
        pages = [page("The very same text.", uri=f"copy {i}") for i in range(12)]
        store.write(pages, author=OWNER, model=MODEL)
        expected = sorted(p.passages[0].id for p in pages)[:5]
        assert [s.id for s in store.dense(question("same text"), top_k=5)] == expected
        assert [s.id for s in store.lexical("same text", top_k=5)] == expected

    def test_empty_collection_finds_nothing(self, store: Store) -> None:
        assert store.dense(question("anything"), top_k=3) == ()
        assert store.lexical("anything", top_k=3) == ()
        assert store.nearest_entities(question("anything"), top_k=3) == ()
        assert store.entities_by_names(["anything"]) == {}
        assert list(store.export()) == []

    def test_dense_refuses_vector_of_other_dimension(self, world: Store) -> None:
        with pytest.raises(DimensionMismatch):
            world.dense(OTHER_EMBEDDER.embed_query("king"), top_k=3)

    def test_lexical_ranks_rare_words_before_common_ones(self, store: Store) -> None:
        common = [page(f"The harbour of town {i} has boats and nets.") for i in range(20)]
        rare = page("The lighthouse has a keeper.")
        store.write([*common, rare], author=OWNER, model=MODEL)
        found = store.lexical("harbour with a lighthouse", top_k=30)
        assert found[0].id == rare.passages[0].id
        assert len(found) == 21
        assert all(a.score >= b.score > 0 for a, b in pairwise(found))

    def test_lexical_finds_only_passages_that_share_a_word(self, world: Store) -> None:
        assert [s.id for s in world.lexical("Erstein", top_k=9)] == [QUEEN.passages[0].id]
        assert world.lexical("zeppelin", top_k=9) == ()
        assert world.lexical("the of and ?!", top_k=9) == ()

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("Le café de la Régence à Paris", "cafe regence"),
            ("Die Straßenbahn fährt nach Köln", "STRASSENBAHN koln"),
            ("Лошади бежали по степи", "лошадь степь"),
            ("東京都の天気は晴れです", "東京"),
            ("上海浦东国际机场", "国际机场"),
            ("서울에서 부산까지", "부산"),
            ("def load_user_settings(): ...", "user settings"),
            ('A "quoted" AND (bracketed) NEAR* text:', 'AND "quoted" NEAR('),
        ],
    )
    def test_lexical_supports_many_scripts(self, store: Store, text: str, query: str) -> None:
        expected = page(text)
        store.write([expected, page("Something else entirely: weather report.")], author=OWNER, model=MODEL)
        assert [s.id for s in store.lexical(query, top_k=3)] == [expected.passages[0].id]

    def test_nearest_entities_compares_names(self, world: Store) -> None:
        vector = EMBEDDER.embed_passages(["ermengarde of tours"])[0]
        found = world.nearest_entities(vector, top_k=2)
        assert found[0].id == entity_id("Ermengarde of Tours")
        assert found[0].score == pytest.approx(1.0, abs=2e-3)

    def test_entities_are_found_by_name_and_alias(self, store: Store) -> None:
        document = page("The WHO meets.", NewFact("World Health Organization", "meets in", "Geneva"))
        entities = tuple(
            replace(e, aliases=("WHO", "W.H.O.")) if e.name.startswith("World") else e for e in document.entities
        )
        store.write([replace(document, entities=entities)], author=OWNER, model=MODEL)
        found = store.entities_by_names(["world  health ORGANIZATION", "who", "w.h.o.", "Geneva", "Paris"])
        assert sorted(found) == ["Geneva", "w.h.o.", "who", "world  health ORGANIZATION"]
        assert {e.name for e in found["who"]} == {"World Health Organization"}

    def test_senses_of_one_name_are_separate_entities(self, store: Store) -> None:
        planet, metal = (
            Entity(entity_id("Mercury", sense), "Mercury", sense, sense=sense, vector=question("mercury"))
            for sense in ("planet", "metal")
        )
        document = page("Mercury is hot.")
        store.write([replace(document, entities=(planet, metal))], author=OWNER, model=MODEL)
        found = store.entities_by_names(["mercury"])["mercury"]
        assert {e.type for e in found} == {"planet", "metal"}

    def test_similar_entities_share_a_key(self, store: Store) -> None:
        store.write([BEATLES, page("The Beatles met.", NewFact("Beatles", "met", "Elvis"))], author=OWNER, model=MODEL)
        the_beatles, beatles = entity_id("The Beatles"), entity_id("Beatles")
        keys = {
            the_beatles: naming.list_matching_keys("The Beatles"),
            LOTHAIR: naming.list_matching_keys("Lothair II"),
        }
        [pair] = store.find_similar_entities(keys, max_per_key=1)[the_beatles]
        assert (pair.entity.id, pair.other.id, pair.key) == (the_beatles, beatles, "words:beatl")
        expected = compute_cosine(*(EMBEDDER.embed_passages([name])[0] for name in ("the beatles", "beatles")))
        assert pair.cosine == pytest.approx(expected, abs=2e-3)
        assert LOTHAIR not in store.find_similar_entities(keys, max_per_key=1)
        assert store.find_similar_entities(keys, max_per_key=1, where=Filter(metadata={"lang": "en"})) == {}

    def test_entities_are_found_by_key_of_name(self, store: Store) -> None:
        pages = [BEATLES, page("The Beatles met.", NewFact("Beatles", "met", "Elvis"), labels=["spies"])]
        store.write(pages, author=OWNER, model=MODEL)
        the_beatles, beatles = entity_id("The Beatles"), entity_id("Beatles")
        keys = ["words:beatl", "words:nobody"]
        assert store.find_entities_by_key(keys, max_per_key=9) == {"words:beatl": tuple(sorted([the_beatles, beatles]))}
        assert store.find_entities_by_key(keys, max_per_key=9, where=PUBLIC) == {"words:beatl": (the_beatles,)}
        assert store.find_entities_by_key(keys, max_per_key=9, where=Filter(metadata={"lang": "fr"})) == {}
        assert len(store.find_entities_by_key(keys, max_per_key=1)["words:beatl"]) == 2
        [found] = store.entities([the_beatles], vectors=True).values()
        assert compute_cosine(found.vector, EMBEDDER.embed_passages(["the beatles"])[0]) > 0.999
        assert store.entities([the_beatles])[the_beatles].vector is None

    def test_acronym_is_similar_to_full_name(self, store: Store) -> None:
        store.write([page("Both.", NewFact("WHO", "is in", "World Health Organization"))], author=OWNER, model=MODEL)
        who, full = entity_id("WHO"), entity_id("World Health Organization")
        found = store.find_similar_entities(
            {
                who: naming.list_matching_keys("WHO"),
                full: naming.list_matching_keys("World Health Organization"),
            },
            max_per_key=1,
        )
        assert {id_: [a.other.id for a in pairs] for id_, pairs in found.items()} == {who: [full], full: [who]}

    def test_key_that_many_entities_share_finds_none(self, store: Store) -> None:
        names = ["Treaty of Rome", "Rome Treaty", "The Rome Treaty", "Treaties of Rome"]
        store.write(
            [page(name, NewFact(name, "is", "old"), labels=["spies"][: i // 3]) for i, name in enumerate(names)],
            author=OWNER,
            model=MODEL,
        )
        keys = {entity_id(names[0]): naming.list_matching_keys(names[0])}
        assert len(store.find_similar_entities(keys, max_per_key=3)[entity_id(names[0])]) == 3
        assert store.find_similar_entities(keys, max_per_key=2) == {}
        assert len(store.find_similar_entities(keys, max_per_key=2, where=PUBLIC)[entity_id(names[0])]) == 2

    def test_hidden_name_is_similar_to_nothing(self, store: Store) -> None:
        secret = page("Psst.", NewFact("Beatles", "met", "Elvis"), labels=["spies"])
        store.write([BEATLES, secret], author=OWNER, model=MODEL)
        keys = {entity_id("The Beatles"): naming.list_matching_keys("The Beatles")}
        assert store.find_similar_entities(keys, max_per_key=3, where=PUBLIC) == {}
        assert store.find_similar_entities(keys, max_per_key=3)
        store.forget([secret.document.id], author=OWNER)
        assert store.find_similar_entities(keys, max_per_key=3) == {}

    def test_similarity_is_independent_of_write_order(self, store: Store, open_store: OpenStore) -> None:
        pages = [
            BEATLES,
            *(page(f"{name}.", NewFact(name, "met", "Elvis")) for name in ("Beatles", "A Beatle")),
        ]
        keys = {entity_id(name): naming.list_matching_keys(name) for name in ("The Beatles", "Beatles", "A Beatle")}
        other = open_store("other")
        store.write(pages, author=OWNER, model=MODEL)
        for document in reversed(pages):
            other.write([document], author=OWNER, model=MODEL)
        assert (
            store.find_similar_entities(keys, max_per_key=3) == other.find_similar_entities(keys, max_per_key=3) != {}
        )
        other.close()

    def test_similarity_uses_vectors_of_active_model(self, store: Store) -> None:
        store.write([BEATLES, page("More.", NewFact("Beatles", "met", "Elvis"))], author=OWNER, model=MODEL)
        keys = {entity_id("The Beatles"): naming.list_matching_keys("The Beatles")}
        stage_other_model(store, limit=50, rounds=99)
        assert store.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        [pair] = store.find_similar_entities(keys, max_per_key=1)[entity_id("The Beatles")]
        expected = compute_cosine(*(OTHER_EMBEDDER.embed_passages([name])[0] for name in ("the beatles", "beatles")))
        assert pair.cosine == pytest.approx(expected, abs=2e-3)
