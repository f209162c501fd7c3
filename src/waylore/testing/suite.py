"""For authors of stores: the Store protocol as tests, and the small world they are asked about.

Subclass `StoreConformance` and give it one fixture, `open_store`, that opens a collection by name in a
database of the test's own:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda collection: MyStore(tmp_path / "db", collection)

Every verb, every filter and every promise that a store can break is here. What needs a process to be killed
or a disk to be full is not. Needs pytest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from waylore import names as naming
from waylore.errors import DimensionMismatch, ModelMismatch
from waylore.indexing import pipeline
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.protocol import Store
from waylore.store.reads import run_request
from waylore.store.requests import Ask, ask
from waylore.types.identity import document_id, entity_id, fact_id
from waylore.types.knowledge import (
    STATUSES,
    Claim,
    Contribution,
    Document,
    Entity,
    Metadata,
    Source,
    Vector,
)
from waylore.types.search import Filter

EMBEDDER = HashingEmbedder(64, quiet=True)
ANOTHER = HashingEmbedder(96, quiet=True)
MODEL = EMBEDDER.name
PUBLIC = Filter(labels=frozenset())
OpenStore = Callable[[str], Store]


def day(text: str) -> datetime:
    """Midnight of an ISO date, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def page(
    text: str,
    *claims: Claim,
    title: str = "",
    uri: str = "",
    labels: Sequence[str] = (),
    metadata: Metadata | None = None,
    source: Source = "file",
) -> Contribution:
    """A text with the facts it states, embedded; the same arguments give the same contribution."""
    document = Document(
        id=document_id(uri=uri, text=text, labels=frozenset(labels)),
        title=title,
        uri=uri,
        source=source,
        metadata=metadata or {},
        labels=frozenset(labels),
        recorded_at=day("2024-05-01"),
    )
    return pipeline.embedded([pipeline.contribution(document, text, claims)], EMBEDDER)[0]


def described(contribution: Contribution, **descriptions: str) -> Contribution:
    """The same, with its entities described; keys are names with underscores for spaces."""
    told = {entity_id(name.replace("_", " ")): text for name, text in descriptions.items()}
    entities = tuple(replace(e, description=told.get(e.id, "")) for e in contribution.entities)
    return replace(contribution, entities=entities)


def question(text: str) -> Vector:
    """The vector of a question."""
    return EMBEDDER.embed_query(text)


def canonical(contributions: Iterator[Contribution]) -> list[Contribution]:
    """Contributions with their parts in the order in which they are exported."""
    return [
        replace(
            c,
            entities=tuple(sorted(c.entities, key=lambda e: e.id)),
            mentions=tuple(sorted(c.mentions, key=lambda m: (_position(c, m.passage_id), m.entity_id))),
            facts=tuple(sorted(c.facts, key=lambda f: (_position(c, f.passage_id), f.id))),
        )
        for c in sorted(contributions, key=lambda c: c.document.id)
    ]


def _position(contribution: Contribution, passage: str) -> tuple[int, str]:
    return next((p.position, p.id) for p in contribution.passages if p.id == passage)


def vectors(contributions: Iterator[Contribution]) -> list[list[float]]:
    """All vectors of an export, which equality of contributions leaves out."""
    parts = (p.vector for c in contributions for p in c.parts)
    return [[] if v is None else [round(float(x), 5) for x in v] for v in parts]


RULES = Claim("Lothair II", "rules", "Lotharingia", weight=8, subject_type="person", object_type="place")
MOTHER = Claim("Lothair II", "mother", "Ermengarde of Tours", weight=9)
BORN = Claim("Lothair II", "born", "835", is_value=True, weight=3)
KING = page(
    "Lothair II was king of Lotharingia. His mother was Ermengarde of Tours.",
    RULES,
    MOTHER,
    BORN,
    title="Lothair II",
    metadata={"lang": "en", "year": 855, "tags": ["king", "frank"]},
)
QUEEN = page(
    "Ermengarde of Tours married Lothair I and is buried at Erstein.",
    Claim("Ermengarde of Tours", "spouse", "Lothair I", weight=7),
    title="Ermengarde of Tours",
    metadata={"lang": "fr"},
)
SECRET = page(
    "The codename of Lothair II is Falcon, and he rules Burgundy too.",
    Claim("Lothair II", "codename", "Falcon", weight=10),
    Claim("Lothair II", "rules", "Burgundy", weight=10),
    replace(RULES, statement="Lothair II rules Lotharingia by the sword", weight=10, source="user_edit"),
    labels=["spies"],
)
NAMES_APART = page("The Beatles sang.", Claim("The Beatles", "sang", "songs"), metadata={"lang": "en"})
WORLD = (KING, QUEEN, SECRET)
LOTHAIR = entity_id("Lothair II")
LOTHARINGIA = entity_id("Lotharingia")
RULES_ID = fact_id(LOTHAIR, "rules", LOTHARINGIA, is_entity=True)


class StoreConformance:
    """What every store must do. Subclass it and give the fixture `open_store`."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Open a collection by name; the tests close it."""
        raise NotImplementedError("give a fixture open_store: a function from a collection's name to a Store")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """An empty collection."""
        store = open_store("default")
        yield store
        store.close()

    @pytest.fixture
    def world(self, store: Store) -> Store:
        """A collection of three documents, one of them secret."""
        store.write(WORLD, model=MODEL)
        return store

    # -- writing ---------------------------------------------------------------------------------------

    def test_write_says_how_many_were_new(self, store: Store) -> None:
        assert store.write([KING, QUEEN], model=MODEL) == 2
        assert store.write([KING, QUEEN, SECRET], model=MODEL) == 1

    def test_what_is_written_is_exported_whole_and_in_order(self, world: Store) -> None:
        assert list(world.export()) == canonical(iter(WORLD))

    def test_vectors_survive(self, world: Store) -> None:
        [found] = world.passages([KING.passages[0].id], vectors=True).values()
        assert found.vector is not None
        assert KING.passages[0].vector is not None
        assert np.allclose(found.vector, KING.passages[0].vector, atol=2e-3)
        told = KING.facts[1]
        assert _cosine(told.vector, world.facts([told.id])[told.id].vector) > 0.999

    def test_adding_twice_is_adding_once(self, world: Store) -> None:
        before, version = list(world.export()), world.version()
        assert world.write(WORLD, model=MODEL) == 0
        later = replace(KING, document=replace(KING.document, recorded_at=day("2030-01-01")))
        assert world.write([later], model=MODEL) == 0
        assert (list(world.export()), world.version()) == (before, version)

    def test_a_changed_document_replaces_the_old_one(self, store: Store) -> None:
        old = page("The ferry to Skye leaves at noon.", Claim("ferry", "goes to", "Skye"), uri="doc")
        new = page("The ferry to Mull leaves at dawn.", Claim("ferry", "goes to", "Mull"), uri="doc")
        store.write([old], model=MODEL)
        assert store.write([new], model=MODEL) == 1
        assert list(store.export()) == canonical(iter([new]))
        assert store.lexical("Skye", top_k=5) == ()
        assert store.entities_by_names(["Skye"]) == {}
        assert [s.id for s in store.dense(question("ferry"), top_k=5)] == [new.passages[0].id]

    def test_a_document_twice_in_one_batch_is_written_once(self, store: Store) -> None:
        first, second = page("One text.", uri="same"), page("Another text.", uri="same")
        store.write([first, second], model=MODEL)
        assert list(store.export()) == canonical(iter([second]))

    def test_a_batch_is_written_whole_or_not_at_all(self, world: Store) -> None:
        before, version = list(world.export()), world.version()
        good, bad = page("A good one."), page("A bad one.")
        short = tuple(replace(p, vector=np.ones(3, dtype=np.float32)) for p in bad.passages)
        with pytest.raises(DimensionMismatch):
            world.write([good, replace(bad, passages=short)], model=MODEL)
        assert (list(world.export()), world.version()) == (before, version)
        assert world.lexical("good", top_k=5) == ()

    def test_another_model_is_refused_with_the_remedy(self, world: Store) -> None:
        with pytest.raises(ModelMismatch, match="reembed"):
            world.write([page("Something new.")], model="another-model")
        with pytest.raises(ModelMismatch, match="reembed"):
            world.write([_bare(page("Something new."))], model=None)

    def test_a_collection_without_a_model_has_words_and_facts(self, store: Store) -> None:
        store.write([_bare(KING)], model=None)
        assert store.statistics().model is None
        assert store.dense(question("king"), top_k=3) == ()
        assert [s.id for s in store.lexical("king", top_k=3)] == [KING.passages[0].id]
        assert len(store.facts_of_entities([LOTHAIR], per_entity=9)[LOTHAIR]) == 3

    def test_digests_tell_what_is_there(self, world: Store) -> None:
        asked = [KING.document.id, "0" * 32]
        assert world.digests(asked) == {KING.document.id: KING.digest}

    # -- forgetting ------------------------------------------------------------------------------------

    def test_documents_are_listed_by_address(self, store: Store) -> None:
        addresses = [
            "docs/b.md",
            "docs/a.csv#row=2",
            "docs/a.csv#row=10",
            "docs",
            "docs2/a.md",
            "docs/é.md",
            "",
        ]
        pages = [
            page(f"page {i}", uri=uri, labels=["red"] if i == 0 else []) for i, uri in enumerate(addresses)
        ]
        store.write(pages, model=MODEL)
        below = ["docs/a.csv#row=10", "docs/a.csv#row=2", "docs/b.md", "docs/é.md"]
        assert [d.uri for d in store.listed(under="docs/")] == below
        assert [d.uri for d in store.listed()] == ["", "docs", *below, "docs2/a.md"]
        assert [d.uri for d in store.listed(under="docs/", where=PUBLIC)] == [*below[:2], below[3]]
        first = store.listed(limit=3)
        rest = store.listed(after=(first[-1].uri, first[-1].id))
        assert first + rest == store.listed()

    def test_a_file_is_known_until_a_document_of_it_goes(self, store: Store) -> None:
        rows = [page(f"row {i}", uri=f"a.csv#row={i}") for i in range(3)]
        store.write(rows, model=MODEL, fingerprints={"a.csv": "1", "b.md": "2"})
        assert store.fingerprints(["a.csv", "b.md", "c.md"]) == {"a.csv": "1", "b.md": "2"}
        store.write(rows, model=MODEL, fingerprints={"a.csv": "3"})
        assert store.fingerprints(["a.csv"]) == {"a.csv": "3"}
        store.write([page("another row", uri="a.csv#row=1")], model=MODEL)
        assert store.fingerprints(["a.csv", "b.md"]) == {"b.md": "2"}
        store.write([], model=MODEL, fingerprints={"a.csv": "4"})
        assert store.fingerprints([]) == {}
        store.forget([rows[0].document.id])
        assert store.fingerprints(["a.csv", "b.md"]) == {"b.md": "2"}

    def test_documents_go_when_others_come_instead_of_them(self, store: Store, open_store: OpenStore) -> None:
        rows = [page(f"row {i}", Claim("row", "is", str(i)), uri=f"a.csv#row={i}") for i in range(4)]
        store.write(rows[:3], model=MODEL)
        gone = [rows[1].document.id, "0" * 32]
        assert store.write([rows[3]], model=MODEL, fingerprints={"a.csv": "1"}, instead_of=gone) == 1
        other = open_store("other")
        other.write([rows[0], *rows[2:]], model=MODEL)
        assert canonical(store.export()) == canonical(other.export())
        assert store.fingerprints(["a.csv"]) == {"a.csv": "1"}

    def test_forgetting_is_never_having_added(self, world: Store, open_store: OpenStore) -> None:
        world.forget([SECRET.document.id])
        other = open_store("other")
        other.write([QUEEN, KING], model=MODEL)
        assert list(world.export()) == list(other.export())
        assert vectors(world.export()) == vectors(other.export())
        assert _counts(world) == _counts(other)
        other.close()

    def test_the_receipt_says_what_went_and_no_more(self, world: Store) -> None:
        receipt = world.forget([SECRET.document.id])
        assert receipt.documents == (SECRET.document.id,)
        assert receipt.passages == (SECRET.passages[0].id,)
        assert set(receipt.entities) == {entity_id("Falcon"), entity_id("Burgundy")}
        assert set(receipt.facts) == {f.id for f in SECRET.facts} - {RULES_ID}

    def test_what_another_document_supports_stays_in_its_words(self, world: Store) -> None:
        assert world.facts([RULES_ID])[RULES_ID].statement == "Lothair II rules Lotharingia by the sword"
        world.forget([SECRET.document.id])
        assert world.facts([RULES_ID])[RULES_ID].weight == RULES.weight
        assert world.entities([LOTHAIR])[LOTHAIR].passages == 1

    def test_nothing_finds_what_is_forgotten(self, world: Store) -> None:
        world.forget([SECRET.document.id])
        assert world.lexical("Falcon codename", top_k=9) == ()
        assert SECRET.passages[0].id not in {s.id for s in world.dense(question("Falcon"), top_k=9)}
        assert world.entities_by_names(["Falcon"]) == {}
        assert entity_id("Falcon") not in {s.id for s in world.nearest_entities(question("falcon"), top_k=9)}
        assert world.passages([SECRET.passages[0].id]) == {}
        assert world.documents([SECRET.document.id]) == {}
        assert world.facts([SECRET.facts[0].id], statuses=STATUSES) == {}

    def test_forgetting_the_unknown_is_nothing(self, world: Store) -> None:
        version = world.version()
        assert world.forget(["0" * 32]).documents == ()
        assert world.version() == version

    def test_what_is_forgotten_leaves_nothing_behind(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("other")
        other.write(WORLD, model=MODEL)  # the same identities, which another collection may keep
        world.touch(passages=[SECRET.passages[0].id], facts=[RULES_ID], at=day("2024-05-02"))
        _stage(world, limit=100, rounds=1)
        for each in (SECRET, KING, QUEEN):
            assert world.remains(world.forget([each.document.id])) == ()
        other.close()

    def test_what_is_there_again_is_told(self, world: Store) -> None:
        receipt = world.forget([SECRET.document.id])
        world.write([SECRET], model=MODEL)
        told = world.remains(receipt)
        went = (*receipt.documents, *receipt.passages, *receipt.entities, *receipt.facts)
        assert all(any(id_ in line for line in told) for id_ in went)

    def test_compacting_changes_nothing_that_is_known(self, world: Store) -> None:
        receipt = world.forget([SECRET.document.id])
        before, found = list(world.export()), world.lexical("Lothair", top_k=9)
        world.compact()
        assert list(world.export()) == before
        assert world.lexical("Lothair", top_k=9) == found
        assert world.remains(receipt) == ()

    def test_all_can_be_forgotten_and_added_again(self, world: Store) -> None:
        before = list(world.export())
        world.forget([c.document.id for c in WORLD])
        assert list(world.export()) == []
        assert set(_counts(world)) == {0}
        assert world.statistics().model is None
        world.write(WORLD, model=MODEL)
        assert list(world.export()) == before

    # -- searching -------------------------------------------------------------------------------------

    def test_dense_is_exact_when_small(self, store: Store) -> None:
        pages = [page(f"Page {i} tells of {word} and {word}s.") for i, word in enumerate(_WORDS)]
        store.write(pages, model=MODEL)
        asked = question("tells of a falcon")
        expected = sorted((-_cosine(p.passages[0].vector, asked), p.passages[0].id) for p in pages)
        found = store.dense(asked, top_k=7)
        assert [s.id for s in found] == [id_ for _, id_ in expected[:7]]
        assert [s.score for s in found] == pytest.approx([-c for c, _ in expected[:7]], abs=2e-3)

    def test_ties_are_broken_by_identity(self, store: Store) -> None:
        pages = [page("The very same text.", uri=f"copy {i}") for i in range(12)]
        store.write(pages, model=MODEL)
        expected = sorted(p.passages[0].id for p in pages)[:5]
        assert [s.id for s in store.dense(question("same text"), top_k=5)] == expected
        assert [s.id for s in store.lexical("same text", top_k=5)] == expected

    def test_an_empty_collection_finds_nothing(self, store: Store) -> None:
        assert store.dense(question("anything"), top_k=3) == ()
        assert store.lexical("anything", top_k=3) == ()
        assert store.nearest_entities(question("anything"), top_k=3) == ()
        assert store.entities_by_names(["anything"]) == {}
        assert list(store.export()) == []

    def test_a_question_of_another_length_is_refused(self, world: Store) -> None:
        with pytest.raises(DimensionMismatch):
            world.dense(ANOTHER.embed_query("king"), top_k=3)

    def test_lexical_puts_rare_words_before_common_ones(self, store: Store) -> None:
        common = [page(f"The harbour of town {i} has boats and nets.") for i in range(20)]
        rare = page("The lighthouse has a keeper.")
        store.write([*common, rare], model=MODEL)
        found = store.lexical("harbour with a lighthouse", top_k=30)
        assert found[0].id == rare.passages[0].id
        assert len(found) == 21
        assert all(a.score >= b.score > 0 for a, b in pairwise(found))

    def test_lexical_finds_only_what_shares_a_word(self, world: Store) -> None:
        assert [s.id for s in world.lexical("Erstein", top_k=9)] == [QUEEN.passages[0].id]
        assert world.lexical("zeppelin", top_k=9) == ()
        assert world.lexical("the of and ?!", top_k=9) == ()

    @pytest.mark.parametrize(
        ("text", "asked"),
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
    def test_lexical_reads_many_scripts(self, store: Store, text: str, asked: str) -> None:
        wanted = page(text)
        store.write([wanted, page("Something else entirely: weather report.")], model=MODEL)
        assert [s.id for s in store.lexical(asked, top_k=3)] == [wanted.passages[0].id]

    def test_nearest_entities_are_by_name(self, world: Store) -> None:
        asked = EMBEDDER.embed_passages(["ermengarde of tours"])[0]
        found = world.nearest_entities(asked, top_k=2)
        assert found[0].id == entity_id("Ermengarde of Tours")
        assert found[0].score == pytest.approx(1.0, abs=2e-3)

    def test_entities_are_found_by_names_and_aliases(self, store: Store) -> None:
        told = page("The WHO meets.", Claim("World Health Organization", "meets in", "Geneva"))
        entities = tuple(
            replace(e, aliases=("WHO", "W.H.O.")) if e.name.startswith("World") else e for e in told.entities
        )
        store.write([replace(told, entities=entities)], model=MODEL)
        found = store.entities_by_names(["world  health ORGANIZATION", "who", "w.h.o.", "Geneva", "Paris"])
        assert sorted(found) == ["Geneva", "w.h.o.", "who", "world  health ORGANIZATION"]
        assert {e.name for e in found["who"]} == {"World Health Organization"}

    def test_senses_share_a_name_and_stay_apart(self, store: Store) -> None:
        planet, metal = (
            Entity(entity_id("Mercury", sense), "Mercury", sense, sense=sense, vector=question("mercury"))
            for sense in ("planet", "metal")
        )
        told = page("Mercury is hot.")
        store.write([replace(told, entities=(planet, metal))], model=MODEL)
        found = store.entities_by_names(["mercury"])["mercury"]
        assert {e.type for e in found} == {"planet", "metal"}

    def test_names_that_share_a_key_are_alike(self, store: Store) -> None:
        store.write([NAMES_APART, page("The Beatles met.", Claim("Beatles", "met", "Elvis"))], model=MODEL)
        the_beatles, beatles = entity_id("The Beatles"), entity_id("Beatles")
        asked = {the_beatles: naming.mirrored("The Beatles"), LOTHAIR: naming.mirrored("Lothair II")}
        [alike] = store.alike(asked, most=1)[the_beatles]
        assert (alike.entity.id, alike.other.id, alike.key) == (the_beatles, beatles, "words:beatl")
        expected = _cosine(*(EMBEDDER.embed_passages([name])[0] for name in ("the beatles", "beatles")))
        assert alike.cosine == pytest.approx(expected, abs=2e-3)
        assert LOTHAIR not in store.alike(asked, most=1)
        assert store.alike(asked, most=1, where=Filter(metadata={"lang": "en"})) == {}

    def test_entities_are_found_by_the_keys_of_their_names(self, store: Store) -> None:
        told = [NAMES_APART, page("The Beatles met.", Claim("Beatles", "met", "Elvis"), labels=["spies"])]
        store.write(told, model=MODEL)
        the_beatles, beatles = entity_id("The Beatles"), entity_id("Beatles")
        asked = ["words:beatl", "words:nobody"]
        assert store.keyed(asked, most=9) == {"words:beatl": tuple(sorted([the_beatles, beatles]))}
        assert store.keyed(asked, most=9, where=PUBLIC) == {"words:beatl": (the_beatles,)}
        assert store.keyed(asked, most=9, where=Filter(metadata={"lang": "fr"})) == {}
        assert len(store.keyed(asked, most=1)["words:beatl"]) == 2
        [found] = store.entities([the_beatles], vectors=True).values()
        assert _cosine(found.vector, EMBEDDER.embed_passages(["the beatles"])[0]) > 0.999
        assert store.entities([the_beatles])[the_beatles].vector is None

    def test_a_short_form_is_alike_to_what_it_stands_for(self, store: Store) -> None:
        store.write([page("Both.", Claim("WHO", "is in", "World Health Organization"))], model=MODEL)
        who, full = entity_id("WHO"), entity_id("World Health Organization")
        found = store.alike(
            {who: naming.mirrored("WHO"), full: naming.mirrored("World Health Organization")}, most=1
        )
        assert {id_: [a.other.id for a in alike] for id_, alike in found.items()} == {who: [full], full: [who]}

    def test_a_key_that_many_share_finds_none_of_them(self, store: Store) -> None:
        names = ["Treaty of Rome", "Rome Treaty", "The Rome Treaty", "Treaties of Rome"]
        store.write(
            [page(name, Claim(name, "is", "old"), labels=["spies"][: i // 3]) for i, name in enumerate(names)],
            model=MODEL,
        )
        asked = {entity_id(names[0]): naming.mirrored(names[0])}
        assert len(store.alike(asked, most=3)[entity_id(names[0])]) == 3
        assert store.alike(asked, most=2) == {}
        assert len(store.alike(asked, most=2, where=PUBLIC)[entity_id(names[0])]) == 2

    def test_a_hidden_name_is_alike_to_nothing(self, store: Store) -> None:
        secret = page("Psst.", Claim("Beatles", "met", "Elvis"), labels=["spies"])
        store.write([NAMES_APART, secret], model=MODEL)
        asked = {entity_id("The Beatles"): naming.mirrored("The Beatles")}
        assert store.alike(asked, most=3, where=PUBLIC) == {}
        assert store.alike(asked, most=3)
        store.forget([secret.document.id])
        assert store.alike(asked, most=3) == {}

    def test_likeness_does_not_depend_on_the_order_of_writing(
        self, store: Store, open_store: OpenStore
    ) -> None:
        pages = [
            NAMES_APART,
            *(page(f"{name}.", Claim(name, "met", "Elvis")) for name in ("Beatles", "A Beatle")),
        ]
        asked = {entity_id(name): naming.mirrored(name) for name in ("The Beatles", "Beatles", "A Beatle")}
        other = open_store("other")
        store.write(pages, model=MODEL)
        for each in reversed(pages):
            other.write([each], model=MODEL)
        assert store.alike(asked, most=3) == other.alike(asked, most=3) != {}
        other.close()

    def test_likeness_is_of_the_vectors_that_were_adopted(self, store: Store) -> None:
        store.write([NAMES_APART, page("More.", Claim("Beatles", "met", "Elvis"))], model=MODEL)
        asked = {entity_id("The Beatles"): naming.mirrored("The Beatles")}
        _stage(store, limit=50, rounds=99)
        assert store.adopt(ANOTHER.name)
        [alike] = store.alike(asked, most=1)[entity_id("The Beatles")]
        expected = _cosine(*(ANOTHER.embed_passages([name])[0] for name in ("the beatles", "beatles")))
        assert alike.cosine == pytest.approx(expected, abs=2e-3)

    # -- the graph -------------------------------------------------------------------------------------

    def test_facts_come_strongest_first_from_both_ends(self, world: Store) -> None:
        facts = world.facts_of_entities([LOTHAIR, LOTHARINGIA], per_entity=9, where=PUBLIC)
        assert [f.predicate for f in facts[LOTHAIR]] == ["mother", "rules", "born"]
        assert [str(f) for f in facts[LOTHARINGIA]] == ["Lothair II —rules→ Lotharingia"]
        born = facts[LOTHAIR][-1]
        assert (born.object, born.object_id, born.passage_id) == ("835", "", KING.passages[0].id)

    def test_facts_are_capped_for_each_entity(self, world: Store) -> None:
        ids = [LOTHAIR, entity_id("Ermengarde of Tours")]
        facts = world.facts_of_entities(ids, per_entity=1, where=PUBLIC)
        assert [[f.predicate for f in facts[i]] for i in ids] == [["mother"], ["mother"]]

    def test_facts_are_filtered_by_predicate_before_the_cap(self, world: Store) -> None:
        facts = world.facts_of_entities([LOTHAIR], per_entity=1, predicates=["BORN", "spouse"])
        assert [f.predicate for f in facts[LOTHAIR]] == ["born"]

    def test_a_cap_falls_alike_among_equals(self, store: Store) -> None:
        claims = [Claim("Hub", "knows", f"Person {i}") for i in range(20)]
        told = page("Hub knows everyone.", *claims)
        store.write([told], model=MODEL)
        [facts] = store.facts_of_entities([entity_id("Hub")], per_entity=5).values()
        assert [f.id for f in facts] == sorted(f.id for f in told.facts)[:5]

    def test_facts_have_a_status(self, store: Store) -> None:
        claims = [replace(MOTHER, status="retracted"), replace(RULES, status="staged"), BORN]
        store.write([page("Lothair II.", *claims)], model=MODEL)
        live = store.facts_of_entities([LOTHAIR], per_entity=9)[LOTHAIR]
        assert [f.predicate for f in live] == ["rules", "born"]
        gone = store.facts_of_entities([LOTHAIR], per_entity=9, statuses=("retracted",))[LOTHAIR]
        assert [f.predicate for f in gone] == ["mother"]

    def test_a_trusted_voice_retracts_a_fact_for_all(self, world: Store) -> None:
        edit = page(
            "Not so.", replace(MOTHER, status="retracted", source="user_edit", weight=1), source="user_edit"
        )
        world.write([edit], model=MODEL)
        mother = next(f.id for f in KING.facts if f.predicate == "mother")
        assert mother not in {f.id for f in world.facts_of_entities([LOTHAIR], per_entity=9)[LOTHAIR]}
        assert mother not in {
            f.id for f in world.facts_of_passages([KING.passages[0].id], per_passage=9)[KING.passages[0].id]
        }
        assert world.facts([mother]) == {}
        assert world.facts([mother], statuses=("retracted",))[mother].weight == 1

    def test_facts_hold_for_a_time(self, store: Store) -> None:
        first = replace(RULES, valid_from=day("0855-01-01"), valid_to=day("0860-01-01"), weight=4)
        second = replace(RULES, valid_from=day("0865-01-01"), weight=6)
        store.write([page("Then.", first), page("Later.", second)], model=MODEL)

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

    def test_passages_state_facts_in_their_own_words(self, world: Store) -> None:
        passages = [KING.passages[0].id, SECRET.passages[0].id]
        facts = world.facts_of_passages(passages, per_passage=9)
        said = {p: {f.id: f.statement for f in fs} for p, fs in facts.items()}
        assert said[KING.passages[0].id][RULES_ID] == ""
        assert said[SECRET.passages[0].id][RULES_ID] == "Lothair II rules Lotharingia by the sword"
        assert [len(fs) for fs in world.facts_of_passages(passages, per_passage=1).values()] == [1, 1]

    def test_an_entitys_own_passages_come_first(self, store: Store) -> None:
        often = page("Ada, Ada and again Ada.", Claim("Ada", "wrote", "notes"), uri="often")
        own = page("A mathematician who wrote notes.", Claim("Ada", "wrote", "notes"), title="Ada (person)")
        once = page("Ada wrote notes once.", Claim("Ada", "wrote", "notes"), uri="once")
        store.write([once, often, own], model=MODEL)
        ada = entity_id("Ada")
        found = store.passages_of_entities([ada], per_entity=9)[ada]
        assert [m.passage_id for m in found] == [c.passages[0].id for c in (own, often, once)]
        assert [(m.count, m.is_own) for m in found] == [(1, True), (3, False), (1, False)]
        assert len(store.passages_of_entities([ada], per_entity=2)[ada]) == 2
        assert store.entities([ada])[ada].passages == 3

    def test_passages_mention_entities(self, world: Store) -> None:
        [mentions] = world.entities_of_passages([KING.passages[0].id], per_passage=9).values()
        assert mentions[0].entity_id == LOTHAIR
        assert mentions[0].is_own
        assert {m.entity_id for m in mentions} == {e.id for e in KING.entities}

    # -- fetching --------------------------------------------------------------------------------------

    def test_things_are_fetched_by_identity(self, world: Store) -> None:
        assert world.documents([KING.document.id, "0" * 32]) == {KING.document.id: KING.document}
        assert world.passages([KING.passages[0].id, "0" * 32]) == {KING.passages[0].id: KING.passages[0]}
        assert list(world.contributions([KING.document.id, "0" * 32]).values()) == canonical(iter([KING]))
        assert world.entities([LOTHARINGIA, "0" * 32])[LOTHARINGIA].type == "place"
        mother = next(f for f in KING.facts if f.predicate == "mother")
        assert world.facts([mother.id, "0" * 32]) == {mother.id: mother}

    def test_what_is_no_identity_is_not_there(self, world: Store) -> None:
        assert world.documents(["no identity", KING.document.id]).keys() == {KING.document.id}
        assert world.forget(["no identity", ""]).documents == ()

    def test_a_question_that_points_nowhere_is_near_nothing(self, world: Store) -> None:
        nowhere = np.zeros(EMBEDDER.dimension, dtype=np.float32)
        assert {s.score for s in world.dense(nowhere, top_k=9)} == {0.0}

    def test_passages_are_as_near_as_a_search_finds_them(self, world: Store) -> None:
        asked = question("king of lotharingia")
        found = {s.id: s.score for s in world.dense(asked, top_k=99)}
        assert world.cosines(asked, [*found, "0" * 32]) == found
        every = [e.id for c in WORLD for e in c.entities]
        mentions, near = world.nearby(asked, [*every, "0" * 32], per_entity=2)
        assert mentions == world.passages_of_entities(every, per_entity=2)
        assert near == {m.passage_id: found[m.passage_id] for ms in mentions.values() for m in ms}
        keys = naming.keys("Lotharingia")
        assert world.nearby(asked, [LOTHAIR], per_entity=2, keys=keys, most=1) == world.nearby(
            asked, [LOTHAIR, LOTHARINGIA], per_entity=2
        )
        assert world.nearby(asked, [LOTHAIR], per_entity=2, keys=keys) == world.nearby(
            asked, [LOTHAIR], per_entity=2
        )
        wrong = np.ones(3, dtype=np.float32)
        with pytest.raises(DimensionMismatch):
            world.cosines(wrong, list(found))
        with pytest.raises(DimensionMismatch):
            world.nearby(wrong, every, per_entity=1)

    def test_passages_have_a_source(self, world: Store) -> None:
        found = world.sources([KING.passages[0].id, QUEEN.passages[0].id, "0" * 32])
        assert found == {KING.passages[0].id: KING.document, QUEEN.passages[0].id: QUEEN.document}

    def test_what_is_asked_together_is_answered_in_order(self, world: Store) -> None:
        where, king = Filter(metadata={"lang": "fr"}), [KING.passages[0].id]
        asks: list[Ask[Any]] = [
            ask(Store.lexical, "lotharingia", top_k=9),
            ask(Store.lexical, "lotharingia", top_k=9, where=where),
            ask(Store.statistics),
            ask(Store.dense, question("king"), top_k=2, where=PUBLIC),
            ask(Store.passages, king),
            ask(Store.passages, king, where=where),
            ask(Store.facts_of_entities, [], per_entity=1),
            ask(Store.alike, {LOTHAIR: naming.mirrored("Lothair II")}, most=3),
        ]
        assert list(world.together(asks)) == [run_request(world, each) for each in asks]
        assert list(world.together([])) == []

    def test_one_that_fails_fails_all_that_are_asked_together(self, world: Store) -> None:
        wrong = ask(Store.dense, np.ones(3, dtype=np.float32), top_k=1)
        with pytest.raises(DimensionMismatch):
            world.together([ask(Store.lexical, "king", top_k=1), wrong])

    def test_what_is_asked_together_sees_the_last_write(self, store: Store) -> None:
        asks: list[Ask[Any]] = [ask(Store.lexical, "harbour", top_k=9), ask(Store.statistics)]
        for number in range(1, 4):
            store.write([page(f"Harbour {number}.")], model=MODEL)
            found, known = store.together(asks)
            assert (len(found), known.documents) == (number, number)

    def test_nothing_asked_is_nothing_found(self, world: Store) -> None:
        answers: list[Any] = [
            world.documents([]),
            world.passages([]),
            world.sources([]),
            world.cosines(question("king"), []),
            world.contributions([]),
            world.entities([]),
            world.facts([]),
            world.entities_by_names([]),
            world.alike({}, most=1),
            world.keyed([], most=1),
            world.facts_of_entities([], per_entity=1),
            world.facts_of_passages([], per_passage=1),
            world.passages_of_entities([], per_entity=1),
            world.entities_of_passages([], per_passage=1),
            world.digests([]),
        ]
        assert answers == [{}] * len(answers)

    # -- filters: inside the query, not after it ---------------------------------------------------------

    def test_what_a_caller_may_not_see_is_not_there(self, world: Store) -> None:
        _assert_unseen(world, PUBLIC)
        _assert_unseen(world, Filter(labels=frozenset({"gardeners"})))
        seen = Filter(labels=frozenset({"spies", "gardeners"}))
        assert SECRET.passages[0].id in {s.id for s in world.lexical("Falcon", top_k=3, where=seen)}
        assert SECRET.facts[0].id in world.facts([SECRET.facts[0].id], where=seen)

    def test_a_caller_who_may_see_nothing_sees_nothing(self, store: Store) -> None:
        store.write([SECRET], model=MODEL)
        _assert_unseen(store, PUBLIC)
        _assert_unseen(store, Filter(labels=frozenset({"gardeners"})))

    def test_a_permission_that_is_gone_lets_nothing_through(self, world: Store, open_store: OpenStore) -> None:
        """Whatever a handle remembers of permissions, another's write ends it at once."""
        other, mine = open_store("default"), Filter(labels=frozenset({"spies"}))
        assert other.documents([SECRET.document.id], where=mine)
        world.forget([SECRET.document.id])
        moved = page("The codename of Lothair II is Falcon.", labels=["generals"])
        world.write([moved], model=MODEL)
        assert other.documents([moved.document.id], where=mine) == {}
        assert moved.passages[0].id not in {s.id for s in other.lexical("Falcon", top_k=9, where=mine)}
        other.close()

    def test_a_hidden_voice_is_not_heard(self, world: Store) -> None:
        for facts in (
            world.facts([RULES_ID], where=PUBLIC),
            {f.id: f for f in world.facts_of_entities([LOTHAIR], per_entity=9, where=PUBLIC)[LOTHAIR]},
        ):
            assert (facts[RULES_ID].statement, facts[RULES_ID].weight) == ("", RULES.weight)

    def test_an_entity_is_described_by_what_the_caller_sees(self, store: Store) -> None:
        claim = Claim("Kim", "works at", "the mill")
        store.write([described(page("Kim mills.", claim), Kim="A miller.")], model=MODEL)
        secret = described(page("Kim spies.", claim, labels=["spies"]), Kim="A spy.")
        store.write([secret], model=MODEL)
        kim = entity_id("Kim")
        assert store.entities([kim], where=PUBLIC)[kim].description == "A miller."
        everything = store.entities([kim])[kim].description
        assert "A miller." in everything
        assert "A spy." in everything

    def test_filters_do_not_eat_into_the_answer(self, store: Store) -> None:
        """Two hundred better matches that the caller may not see must not crowd out three that he may."""
        claim = Claim("The mill", "grinds", "corn", weight=10)
        hidden = [
            page(f"mill mill mill number {i}", replace(claim, object=f"corn {i}"), labels=["owners"])
            for i in range(200)
        ]
        seen = [
            page(
                f"A long and winding story in which, among much else, mill {name} is named.",
                replace(claim, object=f"rye {name}", weight=1),
                metadata={"kind": "story", "name": name},
            )
            for name in ("one", "two", "three")
        ]
        store.write([*hidden[:100], *seen, *hidden[100:]], model=MODEL)
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

    def test_metadata_filters(self, world: Store) -> None:
        def found(**metadata: Any) -> list[str]:
            ranking = world.lexical("Lothair", top_k=9, where=Filter(metadata=metadata))
            return sorted(s.id for s in ranking)

        king, queen = KING.passages[0].id, QUEEN.passages[0].id
        assert found(lang="en") == [king]
        assert found(lang=["en", "fr"]) == sorted([king, queen])
        assert found(lang="en", year=855) == [king]
        assert found(lang="fr", year=855) == []
        assert found(year="855") == []
        assert found(tags="king") == [king]
        assert found(nothing="here") == []
        assert found(lang=[]) == []

    def test_metadata_filters_hold_for_every_verb(self, world: Store) -> None:
        where = Filter(metadata={"lang": "fr"})
        assert [s.id for s in world.dense(question("king"), top_k=9, where=where)] == [QUEEN.passages[0].id]
        assert world.passages([p.id for c in WORLD for p in c.passages], where=where).keys() == {
            QUEEN.passages[0].id
        }
        every = [p.id for c in WORLD for p in c.passages]
        assert world.cosines(question("king"), every, where=where).keys() == {QUEEN.passages[0].id}
        assert world.sources(every, where=where).keys() == {QUEEN.passages[0].id}
        entities = [e.id for c in WORLD for e in c.entities]
        assert world.nearby(question("king"), entities, per_entity=9, where=where)[1].keys() == {
            QUEEN.passages[0].id
        }
        assert world.documents([c.document.id for c in WORLD], where=where).keys() == {QUEEN.document.id}
        assert world.entities([LOTHARINGIA], where=where) == {}
        assert world.entities_by_names(["Lotharingia"], where=where) == {}
        assert world.alike({LOTHAIR: naming.keys("Lotharingia")}, most=9, where=where) == {}
        assert world.keyed(naming.keys("Lotharingia"), most=9, where=where) == {}
        assert world.facts([RULES_ID], where=where) == {}
        assert world.facts_of_entities([LOTHAIR], per_entity=9, where=where) == {}
        assert world.facts_of_passages([KING.passages[0].id], per_passage=9, where=where) == {}
        assert world.passages_of_entities([LOTHAIR], per_entity=9, where=where) == {}
        assert world.entities_of_passages([KING.passages[0].id], per_passage=9, where=where) == {}
        assert world.contributions([KING.document.id], where=where) == {}

    # -- the collection --------------------------------------------------------------------------------

    def test_collections_are_apart(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("other")
        _assert_unseen(other, Filter())
        assert other.statistics().documents == 0
        assert other.forget([KING.document.id]).documents == ()
        other.write([_bare(page("The codename of the other is Sparrow."))], model=None)
        assert world.lexical("Sparrow", top_k=3) == ()
        assert list(world.export()) == canonical(iter(WORLD))
        before = [s.score for s in world.lexical("Falcon", top_k=3)]
        other.write([_bare(page(f"Falcon number {i}.")) for i in range(30)], model=None)
        assert [s.score for s in world.lexical("Falcon", top_k=3)] == before
        other.close()

    def test_a_write_is_seen_through_another_handle(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("default")
        assert other.lexical("Zanzibar", top_k=3) == ()
        version = other.version()
        late = page("Zanzibar is an island.", labels=["sailors"])
        world.write([late], model=MODEL)
        assert other.version() > version
        sailors = Filter(labels=frozenset({"sailors"}))
        assert [s.id for s in other.lexical("Zanzibar", top_k=3, where=sailors)] == [late.passages[0].id]
        other.close()

    def test_use_is_counted_and_changes_no_version(self, world: Store) -> None:
        version = world.version()
        ids = [RULES_ID]
        world.touch(facts=ids, passages=[KING.passages[0].id], at=day("2024-06-01"))
        world.touch(facts=ids * 2, at=day("2024-05-15"))
        fact = world.facts(ids)[RULES_ID]
        assert (fact.access_count, fact.last_accessed) == (3, day("2024-06-01"))
        assert world.version() == version
        assert list(world.export()) == canonical(iter(WORLD))

    def test_statistics_count(self, world: Store) -> None:
        assert _counts(world) == (3, 3, 6, 6, sum(len(c.mentions) for c in WORLD))
        known = world.statistics()
        assert (known.model, known.dimension) == (MODEL, EMBEDDER.dimension)

    def test_an_export_is_an_import(self, world: Store, open_store: OpenStore) -> None:
        other = open_store("copy")
        other.write(list(world.export()), model=MODEL)
        assert list(other.export()) == list(world.export())
        assert vectors(other.export()) == vectors(world.export())
        asked = question("who rules?")
        assert other.dense(asked, top_k=9) == world.dense(asked, top_k=9)
        assert other.lexical("mother king", top_k=9) == world.lexical("mother king", top_k=9)
        other.close()

    # -- another embedding model -----------------------------------------------------------------------

    def test_an_empty_collection_adopts_any_model_and_keeps_none(self, store: Store) -> None:
        assert store.adopt(ANOTHER.name)
        assert store.statistics().model is None
        assert store.write([KING], model=MODEL) == 1

    def test_another_model_is_staged_then_adopted(self, world: Store) -> None:
        before = world.dense(question("king"), top_k=3)
        assert not world.adopt(ANOTHER.name)
        _stage(world, limit=4, rounds=1)
        assert world.dense(question("king"), top_k=3) == before
        late = page("Added in the middle of it.", Claim("Late", "came", "after"))
        world.write([late], model=MODEL)
        assert not world.adopt(ANOTHER.name)
        world.forget([QUEEN.document.id])
        _stage(world, limit=4, rounds=99)
        assert world.adopt(ANOTHER.name)
        known = world.statistics()
        assert (known.model, known.dimension) == (ANOTHER.name, ANOTHER.dimension)
        asked = ANOTHER.embed_query(KING.passages[0].embeddable)
        assert world.dense(asked, top_k=1)[0].id == KING.passages[0].id
        assert {s.id for s in world.dense(asked, top_k=9)} == {c.passages[0].id for c in (KING, SECRET, late)}
        assert world.nearest_entities(asked, top_k=99)
        fact = world.facts([RULES_ID])[RULES_ID]
        assert fact.vector is not None
        assert len(fact.vector) == ANOTHER.dimension
        assert world.unembedded("third", limit=1)


_WORDS = "falcon harbour mill lantern river anvil orchard violin glacier saddle comet parsley".split()


def _bare(contribution: Contribution) -> Contribution:
    """The same without vectors."""
    return replace(
        contribution,
        passages=tuple(replace(p, vector=None) for p in contribution.passages),
        entities=tuple(replace(e, vector=None) for e in contribution.entities),
        facts=tuple(replace(f, vector=None) for f in contribution.facts),
    )


def _cosine(a: Vector | None, b: Vector | None) -> float:
    assert a is not None
    assert b is not None
    return round(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), 3)


def _counts(store: Store) -> tuple[int, ...]:
    known = store.statistics()
    return known.documents, known.passages, known.entities, known.facts, known.mentions


def _stage(store: Store, *, limit: int, rounds: int) -> None:
    """Embed and stage what is missing, a few at a time."""
    for _ in range(rounds):
        items = store.unembedded(ANOTHER.name, limit=limit)
        if not items:
            return
        made = pipeline.vectors_of(items, ANOTHER)
        store.stage([replace(i, vector=made[i.embeddable]) for i in items], model=ANOTHER.name)


def _assert_unseen(store: Store, where: Filter) -> None:
    """No verb tells of the secret document."""
    passage, falcon = SECRET.passages[0].id, entity_id("Falcon")
    codename = next(f.id for f in SECRET.facts if f.predicate == "codename")
    asked = question("Falcon codename")
    assert passage not in {s.id for s in store.dense(asked, top_k=99, where=where)}
    assert passage not in {s.id for s in store.lexical("Falcon codename rules", top_k=99, where=where)}
    assert falcon not in {s.id for s in store.nearest_entities(asked, top_k=99, where=where)}
    assert store.entities_by_names(["Falcon"], where=where) == {}
    assert store.entities([falcon], where=where, vectors=True) == {}
    assert store.keyed(naming.keys("Falcon"), most=9, where=where) == {}
    facts = store.facts_of_entities([LOTHAIR, falcon], per_entity=99, where=where)
    assert codename not in {f.id for fs in facts.values() for f in fs}
    assert store.facts_of_passages([passage], per_passage=99, where=where) == {}
    mentions = store.passages_of_entities([LOTHAIR, falcon], per_entity=99, where=where)
    assert passage not in {m.passage_id for ms in mentions.values() for m in ms}
    assert store.entities_of_passages([passage], per_passage=99, where=where) == {}
    assert store.passages([passage], where=where) == {}
    assert store.sources([passage], where=where) == {}
    assert store.cosines(asked, [passage], where=where) == {}
    mentions, near = store.nearby(asked, [LOTHAIR, falcon], per_entity=99, where=where)
    assert passage not in {*near, *(m.passage_id for ms in mentions.values() for m in ms)}
    assert store.contributions([SECRET.document.id], where=where) == {}
    assert store.documents([SECRET.document.id], where=where) == {}
    assert store.facts([codename], statuses=STATUSES, where=where) == {}
