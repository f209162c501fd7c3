"""Test fetching: items by id, documents by URI, and several requests at once."""

from typing import Any

import numpy as np
import pytest

from waylore import names as naming
from waylore.errors import DimensionMismatch
from waylore.store.protocol import Store
from waylore.store.reads import run_request
from waylore.store.requests import ReadRequest, make_request
from waylore.testing.world import (
    EMBEDDER,
    KING,
    LOTHAIR,
    LOTHARINGIA,
    MODEL,
    PUBLIC,
    QUEEN,
    WORLD,
    StoreFixtures,
    page,
    question,
    sort_parts,
)
from waylore.text import terms
from waylore.types.author import OWNER
from waylore.types.search import NO_FILTER, Filter, TermCounts


class FetchingTests(StoreFixtures):
    """Items by id, documents by URI, and several requests at once."""

    def test_documents_are_listed_by_uri(self, store: Store) -> None:
        uris = [
            "docs/b.md",
            "docs/a.csv#row=2",
            "docs/a.csv#row=10",
            "docs",
            "docs2/a.md",
            "docs/é.md",
            "",
        ]
        pages = [page(f"page {i}", uri=uri, labels=["red"] if i == 0 else []) for i, uri in enumerate(uris)]
        store.write(pages, author=OWNER, model=MODEL)
        below = ["docs/a.csv#row=10", "docs/a.csv#row=2", "docs/b.md", "docs/é.md"]
        assert [d.uri for d in store.list_documents(under="docs/")] == below
        assert [d.uri for d in store.list_documents()] == ["", "docs", *below, "docs2/a.md"]
        assert [d.uri for d in store.list_documents(under="docs/", where=PUBLIC)] == [*below[:2], below[3]]
        first = store.list_documents(limit=3)
        rest = store.list_documents(after=(first[-1].uri, first[-1].id))
        assert first + rest == store.list_documents()

    def test_entities_are_listed_by_id_and_type(self, world: Store) -> None:
        described = sorted({e.id for c in WORLD for e in c.entities})
        public = sorted({e.id for c in WORLD if not c.document.labels for e in c.entities})
        assert [e.id for e in world.list_entities()] == described
        assert [e.id for e in world.list_entities(where=PUBLIC)] == public != described
        assert [e.id for e in world.list_entities(limit=len(public), where=PUBLIC)] == public
        assert world.list_entities(limit=2) + world.list_entities(after=described[1]) == world.list_entities()
        assert world.list_entities() == tuple(world.entities(described)[id_] for id_ in described)
        places = [e.id for c in WORLD for e in c.entities if e.type == "place"]
        assert [e.id for e in world.list_entities(of_type="Place")] == sorted(set(places))
        assert world.list_entities(of_type="plac") == ()

    def test_passages_are_found_by_the_beginning_of_their_id(self, store: Store) -> None:
        pages = [page(f"Page {n}.", labels=["red"] if n % 2 else []) for n in range(20)]
        store.write(pages, author=OWNER, model=MODEL)
        every = sorted(p.id for c in pages for p in c.passages)
        public = sorted(p.id for c in pages if not c.document.labels for p in c.passages)
        for digits in (0, 1, 8, 32):
            for beginning in {id_[:digits] for id_ in every}:
                alike = tuple(id_ for id_ in every if id_.startswith(beginning))
                seen = tuple(id_ for id_ in alike if id_ in public)
                assert store.find_passages(beginning, limit=99) == alike
                assert store.find_passages(beginning, where=PUBLIC) == seen[:2]
        for wrong in ("no identity", every[0].upper(), f"{every[0]}0", f"{every[0][:8]}%", "\n"):
            assert store.find_passages(wrong) == ()
        [together] = store.read_many([make_request(Store.find_passages, "", limit=3, where=PUBLIC)])
        assert together == tuple(public[:3])

    def test_items_are_fetched_by_id(self, world: Store) -> None:
        assert world.documents([KING.document.id, "0" * 32]) == {KING.document.id: KING.document}
        assert world.passages([KING.passages[0].id, "0" * 32]) == {KING.passages[0].id: KING.passages[0]}
        assert list(world.get_indexed_documents([KING.document.id, "0" * 32]).values()) == sort_parts(iter([KING]))
        assert world.entities([LOTHARINGIA, "0" * 32])[LOTHARINGIA].type == "place"
        mother = next(f for f in KING.facts if f.predicate == "mother")
        assert world.facts([mother.id, "0" * 32]) == {mother.id: mother}

    def test_invalid_ids_are_skipped(self, world: Store) -> None:
        assert world.documents(["no identity", KING.document.id]).keys() == {KING.document.id}
        assert world.forget(["no identity", ""], author=OWNER).documents == ()

    def test_zero_vector_has_cosine_zero(self, world: Store) -> None:
        zero = np.zeros(EMBEDDER.dimension, dtype=np.float32)
        assert {s.score for s in world.dense(zero, top_k=9)} == {0.0}

    def test_cosines_and_nearby_equal_dense_scores(self, world: Store) -> None:
        vector = question("king of lotharingia")
        found = {s.id: s.score for s in world.dense(vector, top_k=99)}
        assert world.cosines(vector, [*found, "0" * 32]) == found
        every = [e.id for c in WORLD for e in c.entities]
        mentions, near = world.nearby(vector, [*every, "0" * 32], per_entity=2)
        assert mentions == world.passages_of_entities(every, per_entity=2)
        assert near == {m.passage_id: found[m.passage_id] for ms in mentions.values() for m in ms}
        keys = naming.keys("Lotharingia")
        assert world.nearby(vector, [LOTHAIR], per_entity=2, keys=keys, max_per_key=1) == world.nearby(
            vector, [LOTHAIR, LOTHARINGIA], per_entity=2
        )
        assert world.nearby(vector, [LOTHAIR], per_entity=2, keys=keys) == world.nearby(vector, [LOTHAIR], per_entity=2)
        wrong = np.ones(3, dtype=np.float32)
        with pytest.raises(DimensionMismatch):
            world.cosines(wrong, list(found))
        with pytest.raises(DimensionMismatch):
            world.nearby(wrong, every, per_entity=1)

    def test_word_scores_equal_lexical_scores(self, world: Store) -> None:
        every = [p.id for c in WORLD for p in c.passages]
        for text in ("king of lotharingia", "Lothair", "mother mother tours", "falcon", "unknown", "", "the of"):
            found = {s.id: s.score for s in world.lexical(text, top_k=99)}
            assert world.word_scores(text, [*every, "0" * 32, "no identity"]) == dict.fromkeys(every, 0.0) | found
            assert world.word_scores(text, every[:1]) == {every[0]: found.get(every[0], 0.0)}
            [together] = world.read_many([make_request(Store.word_scores, text, every)])
            assert together == world.word_scores(text, every)

    def test_terms_are_counted_in_visible_passages(self, world: Store) -> None:
        texts = {p.id: {*terms(p.title), *terms(p.text)} for c in WORLD for p in c.passages}
        asked = "Lothair, the king of Lotharingia, met nobody: lothair"
        for where in (NO_FILTER, PUBLIC, Filter(labels=frozenset({"spies"}))):
            seen = [texts[id_] for id_ in world.passages(list(texts), where=where)]
            counts = {term: sum(term in text for text in seen) for term in terms(asked)}
            expected = TermCounts(len(seen), {term: count for term, count in counts.items() if count})
            assert world.count_terms(asked, where=where) == expected
            assert world.read_many([make_request(Store.count_terms, asked, where=where)] * 2) == [expected] * 2
        assert world.count_terms("").counts == {}

    def test_word_scores_do_not_depend_on_filter(self, world: Store) -> None:
        """A score that is fetched must equal the score of the search with the same filter."""
        every = [p.id for c in WORLD for p in c.passages]
        for where in (PUBLIC, Filter(metadata={"lang": ["en", "fr"]}), Filter(labels=frozenset({"spies"}))):
            found = {s.id: s.score for s in world.lexical("lothair king of lotharingia", top_k=99, where=where)}
            scores = world.word_scores("lothair king of lotharingia", every, where=where)
            assert scores.keys() == world.passages(every, where=where).keys()
            assert {id_: score for id_, score in scores.items() if score} == found

    def test_sources_returns_documents_of_passages(self, world: Store) -> None:
        found = world.sources([KING.passages[0].id, QUEEN.passages[0].id, "0" * 32])
        assert found == {KING.passages[0].id: KING.document, QUEEN.passages[0].id: QUEEN.document}

    def test_read_many_returns_results_in_order(self, world: Store) -> None:
        where, king = Filter(metadata={"lang": "fr"}), [KING.passages[0].id]
        requests: list[ReadRequest[Any]] = [
            make_request(Store.lexical, "lotharingia", top_k=9),
            make_request(Store.lexical, "lotharingia", top_k=9, where=where),
            make_request(Store.statistics),
            make_request(Store.dense, question("king"), top_k=2, where=PUBLIC),
            make_request(Store.passages, king),
            make_request(Store.passages, king, where=where),
            make_request(Store.facts_of_entities, [], per_entity=1),
            make_request(
                Store.find_similar_entities, {LOTHAIR: naming.list_matching_keys("Lothair II")}, max_per_key=3
            ),
        ]
        assert list(world.read_many(requests)) == [run_request(world, request) for request in requests]
        assert list(world.read_many([])) == []

    def test_read_many_fails_if_one_request_fails(self, world: Store) -> None:
        wrong = make_request(Store.dense, np.ones(3, dtype=np.float32), top_k=1)
        with pytest.raises(DimensionMismatch):
            world.read_many([make_request(Store.lexical, "king", top_k=1), wrong])

    def test_read_many_sees_last_write(self, store: Store) -> None:
        requests: list[ReadRequest[Any]] = [
            make_request(Store.lexical, "harbour", top_k=9),
            make_request(Store.statistics),
        ]
        for number in range(1, 4):
            store.write([page(f"Harbour {number}.")], author=OWNER, model=MODEL)
            found, statistics = store.read_many(requests)
            assert (len(found), statistics.documents) == (number, number)

    def test_reads_without_ids_return_nothing(self, world: Store) -> None:
        answers: list[Any] = [
            world.documents([]),
            world.passages([]),
            world.sources([]),
            world.cosines(question("king"), []),
            world.word_scores("king", []),
            world.get_indexed_documents([]),
            world.entities([]),
            world.facts([]),
            world.entities_by_names([]),
            world.find_similar_entities({}, max_per_key=1),
            world.find_entities_by_key([], max_per_key=1),
            world.facts_of_entities([], per_entity=1),
            world.facts_of_passages([], per_passage=1),
            world.passages_of_entities([], per_entity=1),
            world.entities_of_passages([], per_passage=1),
            world.digests([]),
        ]
        assert answers == [{}] * len(answers)
