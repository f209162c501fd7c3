"""Test entities with two names: merged, listed, undone, hidden, and independent of order."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import Filter, Merge, NewFact, Waylore
from waylore.config import GateConfig
from waylore.errors import ArgumentError
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES
from waylore.store.sqlite.file import open_file
from waylore.testing.world import OTHER_EMBEDDER, day

EMBEDDER = HashingEmbedder(256, quiet=True)
THEN = day("2024-05-01")
AGENCY = "The World Health Organization (WHO) is an agency of the United Nations."
LEADER = "Tedros Adhanom leads WHO since 2017."
SEAT = "The World Health Organization sits in Geneva."
QUESTION = "Who leads the World Health Organization?"
PUBLIC = Filter(labels=frozenset())


def open_memory(path: Path) -> Waylore:
    return Waylore.open(path, embedder=EMBEDDER, extractor=RuleExtractor(), clock=lambda: THEN)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with open_memory(tmp_path / "names.waylore") as memory:
        memory.add(LEADER, title="Tedros Adhanom")
        yield memory


def list_paths(
    memory: Waylore,
    question: str = QUESTION,
    where: Filter = Filter(),  # noqa: B008
    method: str = "chain",
) -> set[str]:
    recipe = replace(RECIPES[method], gate=GateConfig(min_confidence=0.0, min_graph_score=0.0))
    found = memory.search(question, where=where, method=recipe, record_use=False)
    return {str(hit.path) for hit in found.hits if hit.passage.text == LEADER}


def list_same(merges: tuple[Merge, ...]) -> list[tuple[str, str]]:
    return [(m.entity.name, m.other.name) for m in merges if m.is_same]


def test_path_goes_through_a_definition(memory: Waylore) -> None:
    assert not any("same_as" in path for path in list_paths(memory))
    memory.add(AGENCY, title="World Health Organization")
    assert list_paths(memory) == {"World Health Organization —same_as→ WHO ←leads— Tedros Adhanom → this passage"}


@pytest.mark.parametrize("method", ["chain", "neighbourhood", "guided"])
def test_graph_recipes_use_merges(memory: Waylore, method: str) -> None:
    memory.add(AGENCY, title="World Health Organization")
    [path] = list_paths(memory, method=method)
    assert path.startswith("World Health Organization —same_as→ WHO ")


def test_short_form_finds_the_full_name(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization")
    memory.add(SEAT, title="Geneva")
    found = memory.search("In which city does WHO sit?", record_use=False)
    paths = {hit.passage.text: str(hit.path) for hit in found.hits}
    assert paths[SEAT] == "WHO ←same_as— World Health Organization —sits in→ Geneva → this passage"
    assert paths[AGENCY] == "WHO → this passage"  # it mentions the short form itself


def test_merges_name_the_defining_passage(memory: Waylore) -> None:
    document = memory.add(AGENCY, title="World Health Organization")
    [merge] = memory.merges("WHO")
    assert list_same((merge,)) == [("WHO", "World Health Organization")]
    assert merge.fact.statement == AGENCY
    assert merge.fact.passage_id == memory.get(document).passages[0].id
    memory.forget(document)
    assert memory.merges("WHO") == ()


def test_merge_can_be_undone_and_restored(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization")
    for names in permutations(["WHO", "World Health Organization"]):
        distinct = memory.mark_distinct(*names)
        assert memory.merges("WHO") == ()
        assert not any("same_as" in path for path in list_paths(memory))
        memory.forget(distinct)
        assert list_same(memory.merges("WHO")) == [("WHO", "World Health Organization")]
        assert any("same_as" in path for path in list_paths(memory))


def test_merge_needs_access_to_its_definition(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization", labels=["staff"])
    memory.add(SEAT)
    assert any("same_as" in path for path in list_paths(memory))
    assert not any("same_as" in path for path in list_paths(memory, where=PUBLIC))
    assert list_same(memory.merges("World Health Organization", where=PUBLIC)) == []


def test_mark_distinct_needs_access_to_have_effect(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization")
    memory.mark_distinct("WHO", "World Health Organization", labels=["staff"])
    assert list_same(memory.merges("WHO")) == []
    assert list_same(memory.merges("WHO", where=PUBLIC)) == [("WHO", "World Health Organization")]


def test_same_as_fact_merges_two_names(memory: Waylore) -> None:
    [document] = memory.add_facts([("Tedros Adhanom", "same_as", "Dr Tedros")])
    assert list_same(memory.merges("Dr Tedros")) == [("Dr Tedros", "Tedros Adhanom")]
    memory.mark_distinct("Dr Tedros", "Tedros Adhanom")
    assert list_same(memory.merges("Dr Tedros")) == []
    memory.forget(document)
    assert list_same(memory.merges("Dr Tedros")) == []


def test_mark_distinct_undoes_a_merge_by_similarity(memory: Waylore) -> None:
    facts = [NewFact(name, "sang", "songs", subject_type="band") for name in ("Québec Band", "Quebec Band")]
    for fact in facts:
        memory.add_facts([fact])
    [merge] = memory.merges("Quebec Band")
    assert merge.fact.passage_id == ""
    distinct = memory.mark_distinct("Quebec Band", "Québec Band")
    assert memory.merges("Quebec Band") == ()
    memory.forget(distinct)
    assert memory.merges("Quebec Band") == (merge,)


def test_mark_distinct_refuses_one_name_twice(memory: Waylore) -> None:
    with pytest.raises(ArgumentError, match="'WHO' and 'who' are the same name"):
        memory.mark_distinct("WHO", "who")


def test_entities_of_different_types_are_not_merged(memory: Waylore) -> None:
    memory.add_facts([NewFact("Québec", "has", "cafés", subject_type="city")])
    memory.add_facts([NewFact("Quebec", "sang", "songs", subject_type="band")])
    assert memory.merges("Quebec") == ()


TEXTS = (
    AGENCY,
    LEADER,
    "WHO (World Health Organization) advises Peru.",
    "The Walking Horse Owners (WHO) met the United Nations.",
    "Peru, also known as Perú, joined the UN.",
    "The United Nations (UN) meets in New York.",
)


@settings(max_examples=25)
@given(st.permutations(range(len(TEXTS))), st.sets(st.integers(0, len(TEXTS) - 1)))
def test_merges_ignore_order_and_forgotten_documents(order: list[int], kept: set[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        with open_memory(Path(name) / "plain.waylore") as memory:
            for number in sorted(kept):
                memory.add(TEXTS[number])
            expected = describe(memory, Path(name))
        with open_memory(Path(name) / "reordered.waylore") as memory:
            ids = {number: memory.add(TEXTS[number]) for number in order}
            if others := [id_ for number, id_ in ids.items() if number not in kept]:
                memory.forget(others)
            assert describe(memory, Path(name)) == expected


def describe(memory: Waylore, folder: Path) -> list[str]:
    memory.export(folder / "export.jsonl")
    exported = (folder / "export.jsonl").read_text("utf-8").splitlines()
    names = ("WHO", "World Health Organization", "UN", "United Nations", "Peru", "Perú", "Walking Horse Owners")
    return exported + [str(merge) for name in names for merge in memory.merges(name)]


def test_old_file_gets_name_keys_when_it_is_opened(tmp_path: Path) -> None:
    with open_memory(tmp_path / "old.waylore") as memory:
        memory.add_facts([("Québec Band", "sang", "songs"), ("Quebec Band", "sang", "hymns")])
        expected = memory.merges("Quebec Band")
    assert expected
    with open_file(str(tmp_path / "old.waylore")) as db:
        db.execute("DROP TABLE entity_keys; DELETE FROM migrations WHERE name = 'entity_keys'")
    with open_memory(tmp_path / "old.waylore") as memory:
        assert memory.merges("Quebec Band") == expected
        other = expected[0].other.name
        memory.forget(*memory.add_facts([(other, "sang", "psalms")]))
        assert memory.merges("Quebec Band") == expected


def test_reembed_changes_merges_by_similarity(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a.waylore") as memory:
        memory.add_facts([("Québec Band", "sang", "songs"), ("Quebec Band", "sang", "hymns")])
    Waylore.reembed(tmp_path / "a.waylore", embedder=OTHER_EMBEDDER)
    with Waylore.open(tmp_path / "a.waylore", embedder=OTHER_EMBEDDER) as memory:
        assert memory.merges("Quebec Band")
