"""Answers of a model: what has the right shape is read part by part; what the passage has not is doubted."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.protocols import Extraction
from waylore.providers.extractors.answers import Malformed, extraction, parsed
from waylore.types.knowledge import Passage

TEXT = (
    "Inception is a 2010 film by Christopher Nolan for Warner Bros. (WB). It stars Leonardo DiCaprio. "
    "Nolan led the project from May 2009 until 2010."
)


def fact(
    subject: Any = "Inception", predicate: Any = "stars", object_: Any = "Leonardo DiCaprio", **more: Any
) -> Any:
    return {"subject": subject, "predicate": predicate, "object": object_, **more}


def read(
    *facts: Any, entities: list[Any] | None = None, text: str = TEXT, title: str = "Inception"
) -> tuple[Extraction, dict[str, int]]:
    content = json.dumps({"entities": entities or [], "facts": list(facts)})
    said, dropped = extraction(parsed(content), Passage("p", "d", text, title))
    return said, dict(dropped)


def triples(said: Extraction) -> set[tuple[str, str, str]]:
    return {(c.subject, c.predicate, c.object) for c in said.claims}


def test_a_good_answer_is_read_whole() -> None:
    entity = {"name": "Warner Bros.", "type": "Organisation", "description": "A studio", "aliases": ["WB"]}
    stated = fact(
        statement="Inception stars Leonardo DiCaprio.", weight=8, confidence=0.75, object_is_value=False
    )
    said, dropped = read(stated, fact("Inception", "was made for", "WB"), entities=[entity])
    first, second = said.claims
    assert (first.statement, first.weight, first.confidence) == (
        "Inception stars Leonardo DiCaprio.",
        8.0,
        0.75,
    )
    assert (second.object, second.object_type) == ("Warner Bros.", "organisation")
    assert said.names == {"Inception": "", "Warner Bros.": "organisation", "Leonardo DiCaprio": ""}
    assert said.descriptions == {"Warner Bros.": "A studio"}
    assert said.aliases == {"Warner Bros.": ("WB",)}
    assert dropped == {}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "no JSON object"),
        ("I am sorry.", "no JSON object"),
        ('{"entities": [', "not valid JSON"),
        ("{" * 100_000, "not valid JSON"),
        ('{"a":' * 100_000, "not valid JSON"),
        ("{}", "two lists"),
        ('{"entities": [], "facts": {}}', "two lists"),
        ('{"entities": [], "facts": ["Inception stars Leonardo"]}', "no fact is an object"),
        ('{"entities": [], "facts": [{"subject": "Inception"}]}', "no fact is an object"),
    ],
)
def test_what_has_not_the_shape_is_malformed_and_says_why(content: str, error: str) -> None:
    with pytest.raises(Malformed, match=error):
        parsed(content)


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "<think>{{hm}}</think>\n{}", "Here it is: {} I hope it helps {{}}"]
)
def test_fences_thoughts_and_pleasantries_around_it_do_no_harm(around: str) -> None:
    answer = json.dumps({"entities": [], "facts": [fact()]})
    assert parsed(around.replace("{{", "<<").replace("{}", answer).replace("<<", "{{")).facts == [fact()]


@given(cut=st.integers(0, 1000))
def test_an_answer_that_was_cut_off_is_read_as_far_as_it_goes(cut: int) -> None:
    facts = [fact(predicate=f"says {{{i}}}") for i in range(8)]
    whole = json.dumps({"entities": [], "facts": facts})
    cut = min(cut, len(whole))
    complete = sum(whole[:cut].count(json.dumps(one)) for one in facts)
    if not complete:
        with pytest.raises(Malformed):
            parsed(whole[:cut])
    else:
        assert parsed(whole[:cut]).facts == facts[:complete]


def test_articles_are_no_part_of_a_name() -> None:
    said, _ = read(fact("the film", "is by", "the Christopher Nolan"), entities=[{"name": "the film"}])
    assert triples(said) == {("film", "is by", "Christopher Nolan")}
    assert set(said.names) == {"Inception", "film", "Christopher Nolan"}


def test_a_passage_that_says_nothing_is_a_good_answer() -> None:
    said, dropped = read(title="")
    assert said == Extraction()
    assert dropped == {}


@pytest.mark.parametrize(
    "bad",
    [
        "a sentence",
        fact(""),
        fact(None),
        fact(predicate=["stars"]),
        fact("x" * 500),
        fact("Inception", "is", "inception"),
        fact("It"),
        fact(valid_from="2011", valid_to="2009"),
    ],
)
def test_an_invalid_fact_is_dropped_and_the_others_kept(bad: Any) -> None:
    said, dropped = read(fact(), bad)
    assert triples(said) == {("Inception", "stars", "Leonardo DiCaprio")}
    assert dropped == {"invalid": 1}


@pytest.mark.parametrize(
    ("weight", "confidence", "expected"),
    [
        (0, 2, (1.0, 1.0)),
        (99, -1, (10.0, 0.0)),
        ("7", "0.5", (7.0, 0.5)),
        ("high", None, (5.0, 1.0)),
        ([], {}, (5.0, 1.0)),
    ],
)
def test_numbers_are_brought_into_their_bounds(
    weight: Any, confidence: Any, expected: tuple[float, float]
) -> None:
    said, _ = read(fact(weight=weight, confidence=confidence))
    assert (said.claims[0].weight, said.claims[0].confidence) == expected


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "1" * 400])
def test_numbers_that_json_should_not_hold_do_no_harm(number: str) -> None:
    content = '{"entities": [], "facts": [{"subject": "Inception", "predicate": "stars", "object": "Nolan", '
    said, _ = extraction(parsed(f'{content}"weight": {number}}}]}}'), Passage("p", "d", TEXT))
    assert 1 <= said.claims[0].weight <= 10


@pytest.mark.parametrize(
    ("written", "begin", "end"),
    [
        ("2009", datetime(2009, 1, 1, tzinfo=UTC), datetime(2010, 1, 1, tzinfo=UTC)),
        ("2009-12", datetime(2009, 12, 1, tzinfo=UTC), datetime(2010, 1, 1, tzinfo=UTC)),
        ("2009-05-31", datetime(2009, 5, 31, tzinfo=UTC), datetime(2009, 6, 1, tzinfo=UTC)),
        ("2009-05-31T12:00:00Z", datetime(2009, 5, 31, tzinfo=UTC), datetime(2009, 6, 1, tzinfo=UTC)),
        ("9999", datetime(9999, 1, 1, tzinfo=UTC), None),
        ("2009-13", None, None),
        ("0000", None, None),
        ("in May", None, None),
        (None, None, None),
    ],
)
def test_times_are_read_as_they_are_written(written: Any, begin: datetime | None, end: datetime | None) -> None:
    said, _ = read(fact(valid_from=written), fact(object_="Nolan", valid_to=written))
    assert [c.valid_from for c in said.claims] == [begin, None]
    assert [c.valid_to for c in said.claims] == [None, end]


@pytest.mark.parametrize("object_", ["Cillian Murphy", "Leonardo DiCaprio"])
def test_a_fact_about_something_that_the_passage_does_not_have_is_dropped(object_: str) -> None:
    said, dropped = read(fact(), fact("Oppenheimer", "stars", object_))
    assert triples(said) == {("Inception", "stars", "Leonardo DiCaprio")}
    assert dropped == {"not in the passage": 1}


def test_an_object_that_the_passage_does_not_have_is_a_doubted_value_and_joins_nothing() -> None:
    said, _ = read(fact(object_="United Kingdom", confidence=0.8), fact(confidence=0.8))
    assert [(c.confidence, c.is_value) for c in said.claims] == [(0.4, True), (0.8, False)]
    assert "United Kingdom" not in said.names


def test_titles_and_headings_count_as_the_passage() -> None:
    passage = Passage("p", "d", "It was born in 1970.", "Mara", headings=("Early life of Kofi",))
    answer = parsed(json.dumps({"entities": [], "facts": [fact("Mara", "knows", "Kofi", confidence=1)]}))
    said, _ = extraction(answer, passage)
    assert [(c.subject, c.object, c.confidence) for c in said.claims] == [("Mara", "Kofi", 1.0)]


def test_inflected_names_are_found() -> None:
    said, _ = read(fact("Мара", "живёт в", "Москва", confidence=1), text="Мара живёт в Москве.", title="")
    assert [c.confidence for c in said.claims] == [1.0]


def test_chinese_text_gives_chinese_entities() -> None:
    named = {"name": "Beijing", "type": "place", "description": "首都", "aliases": ["北京"]}
    said, dropped = read(
        fact("Beijing", "是首都", "中国"),
        fact("北京", "is in", "North China Plain"),
        fact("Forbidden City", "is in", "Peking"),
        entities=[named, {"name": "Forbidden City", "type": "place"}],
        text="北京是中国的首都，位于华北平原。",
        title="北京",
    )
    assert triples(said) == {("北京", "是首都", "中国")}
    assert set(said.names) == {"北京", "中国"}
    assert said.aliases == {}
    assert dropped == {"translated": 1, "not in the passage": 1}


def test_a_foreign_name_that_the_passage_has_is_kept() -> None:
    said, _ = read(fact("张伟", "使用", "Waylore"), text="张伟使用 Waylore 保存笔记。", title="")
    assert triples(said) == {("张伟", "使用", "Waylore")}


def test_aliases_are_what_the_passage_calls_a_thing_and_nothing_else() -> None:
    entities = [
        {"name": "Warner Bros.", "aliases": ["WB", "Warner Bros. Pictures", "Inception", 7, "Warner Bros."]},
        {"name": "Inception", "aliases": "WB"},
    ]
    said, _ = read(entities=entities)
    assert said.aliases == {"Warner Bros.": ("WB",)}


def test_a_value_is_no_entity_unless_it_is_listed_as_one() -> None:
    value = fact(predicate="came out in", object_=2010, object_is_value=True)
    said, _ = read(value, fact(object_is_value=True), entities=[{"name": "Leonardo DiCaprio"}])
    assert [(c.object, c.is_value) for c in said.claims] == [("2010", True), ("Leonardo DiCaprio", False)]
    assert "2010" not in said.names


def test_the_same_fact_twice_is_one_and_too_many_are_cut() -> None:
    said, dropped = read(fact(), fact(predicate="STARS"), *(fact(predicate=f"says {i}") for i in range(40)))
    assert len(said.claims) == 24
    assert dropped == {"too many": 17}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.just("Inception"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NAMES = JSON | st.sampled_from(["Inception", "Nolan", "WB", "Nobody", "\ud800", "a\0b", "北京"])
ENTITIES = st.lists(
    JSON | st.fixed_dictionaries({"name": NAMES}, optional={"type": JSON, "description": JSON, "aliases": JSON})
)
FACTS = st.lists(
    JSON
    | st.fixed_dictionaries(
        {"subject": NAMES, "predicate": NAMES, "object": NAMES},
        optional={
            "weight": JSON,
            "confidence": JSON,
            "valid_from": JSON,
            "valid_to": JSON,
            "object_is_value": JSON,
            "statement": JSON,
        },
    )
)


@given(entities=ENTITIES, facts=FACTS)
def test_whatever_a_model_writes_is_malformed_or_gives_what_can_be_stored(
    entities: list[Any], facts: list[Any]
) -> None:
    try:
        answer = parsed(json.dumps({"entities": entities, "facts": facts}))
    except Malformed:
        return
    said, dropped = extraction(answer, Passage("p", "d", TEXT, "Inception"))
    assert len(said.claims) + dropped.total() <= len(facts)
    assert set(said.descriptions) | set(said.aliases) <= set(said.names)
    for written in (*said.names, *(end for c in said.claims for end in (c.subject, c.predicate, c.object))):
        assert written.strip()
        assert "\0" not in written
        written.encode()


@given(content=st.text())
def test_any_text_is_read_or_malformed(content: str) -> None:
    with pytest.raises(Malformed):
        parsed(content)
