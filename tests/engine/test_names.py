"""One thing under two names, from the text to the path: merged, listed, undone, hidden, in any order."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import Claim, Filter, Merge, Waylore
from waylore.config import Gate
from waylore.errors import QueryError
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES
from waylore.testing.suite import ANOTHER, day

EMBEDDER = HashingEmbedder(256, quiet=True)
THEN = day("2024-05-01")
AGENCY = "The World Health Organization (WHO) is an agency of the United Nations."
LEADER = "Tedros Adhanom leads WHO since 2017."
QUESTION = "Who leads the World Health Organization?"
PUBLIC = Filter(labels=frozenset())


def opened(path: Path) -> Waylore:
    return Waylore.open(path, embedder=EMBEDDER, extractor=RuleExtractor(), clock=lambda: THEN)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with opened(tmp_path / "names.waylore") as memory:
        memory.add(LEADER, title="Tedros Adhanom")
        yield memory


def paths(
    memory: Waylore, question: str = QUESTION, where: Filter = Filter(), method: str = "chain"
) -> set[str]:  # noqa: B008
    recipe = replace(RECIPES[method], gate=Gate(min_confidence=0.0, min_graph_score=0.0))
    found = memory.search(question, where=where, recipe=recipe, count_use=False)
    return {str(hit.path) for hit in found.hits if hit.passage.text == LEADER}


def same(merges: tuple[Merge, ...]) -> list[tuple[str, str]]:
    return [(m.entity.name, m.other.name) for m in merges if m.is_same]


def test_a_definition_in_one_document_leads_to_another_and_the_path_shows_it(memory: Waylore) -> None:
    assert not any("same_as" in path for path in paths(memory))
    memory.add(AGENCY, title="World Health Organization")
    assert paths(memory) == {"World Health Organization —same_as→ WHO → this passage"}


@pytest.mark.parametrize("method", ["chain", "neighbourhood", "guided"])
def test_every_recipe_that_starts_at_names_goes_through_the_merge(memory: Waylore, method: str) -> None:
    memory.add(AGENCY, title="World Health Organization")
    [path] = paths(memory, method=method)
    assert path.startswith("World Health Organization —same_as→ WHO ")


def test_a_question_that_says_the_short_form_finds_the_full_one(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization")
    found = memory.search("Of which organisation is WHO an agency?", count_use=False)
    told = {hit.passage.text: str(hit.path) for hit in found.hits}
    assert told[AGENCY] == "WHO ←same_as— World Health Organization → this passage"


def test_a_merge_is_listed_with_the_passage_that_defines_it(memory: Waylore) -> None:
    document = memory.add(AGENCY, title="World Health Organization")
    [merge] = memory.merges("WHO")
    assert same((merge,)) == [("WHO", "World Health Organization")]
    assert merge.fact.statement == AGENCY
    assert merge.fact.passage_id == memory.get(document).passages[0].id
    memory.forget(document)
    assert memory.merges("WHO") == ()


def test_a_merge_is_undone_and_brought_back(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization")
    for names in permutations(["WHO", "World Health Organization"]):
        parted = memory.part(*names)
        assert memory.merges("WHO") == ()
        assert not any("same_as" in path for path in paths(memory))
        memory.forget(parted)
        assert same(memory.merges("WHO")) == [("WHO", "World Health Organization")]
        assert any("same_as" in path for path in paths(memory))


def test_who_may_not_see_the_definition_does_not_get_the_merge(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization", labels=["staff"])
    memory.add("The World Health Organization sits in Geneva.")
    assert any("same_as" in path for path in paths(memory))
    assert not any("same_as" in path for path in paths(memory, where=PUBLIC))
    assert same(memory.merges("World Health Organization", where=PUBLIC)) == []


def test_a_retraction_parts_only_for_those_who_may_see_it(memory: Waylore) -> None:
    memory.add(AGENCY, title="World Health Organization")
    memory.part("WHO", "World Health Organization", labels=["staff"])
    assert same(memory.merges("WHO")) == []
    assert same(memory.merges("WHO", where=PUBLIC)) == [("WHO", "World Health Organization")]


def test_a_merge_by_hand(memory: Waylore) -> None:
    [document] = memory.add_facts([("Tedros Adhanom", "same_as", "Dr Tedros")])
    assert same(memory.merges("Dr Tedros")) == [("Dr Tedros", "Tedros Adhanom")]
    memory.part("Dr Tedros", "Tedros Adhanom")
    assert same(memory.merges("Dr Tedros")) == []
    memory.forget(document)
    assert same(memory.merges("Dr Tedros")) == []


def test_a_likeness_is_undone_too(memory: Waylore) -> None:
    claims = [Claim(name, "sang", "songs", subject_type="band") for name in ("Québec Band", "Quebec Band")]
    for claim in claims:
        memory.add_facts([claim])
    [merge] = memory.merges("Quebec Band")
    assert merge.fact.passage_id == ""
    parted = memory.part("Quebec Band", "Québec Band")
    assert memory.merges("Quebec Band") == ()
    memory.forget(parted)
    assert memory.merges("Quebec Band") == (merge,)


def test_one_name_cannot_be_parted_from_itself(memory: Waylore) -> None:
    with pytest.raises(QueryError, match="one name"):
        memory.part("WHO", "who")


def test_types_that_differ_keep_names_apart(memory: Waylore) -> None:
    memory.add_facts([Claim("Québec", "has", "cafés", subject_type="city")])
    memory.add_facts([Claim("Quebec", "sang", "songs", subject_type="band")])
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
def test_neither_order_nor_what_was_forgotten_matters(order: list[int], kept: set[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        with opened(Path(name) / "plain.waylore") as memory:
            for number in sorted(kept):
                memory.add(TEXTS[number])
            expected = told(memory, Path(name))
        with opened(Path(name) / "turned.waylore") as memory:
            ids = {number: memory.add(TEXTS[number]) for number in order}
            memory.forget(*(id_ for number, id_ in ids.items() if number not in kept))
            assert told(memory, Path(name)) == expected


def told(memory: Waylore, folder: Path) -> list[str]:
    memory.export(folder / "export.jsonl")
    exported = (folder / "export.jsonl").read_text("utf-8").splitlines()
    names = ("WHO", "World Health Organization", "UN", "United Nations", "Peru", "Perú", "Walking Horse Owners")
    return exported + [str(merge) for name in names for merge in memory.merges(name)]


def test_a_file_from_before_the_keys_gets_them_when_it_is_opened(tmp_path: Path) -> None:
    with opened(tmp_path / "old.waylore") as memory:
        memory.add_facts([("Québec Band", "sang", "songs"), ("Quebec Band", "sang", "hymns")])
        expected = memory.merges("Quebec Band")
    assert expected
    with apsw.Connection(str(tmp_path / "old.waylore")) as db:
        db.execute("DROP TABLE entity_keys; DELETE FROM migrations WHERE name = 'entity_keys'")
    with opened(tmp_path / "old.waylore") as memory:
        assert memory.merges("Quebec Band") == expected
        other = expected[0].other.name
        memory.forget(*memory.add_facts([(other, "sang", "psalms")]))
        assert memory.merges("Quebec Band") == expected


def test_another_model_judges_by_its_own_vectors(tmp_path: Path) -> None:
    with opened(tmp_path / "a.waylore") as memory:
        memory.add_facts([("Québec Band", "sang", "songs"), ("Quebec Band", "sang", "hymns")])
    Waylore.reembed(tmp_path / "a.waylore", embedder=ANOTHER)
    with Waylore.open(tmp_path / "a.waylore", embedder=ANOTHER) as memory:
        assert memory.merges("Quebec Band")
