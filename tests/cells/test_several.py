"""A world that is split over three cells, files or servers, gives the answers that it gives in one file.

What must differ, and how far: BM25 scores are each collection's own; of an entity that several collections
describe, what is told first may be another; and where a fact has several voices a cap may leave out another,
for a store cuts by the strongest of them before it tells the most trusted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from cells.cells import catalogue, opened, spread
from databases import fresh_name
from retrieval.worlds import (
    DAYS,
    EMBEDDER,
    ENGINE,
    NAMES,
    PREDICATES,
    Case,
    Told,
    cases,
    claims,
    contributions,
    documents,
    everything_in,
    filters,
    ids,
    is_seen,
    promised,
    questions,
    sources_of,
    worlds,
)
from waylore import names as naming
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.suite import (
    KING,
    MODEL,
    QUEEN,
    SECRET,
    WORLD,
    canonical,
    day,
    described,
    page,
    vectors,
)
from waylore.types.identity import entity_id
from waylore.types.knowledge import LIVE, STATUSES, Claim, Contribution, Entity
from waylore.types.search import Filter, Found, Ranking

PARTS = ("a", "b", "c")
MANY = 1_000
splits = st.lists(st.sampled_from(PARTS), min_size=8, max_size=8)


def divided(told: Sequence[Contribution], split: Sequence[str]) -> dict[str, list[Contribution]]:
    """Documents by the collection that each is in."""
    return {part: [c for c, where in zip(told, split, strict=False) if where == part] for part in PARTS}


class Whole(SqliteStore):
    """One store of everything, which scores words as its parts do."""

    parts: Sequence[Store] = ()

    def lexical(self, query: str, *, top_k: int, where: Filter = Filter()) -> Ranking:  # noqa: B008
        found = [s for part in self.parts for s in part.lexical(query, top_k=MANY, where=where)]
        return tuple(sorted(found, key=lambda s: (-s.score, s.id))[:top_k])


@dataclass
class Grounds:
    """Three cells and a file that all examples share, each in collections of its own."""

    federation: Federation
    folder: Path

    @contextmanager
    def holding(
        self, told: Sequence[Contribution], split: Sequence[str]
    ) -> Iterator[tuple[FederatedStore, Whole]]:
        """The same documents in three cells and in one store."""
        parts = {fresh_name(part): of_it for part, of_it in divided(told, split).items()}
        whole = Whole(self.folder / "whole.waylore", fresh_name("whole"))
        whole.write(told, model=EMBEDDER.name)
        whole.parts = [open_federated(self.federation, name) for name in parts]
        for store, of_it in zip(whole.parts, parts.values(), strict=True):
            store.write(of_it, model=EMBEDDER.name)
        with opened(self.federation, ",".join(parts)) as several:
            yield several, whole
        for store in (whole, *whole.parts):
            store.close()


@pytest.fixture(scope="module", params=["files", "servers"])
def grounds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    folder = tmp_path_factory.mktemp("grounds")
    if request.param == "files":
        with closing(Federation(catalogue(folder), open_cell)) as federation:
            yield Grounds(federation, folder)
    else:
        token = ENGINE.set("cells")
        yield Grounds(request.getfixturevalue("three_cells"), folder)
        ENGINE.reset(token)


# -- every verb ----------------------------------------------------------------------------------------


# Documents that speak of few facts, and contradict each other.
disputes = st.lists(
    st.builds(
        lambda told, disputed: replace(told, claims=tuple(disputed)),
        documents,
        st.lists(
            claims.map(lambda c: replace(c, subject="Ada", predicate="knows", object=c.object[:1])), max_size=4
        ),
    ),
    min_size=3,
    max_size=8,
).map(tuple)


@promised(
    60,
    worlds | disputes,
    splits,
    filters,
    st.sampled_from([None, *DAYS]),
    st.sampled_from([LIVE, STATUSES, ("staged",)]),
)
def test_facts_are_those_of_one_store(
    grounds: Grounds, world: tuple[Told, ...], split: list[str], where: Filter, as_of: Any, statuses: Any
) -> None:
    told = contributions(world)
    entities = sorted({e.id for c in told for e in c.entities})
    passages = [p.id for c in told for p in c.passages]
    facts = sorted({f.id for c in told for f in c.facts})
    held = {"statuses": statuses, "as_of": as_of, "where": where}
    with grounds.holding(told, split) as (several, whole):
        assert several.facts(facts, **held) == whole.facts(facts, **held)
        for predicates in ((), PREDICATES[:1]):
            every = [
                s.facts_of_entities(entities, per_entity=MANY, predicates=predicates, **held)
                for s in (several, whole)
            ]
            assert every[0] == every[1]
            capped = several.facts_of_entities(entities, per_entity=2, predicates=predicates, **held)
            _assert_capped(capped, every[1], 2)
        for most in (MANY, 2, 1):
            stated = [s.facts_of_passages(passages, per_passage=most, **held) for s in (several, whole)]
            assert stated[0] == stated[1]


def _assert_capped(capped: Mapping[str, Any], every: Mapping[str, Any], most: int) -> None:
    """As many as there are, strongest first, each of them told as without a cap."""
    assert {id_: len(facts) for id_, facts in capped.items()} == {
        id_: min(len(facts), most) for id_, facts in every.items()
    }
    for id_, facts in capped.items():
        assert list(facts) == [f for f in every[id_] if f in facts]


@promised(40, worlds, splits, filters, questions)
def test_searches_and_lists_are_those_of_one_store(
    grounds: Grounds, world: tuple[Told, ...], split: list[str], where: Filter, question: str
) -> None:
    told = contributions(world)
    asked = EMBEDDER.embed_query(question)
    passages, own = [p.id for c in told for p in c.passages], [c.document.id for c in told]
    entities = sorted({e.id for c in told for e in c.entities})
    with grounds.holding(told, split) as (several, whole):
        for most in (MANY, 2):
            verbs: dict[str, dict[str, Any]] = {
                "dense": {"vector": asked, "top_k": most},
                "nearest_entities": {"vector": asked, "top_k": most},
                "lexical": {"query": question, "top_k": most},
                "passages_of_entities": {"entities": entities, "per_entity": most},
                "entities_of_passages": {"passages": passages, "per_passage": most},
                "listed": {"limit": most},
                "documents": {"ids": own},
                "contributions": {"ids": own},
                "passages": {"ids": passages},
                "cosines": {"vector": asked, "passages": passages},
            }
            for verb, options in verbs.items():
                answers = [getattr(s, verb)(**options, where=where) for s in (several, whole)]
                assert answers[0] == answers[1], verb
        first = several.listed(limit=2, where=where)
        if first:
            after = (first[-1].uri, first[-1].id)
            assert several.listed(after=after, where=where) == whole.listed(after=after, where=where)
        assert list(several.export()) == list(whole.export())
        assert vectors(several.export()) == vectors(whole.export())
        assert several.digests(own) == whole.digests(own)


@promised(40, worlds, splits, filters)
def test_entities_are_put_together(
    grounds: Grounds, world: tuple[Told, ...], split: list[str], where: Filter
) -> None:
    told = contributions(world)
    every = sorted({e.id for c in told for e in c.entities})
    names = [*NAMES, "hush1x 0", "Hush0x"]
    keys = [key for name in NAMES for key in naming.mirrored(name)]
    asking = dict.fromkeys(every, keys)
    with grounds.holding(told, split) as (several, whole):
        answers = [s.entities(every, where=where, vectors=True) for s in (several, whole)]
        _assert_described_alike(*answers)
        for one, other in zip(answers[0].values(), (answers[1][id_] for id_ in answers[0]), strict=True):
            assert one.passages == other.passages if where == Filter() else one.passages <= other.passages
            assert one.vector is not None
            assert one.vector.tolist() == other.vector.tolist()  # type: ignore[union-attr]
        named = [s.entities_by_names(names, where=where) for s in (several, whole)]
        assert {n: [e.id for e in es] for n, es in named[0].items()} == {
            n: [e.id for e in es] for n, es in named[1].items()
        }
        assert all(entity == answers[0][entity.id] for found in named[0].values() for entity in found)
        for most in (MANY, 2, 1):
            alike = [s.alike(asking, most=most, where=where) for s in (several, whole)]
            told_alike = [
                {
                    id_: [(a.entity.id, a.other.id, a.key, a.cosine) for a in found]
                    for id_, found in each.items()
                }
                for each in alike
            ]
            assert told_alike[0] == told_alike[1]
        assert several.keyed(keys, most=MANY, where=where) == whole.keyed(keys, most=MANY, where=where)


def _assert_described_alike(several: Mapping[str, Entity], whole: Mapping[str, Entity]) -> None:
    assert several.keys() == whole.keys()
    for one, other in ((several[id_], whole[id_]) for id_ in several):
        assert {one.name, *one.aliases} == {other.name, *other.aliases}
        assert sorted(one.description.split()) == sorted(other.description.split())
        assert bool(one.type) == bool(other.type)
        assert one.type.replace("kind", "told") in one.description


# -- every recipe --------------------------------------------------------------------------------------


def plain(told: Sequence[Contribution]) -> list[Contribution]:
    """Documents that describe no entity: then it does not matter who speaks of it first."""
    return [replace(c, entities=tuple(replace(e, type="", description="") for e in c.entities)) for c in told]


def comparable(found: Found) -> Found:
    """An answer whose entities have their aliases in one order."""
    entities = tuple(replace(e, aliases=tuple(sorted(e.aliases))) for e in found.entities)
    return replace(found, entities=entities)


@promised(80, cases(where=st.just(Filter())), st.none() | disputes, splits)
def test_every_recipe_answers_as_in_one_store(
    grounds: Grounds, case: Case, disputed: tuple[Told, ...] | None, split: list[str]
) -> None:
    walk = replace(case.recipe.walk, facts_per_entity=MANY)
    linking = replace(case.recipe.linking, facts_per_entity=MANY)
    recipe = replace(case.recipe, walk=walk, linking=linking)
    case = replace(case, recipe=recipe, world=disputed or case.world)
    with grounds.holding(plain(contributions(case.world)), split) as (several, whole):
        assert comparable(case.ask(several)) == comparable(case.ask(whole))


@promised(40, cases(), splits)
def test_no_recipe_tells_what_the_caller_may_not_see(grounds: Grounds, case: Case, split: list[str]) -> None:
    with grounds.holding(contributions(case.world), split) as (several, _):
        found, hybrid = case.ask(several), case.hybrid(several)
    seen = {number for number, told in enumerate(case.world) if is_seen(told, case.where)}
    assert {number for number, _ in sources_of(everything_in(found))} <= seen
    assert set(ids(hybrid)) <= set(ids(found))
    assert found.missing in ((), ("dense: no embedder was given, so only words were searched",))


# -- what is said in words -----------------------------------------------------------------------------


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[FederatedStore]:
    """The conformance suite's world, a document in each cell."""
    federation = spread(tmp_path, {"a": [KING], "b": [QUEEN], "c": [SECRET]}, MODEL)
    with opened(federation, "a,b,c") as store:
        yield store
    federation.close()


def test_everything_is_there_once(apart: FederatedStore) -> None:
    assert list(apart.export()) == canonical(iter(WORLD))
    known = apart.statistics()
    assert (known.documents, known.passages, known.model) == (3, 3, MODEL)


def test_the_same_document_in_two_collections_is_one(tmp_path: Path) -> None:
    federation = spread(tmp_path, {"a": [KING, QUEEN], "b": [KING]}, MODEL)
    with opened(federation, "a,b") as store:
        assert list(store.export()) == canonical(iter([KING, QUEEN]))
        assert len(store.lexical("Lothair", top_k=9)) == 2
        assert len(store.listed()) == 2
    federation.close()


def test_a_trusted_voice_in_another_cell_retracts_a_fact(tmp_path: Path) -> None:
    mother = next(f for f in KING.facts if f.predicate == "mother")
    retracted = Claim("Lothair II", "mother", "Ermengarde of Tours", status="retracted", source="user_edit")
    edit = page("Not so.", retracted, source="user_edit")
    federation = spread(tmp_path, {"a": [KING], "b": [edit]}, MODEL)
    lothair, passage = entity_id("Lothair II"), KING.passages[0].id
    with opened(federation, "a,b") as store:
        assert store.facts([mother.id]) == {}
        assert store.facts([mother.id], statuses=STATUSES)[mother.id].status == "retracted"
        assert [f.predicate for f in store.facts_of_entities([lothair], per_entity=1)[lothair]] == ["rules"]
        assert mother.id not in {f.id for f in store.facts_of_passages([passage], per_passage=9)[passage]}
    federation.close()


def test_an_entity_is_described_by_all_that_know_it(tmp_path: Path) -> None:
    claim = Claim("Kim", "works at", "the mill")
    mills = described(page("Kim mills.", claim), Kim="A miller.")
    sings = described(page("Kim sings, and Kim sings.", claim), Kim="A singer.")
    again = described(page("Kim grinds.", claim), Kim="A miller.")
    federation = spread(tmp_path, {"a": [mills], "b": [sings], "c": [again]}, MODEL)
    kim = entity_id("Kim")
    with opened(federation, "*") as store:
        found = store.entities([kim])[kim]
        assert (found.description, found.passages) == ("A miller. A singer.", 3)
        assert store.entities_by_names(["kim"]) == {"kim": (found,)}
    federation.close()


def test_names_are_alike_across_cells(tmp_path: Path) -> None:
    federation = spread(
        tmp_path,
        {
            "a": [page("They sang.", Claim("The Beatles", "sang", "songs"))],
            "b": [page("They met.", Claim("Beatles", "met", "Elvis"))],
        },
        MODEL,
    )
    asked = {entity_id("The Beatles"): naming.mirrored("The Beatles")}
    with opened(federation, "a,b") as store:
        [alike] = store.alike(asked, most=1)[entity_id("The Beatles")]
        assert alike.other.id == entity_id("Beatles")
        assert alike.cosine is not None
    with opened(federation, "a") as store:
        assert store.alike(asked, most=1) == {}
    federation.close()


def test_words_weigh_what_they_weigh_in_their_own_collection(tmp_path: Path) -> None:
    harbours = [page(f"The harbour of town {i} has boats.") for i in range(9)]
    lone = page("A harbour is a place for a rest.")
    others = [page(f"Hills and woods, number {i}.") for i in range(9)]
    parts = {"a": harbours, "b": [lone, *others]}
    federation = spread(tmp_path, parts, MODEL)
    with opened(federation, "a,b") as store:
        found = store.lexical("harbour", top_k=20)
        assert found[0].id == lone.passages[0].id  # rare where it is
        for name, told in parts.items():
            own = {p.id for c in told for p in c.passages}
            with opened(federation, name) as alone:
                assert alone.lexical("harbour", top_k=20) == tuple(s for s in found if s.id in own)
    federation.close()


def test_a_use_counts_in_every_collection_that_has_it(tmp_path: Path) -> None:
    federation = spread(tmp_path, {"a": [KING], "b": [SECRET]}, MODEL)
    shared = next(f.id for f in SECRET.facts if f.id in {g.id for g in KING.facts})
    with opened(federation, "a,b") as store:
        store.touch(facts=[shared], at=day("2024-06-01"))
        store.touch(facts=[shared], at=day("2024-05-01"))
        assert store.facts([shared])[shared].access_count == 2
        assert store.facts([shared])[shared].last_accessed == day("2024-06-01")
    federation.close()


def test_collections_of_different_models_are_told_apart(tmp_path: Path) -> None:
    federation = spread(tmp_path, {"a": [KING]}, MODEL)
    with opened(federation, "b") as store:
        store.write([QUEEN], model="another")
    with opened(federation, "a,b") as store:
        assert store.statistics().model == f"another and {MODEL}"
        assert store.version() > 0
    federation.close()
