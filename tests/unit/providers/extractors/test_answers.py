"""Answers of a model: each valid part is used, and names that the passage lacks lose confidence."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.protocols import Extraction
from waylore.providers.extractors.answers import MalformedAnswer, build_extraction, parse_answer
from waylore.types.knowledge import Passage

TEXT = (
    "Inception is a 2010 film by Christopher Nolan for Warner Bros. (WB). It stars Leonardo DiCaprio. "
    "Nolan led the project from May 2009 until 2010."
)


def make_fact(
    subject: Any = "Inception", predicate: Any = "stars", object_: Any = "Leonardo DiCaprio", **more: Any
) -> Any:
    return {"subject": subject, "predicate": predicate, "object": object_, **more}


def read_answer(
    *facts: Any, entities: list[Any] | None = None, text: str = TEXT, title: str = "Inception"
) -> tuple[Extraction, dict[str, int]]:
    content = json.dumps({"entities": entities or [], "facts": list(facts)})
    said, dropped = build_extraction(parse_answer(content), Passage("p", "d", text, title))
    return said, dict(dropped)


def list_triples(said: Extraction) -> set[tuple[str, str, str]]:
    return {(c.subject, c.predicate, c.object) for c in said.facts}


def test_good_answer_is_read_completely() -> None:
    entity = {"name": "Warner Bros.", "type": "Organisation", "description": "A studio", "aliases": ["WB"]}
    stated = make_fact(statement="Inception stars Leonardo DiCaprio.", weight=8, confidence=0.75, object_is_value=False)
    said, dropped = read_answer(stated, make_fact("Inception", "was made for", "WB"), entities=[entity])
    first, second = said.facts
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
def test_wrong_shape_raises_with_reason(content: str, error: str) -> None:
    with pytest.raises(MalformedAnswer, match=error):
        parse_answer(content)


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "<think>{{hm}}</think>\n{}", "Here it is: {} I hope it helps {{}}"]
)
def test_fences_and_thoughts_are_ignored(around: str) -> None:
    answer = json.dumps({"entities": [], "facts": [make_fact()]})
    assert parse_answer(around.replace("{{", "<<").replace("{}", answer).replace("<<", "{{")).facts == [make_fact()]


@given(cut=st.integers(0, 1000))
def test_truncated_answer_is_read_in_part(cut: int) -> None:
    facts = [make_fact(predicate=f"says {{{i}}}") for i in range(8)]
    whole = json.dumps({"entities": [], "facts": facts})
    cut = min(cut, len(whole))
    complete = sum(whole[:cut].count(json.dumps(one)) for one in facts)
    if not complete:
        with pytest.raises(MalformedAnswer):
            parse_answer(whole[:cut])
    else:
        assert parse_answer(whole[:cut]).facts == facts[:complete]


def test_articles_are_removed_from_names() -> None:
    said, _ = read_answer(make_fact("the film", "is by", "the Christopher Nolan"), entities=[{"name": "the film"}])
    assert list_triples(said) == {("film", "is by", "Christopher Nolan")}
    assert set(said.names) == {"Inception", "film", "Christopher Nolan"}


def test_empty_answer_is_valid() -> None:
    said, dropped = read_answer(title="")
    assert said == Extraction()
    assert dropped == {}


@pytest.mark.parametrize(
    "bad",
    [
        "a sentence",
        make_fact(""),
        make_fact(None),
        make_fact(predicate=["stars"]),
        make_fact("x" * 500),
        make_fact("Inception", "is", "inception"),
        make_fact("It"),
        make_fact(valid_from="2011", valid_to="2009"),
    ],
)
def test_invalid_fact_is_dropped_and_others_stay(bad: Any) -> None:
    said, dropped = read_answer(make_fact(), bad)
    assert list_triples(said) == {("Inception", "stars", "Leonardo DiCaprio")}
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
def test_numbers_are_clamped_to_bounds(weight: Any, confidence: Any, expected: tuple[float, float]) -> None:
    said, _ = read_answer(make_fact(weight=weight, confidence=confidence))
    assert (said.facts[0].weight, said.facts[0].confidence) == expected


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "1" * 400])
def test_invalid_json_numbers_are_handled(number: str) -> None:
    content = '{"entities": [], "facts": [{"subject": "Inception", "predicate": "stars", "object": "Nolan", '
    said, _ = build_extraction(parse_answer(f'{content}"weight": {number}}}]}}'), Passage("p", "d", TEXT))
    assert 1 <= said.facts[0].weight <= 10


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
def test_dates_are_parsed_as_written(written: Any, begin: datetime | None, end: datetime | None) -> None:
    said, _ = read_answer(make_fact(valid_from=written), make_fact(object_="Nolan", valid_to=written))
    assert [c.valid_from for c in said.facts] == [begin, None]
    assert [c.valid_to for c in said.facts] == [None, end]


@pytest.mark.parametrize("object_", ["Cillian Murphy", "Leonardo DiCaprio"])
def test_fact_with_unknown_subject_is_dropped(object_: str) -> None:
    said, dropped = read_answer(make_fact(), make_fact("Oppenheimer", "stars", object_))
    assert list_triples(said) == {("Inception", "stars", "Leonardo DiCaprio")}
    assert dropped == {"not in the passage": 1}


def test_unknown_object_is_value_with_half_confidence() -> None:
    said, _ = read_answer(make_fact(object_="United Kingdom", confidence=0.8), make_fact(confidence=0.8))
    assert [(c.confidence, c.is_value) for c in said.facts] == [(0.4, True), (0.8, False)]
    assert "United Kingdom" not in said.names


def test_names_in_titles_and_headings_are_found() -> None:
    passage = Passage("p", "d", "It was born in 1970.", "Mara", headings=("Early life of Kofi",))
    answer = parse_answer(json.dumps({"entities": [], "facts": [make_fact("Mara", "knows", "Kofi", confidence=1)]}))
    said, _ = build_extraction(answer, passage)
    assert [(c.subject, c.object, c.confidence) for c in said.facts] == [("Mara", "Kofi", 1.0)]


def test_inflected_names_are_recognised() -> None:
    said, _ = read_answer(make_fact("Мара", "живёт в", "Москва", confidence=1), text="Мара живёт в Москве.", title="")
    assert [c.confidence for c in said.facts] == [1.0]


def test_chinese_text_has_chinese_entities() -> None:
    named = {"name": "Beijing", "type": "place", "description": "首都", "aliases": ["北京"]}
    said, dropped = read_answer(
        make_fact("Beijing", "是首都", "中国"),
        make_fact("北京", "is in", "North China Plain"),
        make_fact("Forbidden City", "is in", "Peking"),
        entities=[named, {"name": "Forbidden City", "type": "place"}],
        text="北京是中国的首都，位于华北平原。",
        title="北京",
    )
    assert list_triples(said) == {("北京", "是首都", "中国")}
    assert set(said.names) == {"北京", "中国"}
    assert said.aliases == {}
    assert dropped == {"translated": 1, "not in the passage": 1}


def test_foreign_name_in_passage_stays() -> None:
    said, _ = read_answer(make_fact("张伟", "使用", "Waylore"), text="张伟使用 Waylore 保存笔记。", title="")
    assert list_triples(said) == {("张伟", "使用", "Waylore")}


def test_aliases_must_occur_in_passage() -> None:
    entities = [
        {"name": "Warner Bros.", "aliases": ["WB", "Warner Bros. Pictures", "Inception", 7, "Warner Bros."]},
        {"name": "Inception", "aliases": "WB"},
    ]
    said, _ = read_answer(entities=entities)
    assert said.aliases == {"Warner Bros.": ("WB",)}


def test_value_is_entity_only_if_listed() -> None:
    value = make_fact(predicate="came out in", object_=2010, object_is_value=True)
    said, _ = read_answer(value, make_fact(object_is_value=True), entities=[{"name": "Leonardo DiCaprio"}])
    assert [(c.object, c.is_value) for c in said.facts] == [("2010", True), ("Leonardo DiCaprio", False)]
    assert "2010" not in said.names


def test_repeated_facts_merge_and_number_is_limited() -> None:
    said, dropped = read_answer(
        make_fact(), make_fact(predicate="STARS"), *(make_fact(predicate=f"says {i}") for i in range(40))
    )
    assert len(said.facts) == 24
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
def test_random_answers_raise_or_can_be_stored(entities: list[Any], facts: list[Any]) -> None:
    try:
        answer = parse_answer(json.dumps({"entities": entities, "facts": facts}))
    except MalformedAnswer:
        return
    said, dropped = build_extraction(answer, Passage("p", "d", TEXT, "Inception"))
    assert len(said.facts) + dropped.total() <= len(facts)
    assert set(said.descriptions) | set(said.aliases) <= set(said.names)
    for written in (*said.names, *(end for c in said.facts for end in (c.subject, c.predicate, c.object))):
        assert written.strip()
        assert "\0" not in written
        written.encode()


@given(content=st.text())
def test_random_text_is_read_or_raises(content: str) -> None:
    with pytest.raises(MalformedAnswer):
        parse_answer(content)
