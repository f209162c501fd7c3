"""Documents in three cells, in files or on servers, give the same answers as in one file.

Some differences are expected. BM25 scores are computed in each collection. The description of an entity of
several collections may begin with another sentence. If a fact has several assertions, a limit may leave out
another fact, because a store cuts by the strongest assertion before it returns the most trusted one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from cells.cells import create_catalogue, create_federation, open_stores
from databases import make_name
from retrieval.walking import DrawnPage, graphs, index_pages
from retrieval.walking import callers as seeing
from retrieval.worlds import (
    DAYS,
    EMBEDDER,
    ENGINE,
    NAMES,
    PREDICATES,
    Case,
    DrawnDocument,
    cases,
    claims,
    collect_text,
    documents,
    filters,
    find_sources,
    index_world,
    is_seen,
    list_ids,
    promise,
    questions,
    worlds,
)
from threads import share_federation
from waylore import Waylore
from waylore import names as naming
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore
from waylore.retrieval.order import KEPT_SHARE
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import (
    KING,
    MODEL,
    QUEEN,
    SECRET,
    WORLD,
    day,
    describe_entities,
    list_vectors,
    page,
    sort_parts,
)
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.knowledge import LIVE, STATUSES, Entity, IndexedDocument, NewFact
from waylore.types.search import Filter, Ranking, SearchResult

PARTS = ("a", "b", "c")
MANY = 1_000
splits = st.lists(st.sampled_from(PARTS), min_size=8, max_size=8)
callers = st.builds(Filter, labels=st.sampled_from([None, None, frozenset(), frozenset({"red"})]))


def divide(told: Sequence[IndexedDocument], split: Sequence[str]) -> dict[str, list[IndexedDocument]]:
    """Return documents by the collection of each."""
    return {part: [c for c, where in zip(told, split, strict=False) if where == part] for part in PARTS}


class Whole(SqliteStore):
    """One store of all documents that scores words as its parts do."""

    parts: Sequence[Store] = ()

    def lexical(self, query: str, *, top_k: int, where: Filter = Filter()) -> Ranking:  # noqa: B008
        found = [s for part in self.parts for s in part.lexical(query, top_k=MANY, where=where)]
        return tuple(sorted(found, key=lambda s: (-s.score, s.id))[:top_k])

    def word_scores(self, query: str, passages: Sequence[str], *, where: Filter = Filter()) -> Mapping[str, float]:  # noqa: B008
        found = [part.word_scores(query, passages, where=where) for part in self.parts]
        return {id_: score for scores in found for id_, score in scores.items()}


@dataclass
class Grounds:
    """Three cells and a file that all examples share. Each example has collections of its own."""

    federation: Federation
    folder: Path

    @contextmanager
    def open_both(
        self, told: Sequence[IndexedDocument], split: Sequence[str], model: str | None = EMBEDDER.name
    ) -> Iterator[tuple[FederatedStore, Whole]]:
        """Open the same documents in three cells and in one store."""
        parts = {make_name(part): of_it for part, of_it in divide(told, split).items()}
        with ExitStack() as stack:
            whole = stack.enter_context(closing(Whole(self.folder / "whole.waylore", make_name("whole"))))
            whole.write(told, author=OWNER, model=model)
            whole.parts = [stack.enter_context(open_stores(self.federation, name)) for name in parts]
            for store, of_it in zip(whole.parts, parts.values(), strict=True):
                store.write(of_it, author=OWNER, model=model)
            yield stack.enter_context(open_stores(self.federation, ",".join(parts))), whole


@pytest.fixture(scope="module", params=["files", "servers"])
def grounds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    folder = tmp_path_factory.mktemp("grounds")
    token = ENGINE.set("cells")
    if request.param == "files":
        with share_federation(Federation(create_catalogue(folder), open_cell)) as federation:
            yield Grounds(federation, folder)
    else:
        yield Grounds(request.getfixturevalue("three_cells"), folder)
    ENGINE.reset(token)


# -- every method --------------------------------------------------------------------------------------


# Documents with few facts that contradict each other.
disputes = st.lists(
    st.builds(
        lambda told, disputed: replace(told, facts=tuple(disputed)),
        documents,
        st.lists(claims.map(lambda c: replace(c, subject="Ada", predicate="knows", object=c.object[:1])), max_size=4),
    ),
    min_size=3,
    max_size=8,
).map(tuple)


@promise(
    60,
    worlds | disputes,
    splits,
    filters,
    st.sampled_from([None, *DAYS]),
    st.sampled_from([LIVE, STATUSES, ("staged",)]),
)
def test_facts_equal_those_of_one_store(
    grounds: Grounds,
    world: tuple[DrawnDocument, ...],
    split: list[str],
    where: Filter,
    as_of: Any,
    statuses: Any,
) -> None:
    told = index_world(world)
    entities = sorted({e.id for c in told for e in c.entities})
    passages = [p.id for c in told for p in c.passages]
    facts = sorted({f.id for c in told for f in c.facts})
    held = {"statuses": statuses, "as_of": as_of, "where": where}
    with grounds.open_both(told, split) as (several, whole):
        assert several.facts(facts, **held) == whole.facts(facts, **held)
        for predicates in ((), PREDICATES[:1]):
            every = [
                s.facts_of_entities(entities, per_entity=MANY, predicates=predicates, **held) for s in (several, whole)
            ]
            assert every[0] == every[1]
            capped = several.facts_of_entities(entities, per_entity=2, predicates=predicates, **held)
            _check_capped(capped, every[1], 2)
        for most in (MANY, 2, 1):
            limits: dict[str, Any] = {"predicates": PREDICATES, "newest": most, "until": as_of, "where": where}
            newest = [s.assertions_of_entities(entities, **limits) for s in (several, whole)]
            assert newest[0] == newest[1]
            stated = [s.facts_of_passages(passages, per_passage=most, **held) for s in (several, whole)]
            assert stated[0] == stated[1]


def _check_capped(capped: Mapping[str, Any], every: Mapping[str, Any], most: int) -> None:
    """Check that `capped` has `most` facts of each id, in the order and form of `every`."""
    assert {id_: len(facts) for id_, facts in capped.items()} == {
        id_: min(len(facts), most) for id_, facts in every.items()
    }
    for id_, facts in capped.items():
        assert list(facts) == [f for f in every[id_] if f in facts]


@promise(40, worlds, splits, filters, questions)
def test_searches_and_lists_equal_those_of_one_store(
    grounds: Grounds, world: tuple[DrawnDocument, ...], split: list[str], where: Filter, question: str
) -> None:
    told = index_world(world)
    asked = EMBEDDER.embed_query(question)
    passages, own = [p.id for c in told for p in c.passages], [c.document.id for c in told]
    entities = sorted({e.id for c in told for e in c.entities})
    with grounds.open_both(told, split) as (several, whole):
        for most in (MANY, 2):
            verbs: dict[str, dict[str, Any]] = {
                "dense": {"vector": asked, "top_k": most},
                "nearest_entities": {"vector": asked, "top_k": most},
                "lexical": {"query": question, "top_k": most},
                "passages_of_entities": {"entities": entities, "per_entity": most},
                "entities_of_passages": {"passages": passages, "per_passage": most},
                "list_documents": {"limit": most},
                "documents": {"ids": own},
                "get_indexed_documents": {"ids": own},
                "passages": {"ids": passages},
                "cosines": {"vector": asked, "passages": passages},
                "word_scores": {"query": question, "passages": passages},
                "count_terms": {"query": question},
            }
            for verb, options in verbs.items():
                answers = [getattr(s, verb)(**options, where=where) for s in (several, whole)]
                assert answers[0] == answers[1], verb
        first = several.list_documents(limit=2, where=where)
        if first:
            after = (first[-1].uri, first[-1].id)
            assert several.list_documents(after=after, where=where) == whole.list_documents(after=after, where=where)
        assert list(several.export()) == list(whole.export())
        assert list_vectors(several.export()) == list_vectors(whole.export())
        assert several.digests(own) == whole.digests(own)


@promise(40, worlds, splits, filters)
def test_entities_of_several_collections_are_merged(
    grounds: Grounds, world: tuple[DrawnDocument, ...], split: list[str], where: Filter
) -> None:
    told = index_world(world)
    every = sorted({e.id for c in told for e in c.entities})
    names = [*NAMES, "hush1x 0", "Hush0x"]
    keys = [key for name in NAMES for key in naming.list_matching_keys(name)]
    asking = dict.fromkeys(every, keys)
    with grounds.open_both(told, split) as (several, whole):
        answers = [s.entities(every, where=where, vectors=True) for s in (several, whole)]
        _check_same_descriptions(*answers)
        listed = [s.list_entities(limit=MANY, where=where) for s in (several, whole)]
        _check_same_descriptions(*({entity.id: entity for entity in some} for some in listed))
        half = [
            s.list_entities(after=every[len(every) // 2] if every else "", limit=2, where=where)
            for s in (several, whole)
        ]
        assert [e.id for e in half[0]] == [e.id for e in half[1]]
        for beginning, limit in (("", 3), ("", MANY), ("a", 2)):
            matches = [s.find_passages(beginning, limit=limit, where=where) for s in (several, whole)]
            assert matches[0] == matches[1]
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
            alike = [s.find_similar_entities(asking, max_per_key=most, where=where) for s in (several, whole)]
            told_alike = [
                {id_: [(a.entity.id, a.other.id, a.key, a.cosine) for a in found] for id_, found in each.items()}
                for each in alike
            ]
            assert told_alike[0] == told_alike[1]
        assert several.find_entities_by_key(keys, max_per_key=MANY, where=where) == whole.find_entities_by_key(
            keys, max_per_key=MANY, where=where
        )


@promise(40, graphs, splits, seeing, st.sampled_from(["", "depends on"]), st.integers(1, 3))
def test_graph_questions_are_answered_as_by_one_store(
    grounds: Grounds, drawn: tuple[DrawnPage, ...], split: list[str], where: Filter, asked: str, hops: int
) -> None:
    with grounds.open_both(index_pages(drawn), split, model=None) as stores:
        answers = [_ask_graph(Waylore(store, cache=None), where, asked, hops) for store in stores]
    assert answers[0] == answers[1]


def _ask_graph(memory: Waylore, where: Filter, asked: str, hops: int) -> list[object]:
    """Return the ids and the extents of answers about the first names."""
    found: list[object] = []
    for name, other in pairwise(NAMES[:4]):
        related = memory.related(name, predicates=asked or None, hops=hops, where=where)
        path = memory.connect(name, other, max_hops=hops, where=where)
        listed = memory.list_entities(object=name, predicate=asked, where=where)
        found += [
            [fact.assertion.fact.id for fact in related],
            related.extent,
            [[step.assertion.fact.id for step in each.steps] for each in path.paths],
            [{entity.id for entity in listed}, listed.extent],
        ]
    return found


def _check_same_descriptions(several: Mapping[str, Entity], whole: Mapping[str, Entity]) -> None:
    assert several.keys() == whole.keys()
    for one, other in ((several[id_], whole[id_]) for id_ in several):
        assert {one.name, *one.aliases} == {other.name, *other.aliases}
        assert sorted(one.description.split()) == sorted(other.description.split())
        assert bool(one.type) == bool(other.type)
        assert one.type.replace("kind", "told") in one.description


# -- every recipe --------------------------------------------------------------------------------------


def drop_descriptions(told: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Return documents without descriptions of entities, so that their order does not matter."""
    return [replace(c, entities=tuple(replace(e, type="", description="") for e in c.entities)) for c in told]


def sort_aliases(found: SearchResult) -> SearchResult:
    """Return a result whose entities have sorted aliases."""
    entities = tuple(replace(e, aliases=tuple(sorted(e.aliases))) for e in found.entities)
    return replace(found, entities=entities)


@promise(80, cases(where=callers), st.none() | disputes, splits)
def test_every_recipe_answers_as_one_store(
    grounds: Grounds, case: Case, disputed: tuple[DrawnDocument, ...] | None, split: list[str]
) -> None:
    walk = replace(case.recipe.walk, facts_per_entity=MANY)
    linking = replace(case.recipe.linking, facts_per_entity=MANY)
    recipe = replace(case.recipe, walk=walk, linking=linking)
    case = replace(case, recipe=recipe, world=disputed or case.world)
    with grounds.open_both(drop_descriptions(index_world(case.world)), split) as (several, whole):
        assert sort_aliases(case.ask(several)) == sort_aliases(case.ask(whole))


@promise(40, cases(), splits)
def test_no_recipe_returns_invisible_documents(grounds: Grounds, case: Case, split: list[str]) -> None:
    with grounds.open_both(index_world(case.world), split) as (several, _):
        found, hybrid = case.ask(several), case.hybrid(several)
    seen = {number for number, told in enumerate(case.world) if is_seen(told, case.where)}
    assert {number for number, _ in find_sources(collect_text(found))} <= seen
    is_literal = case.recipe.merge.max_graph_passages is not None
    if case.recipe.has_hybrid:
        kept = list_ids(hybrid)[: case.recipe.top_k if is_literal else case.recipe.top_k // KEPT_SHARE]
        assert set(kept) <= set(list_ids(found))
    assert found.missing in ((), ("vector: no embedder was given, so only words were searched",))


@promise(30, cases(where=callers), splits)
def test_hidden_documents_do_not_change_results(grounds: Grounds, case: Case, split: list[str]) -> None:
    """Scores and counts too are those of cells that never had what is hidden."""
    told = index_world(case.world)
    pairs = [(c, part) for c, t, part in zip(told, case.world, split, strict=False) if is_seen(t, case.where)]
    assume(len(pairs) < len(told))
    seen, parts = [c for c, _ in pairs], [part for _, part in pairs]
    with grounds.open_both(told, split) as (several, _), grounds.open_both(seen, parts) as (alone, _):
        assert case.ask(several) == case.ask(alone)


# -- examples ------------------------------------------------------------------------------------------


@pytest.fixture
def three_parts(tmp_path: Path) -> Iterator[FederatedStore]:
    """Open the world of the conformance suite with one document in each cell."""
    federation = create_federation(tmp_path, {"a": [KING], "b": [QUEEN], "c": [SECRET]}, MODEL)
    with open_stores(federation, "a,b,c") as store:
        yield store
    federation.close()


def test_export_has_every_document_once(three_parts: FederatedStore) -> None:
    assert list(three_parts.export()) == sort_parts(iter(WORLD))
    known = three_parts.statistics()
    assert (known.documents, known.passages, known.model) == (3, 3, MODEL)


def test_document_of_two_collections_is_returned_once(tmp_path: Path) -> None:
    federation = create_federation(tmp_path, {"a": [KING, QUEEN], "b": [KING]}, MODEL)
    with open_stores(federation, "a,b") as store:
        assert list(store.export()) == sort_parts(iter([KING, QUEEN]))
        assert len(store.lexical("Lothair", top_k=9)) == 2
        assert len(store.list_documents()) == 2
    federation.close()


def test_trusted_assertion_in_another_cell_retracts_fact(tmp_path: Path) -> None:
    mother = next(f for f in KING.facts if f.predicate == "mother")
    retracted = NewFact("Lothair II", "mother", "Ermengarde of Tours", status="retracted", source="user_edit")
    edit = page("Not so.", retracted, source="user_edit")
    federation = create_federation(tmp_path, {"a": [KING], "b": [edit]}, MODEL)
    lothair, passage = entity_id("Lothair II"), KING.passages[0].id
    with open_stores(federation, "a,b") as store:
        assert store.facts([mother.id]) == {}
        assert store.facts([mother.id], statuses=STATUSES)[mother.id].status == "retracted"
        assert [f.predicate for f in store.facts_of_entities([lothair], per_entity=1)[lothair]] == ["rules"]
        assert mother.id not in {f.id for f in store.facts_of_passages([passage], per_passage=9)[passage]}
    federation.close()


def test_entity_has_descriptions_of_all_collections(tmp_path: Path) -> None:
    claim = NewFact("Kim", "works at", "the mill")
    mills = describe_entities(page("Kim mills.", claim), Kim="A miller.")
    sings = describe_entities(page("Kim sings, and Kim sings.", claim), Kim="A singer.")
    again = describe_entities(page("Kim grinds.", claim), Kim="A miller.")
    federation = create_federation(tmp_path, {"a": [mills], "b": [sings], "c": [again]}, MODEL)
    kim = entity_id("Kim")
    with open_stores(federation, "*") as store:
        found = store.entities([kim])[kim]
        assert (found.description, found.passages) == ("A miller. A singer.", 3)
        assert store.entities_by_names(["kim"]) == {"kim": (found,)}
    federation.close()


def test_similar_names_are_found_across_cells(tmp_path: Path) -> None:
    federation = create_federation(
        tmp_path,
        {
            "a": [page("They sang.", NewFact("The Beatles", "sang", "songs"))],
            "b": [page("They met.", NewFact("Beatles", "met", "Elvis"))],
        },
        MODEL,
    )
    asked = {entity_id("The Beatles"): naming.list_matching_keys("The Beatles")}
    with open_stores(federation, "a,b") as store:
        [alike] = store.find_similar_entities(asked, max_per_key=1)[entity_id("The Beatles")]
        assert alike.other.id == entity_id("Beatles")
        assert alike.cosine is not None
    with open_stores(federation, "a") as store:
        assert store.find_similar_entities(asked, max_per_key=1) == {}
    federation.close()


def test_bm25_uses_statistics_of_own_collection(tmp_path: Path) -> None:
    harbours = [page(f"The harbour of town {i} has boats.") for i in range(9)]
    lone = page("A harbour is a place for a rest.")
    others = [page(f"Hills and woods, number {i}.") for i in range(9)]
    parts = {"a": harbours, "b": [lone, *others]}
    federation = create_federation(tmp_path, parts, MODEL)
    with open_stores(federation, "a,b") as store:
        found = store.lexical("harbour", top_k=20)
        assert found[0].id == lone.passages[0].id  # the word is rare in its collection
        for name, told in parts.items():
            own = {p.id for c in told for p in c.passages}
            with open_stores(federation, name) as alone:
                assert alone.lexical("harbour", top_k=20) == tuple(s for s in found if s.id in own)
    federation.close()


def test_use_is_counted_in_every_collection_with_the_fact(tmp_path: Path) -> None:
    federation = create_federation(tmp_path, {"a": [KING], "b": [SECRET]}, MODEL)
    shared = next(f.id for f in SECRET.facts if f.id in {g.id for g in KING.facts})
    with open_stores(federation, "a,b") as store:
        store.count_uses(facts=[shared], at=day("2024-06-01"))
        store.count_uses(facts=[shared], at=day("2024-05-01"))
        assert store.facts([shared])[shared].access_count == 2
        assert store.facts([shared])[shared].last_accessed == day("2024-06-01")
    federation.close()


def test_statistics_name_different_models(tmp_path: Path) -> None:
    federation = create_federation(tmp_path, {"a": [KING]}, MODEL)
    with open_stores(federation, "b") as store:
        store.write([QUEEN], author=OWNER, model="another")
    with open_stores(federation, "a,b") as store:
        assert store.statistics().model == f"another and {MODEL}"
        assert store.version() > 0
    federation.close()
