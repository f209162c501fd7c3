"""The text for a model keeps its budget, cites what it shows, and shows nothing that was not found."""

import re
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from unit.retrieval.finding import AUTH, ROOMY, STYLES, entity, fact, found, hit, rendered
from waylore.config import Context
from waylore.protocols import Count
from waylore.retrieval.context import Style, in_order
from waylore.text import pieces
from waylore.types.knowledge import Fact
from waylore.types.search import Found

COUNTS: dict[str, Count] = {
    "pieces": pieces,
    "characters": len,
    "words": lambda text: len(text.split()),
    "nothing adds up": lambda text: len(text) // 3 + len(text) % 7 * 5,
    "more than its lines": lambda text: len(text) + text.count("\n") ** 2,
}
NAMES = st.sampled_from(["Ann", "Bob", "the user", "User", "I", "Zoë Smith", "名前", "a\n b "])
PROSE = st.lists(st.sampled_from(["sea", "Go.", "why?", "水。", "x" * 70, "\n\n", "\n", " \t", "…"])).map(
    " ".join
)
TEXTS = PROSE | st.text(st.characters(exclude_characters="[]", exclude_categories=["N"]))
PREDICATES = st.sampled_from(["knows", "part_of", " leads \n to"])
FACTS = st.builds(
    fact, NAMES, PREDICATES, NAMES, PROSE, weight=st.sampled_from([1, 2.5, 8]), is_value=st.booleans()
)
ENTITIES = st.builds(entity, NAMES, st.sampled_from(["", "person"]), PROSE)
URIS = st.sampled_from(["", "docs/a.md", "docs/b.md"])
HITS = st.lists(st.tuples(TEXTS, NAMES, URIS), max_size=6).map(
    lambda rows: tuple(hit(f"p{n}", text, title=title, uri=uri) for n, (text, title, uri) in enumerate(rows))
)
FOUND = st.builds(
    lambda hits, entities, facts: found(*hits, entities=tuple(entities), facts=tuple(facts)),
    HITS,
    st.lists(ENTITIES, max_size=4),
    st.lists(FACTS, max_size=8),
)
CONFIGS = st.builds(Context, st.integers(0, 900), st.integers(0, 500), st.booleans(), st.booleans())
EVERY = given(FOUND, st.sampled_from(STYLES), CONFIGS, st.sampled_from(sorted(COUNTS)))
OURS = set(
    """Knowledge Graph Context Query entities Related weight Description Relevant Relationships strength
    USER CONTEXT Passages Sources""".split()
)


def relationships(text: str) -> set[tuple[str, ...]]:
    return set(re.findall(r'^- (.+) -> (.+): "(.+?)"', text, re.MULTILINE))


def stated(facts: tuple[Fact, ...]) -> set[tuple[str, ...]]:
    return {tuple(" ".join(word.split()) for word in (f.subject, f.object, f.predicate)) for f in facts}


@EVERY
@example(AUTH, "graph", Context(60, 60), "pieces")
@example(AUTH, "graph", Context(900, 500), "more than its lines")
def test_the_budget_is_never_exceeded(what: Found, style: Style, config: Context, by: str) -> None:
    answer = rendered(what, style, config=config, count=COUNTS[by])
    assert answer.tokens == COUNTS[by](answer.text) <= config.max_tokens
    block = rendered(replace(what, hits=()), style, config=config, count=COUNTS[by])
    assert block.tokens <= min(config.graph_tokens, config.max_tokens)
    assert answer.text.startswith(block.text)


@EVERY
def test_marks_and_sources_are_the_same(what: Found, style: Style, config: Context, by: str) -> None:
    answer = rendered(what, style, config=config, count=COUNTS[by])
    marks = [source.mark for source in answer.sources]
    assert marks == list(range(1, len(marks) + 1))
    assert {int(mark) for mark in re.findall(r"\[(\d+)\]", answer.text)} == set(marks)
    hits = {h.passage.id: h for h in what.hits}
    shown = [hits[source.passage_id] for source in answer.sources]
    assert [h for h in what.hits if h in shown] == shown
    assert [source.document_id for source in answer.sources] == [h.document.id for h in shown]


@EVERY
def test_nothing_is_shown_that_was_not_found(what: Found, style: Style, config: Context, by: str) -> None:
    answer = rendered(what, style, config=config, count=COUNTS[by])
    names = [word for e in what.entities for word in (e.name, e.type, e.description)]
    told = [
        word for f in what.facts for word in (f.subject, f.predicate, f.object, f.statement, f"{f.weight:g}")
    ]
    read = [word for h in what.hits for word in (h.passage.text, h.passage.title, h.document.uri)]
    known = OURS | {str(source.mark) for source in answer.sources}
    known.update(re.findall(r"\w+", " ".join(names + told + read)))
    assert set(re.findall(r"\w+", answer.text)) <= known
    assert relationships(answer.text) <= stated(what.facts)


@EVERY
def test_the_text_is_tidy_and_always_the_same(what: Found, style: Style, config: Context, by: str) -> None:
    answer = rendered(what, style, config=config, count=COUNTS[by])
    assert answer == rendered(what, style, config=config, count=COUNTS[by])
    assert all(line == line.rstrip() for line in answer.text.split("\n"))
    assert answer.text.strip("\n") == answer.text


@given(FOUND, st.sampled_from(STYLES))
def test_with_room_enough_everything_is_shown(what: Found, style: Style) -> None:
    answer = rendered(what, style, config=ROOMY)
    texts = [h.passage.text for h in what.hits if h.passage.text.strip()]
    assert len(answer.sources) == len(texts)
    assert all(line.rstrip() in answer.text for text in texts for line in text.split("\n"))
    if style == "graph":
        assert relationships(answer.text) == stated(what.facts)


@given(st.lists(FACTS, max_size=12))
def test_no_fact_is_lost_or_doubled_by_order(facts: list[Fact]) -> None:
    assert sorted(map(repr, in_order(facts))) == sorted(map(repr, facts))
    assert in_order(facts) == in_order(list(facts))
