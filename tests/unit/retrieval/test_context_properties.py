"""The context keeps its budget, cites its passages, and contains only the search result."""

import re
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from unit.retrieval.samples import AUTH, LAYOUTS, ROOMY, make_entity, make_fact, make_hit, make_result, render, unfence
from waylore.config import ContextConfig
from waylore.fence import neutralize
from waylore.protocols import CountTokens
from waylore.retrieval.context.block import Layout, order_facts
from waylore.text import estimate_tokens
from waylore.types.knowledge import Fact
from waylore.types.search import SearchResult, SetAnswer

COUNTS: dict[str, CountTokens] = {
    "pieces": estimate_tokens,
    "characters": len,
    "words": lambda text: len(text.split()),
    "nothing adds up": lambda text: len(text) // 3 + len(text) % 7 * 5,
    "more than its lines": lambda text: len(text) + text.count("\n") ** 2,
}
NAMES = st.sampled_from(["Ann", "Bob", "the user", "User", "I", "Zoë Smith", "名前", "a\n b "])
PROSE = st.lists(st.sampled_from(["sea", "Go.", "why?", "水。", "x" * 70, "\n\n", "\n", " \t", "…"])).map(" ".join)
TEXTS = PROSE | st.text(st.characters(exclude_characters="[]", exclude_categories=["N"]))
PREDICATES = st.sampled_from(["knows", "part_of", " leads \n to"])
FACTS = st.builds(
    make_fact, NAMES, PREDICATES, NAMES, PROSE, weight=st.sampled_from([1, 2.5, 8]), is_value=st.booleans()
)
ENTITIES = st.builds(make_entity, NAMES, st.sampled_from(["", "person"]), PROSE)
URIS = st.sampled_from(["", "docs/a.md", "docs/b.md"])
HITS = st.lists(st.tuples(TEXTS, NAMES, URIS), max_size=6).map(
    lambda rows: tuple(make_hit(f"p{n}", text, title=title, uri=uri) for n, (text, title, uri) in enumerate(rows))
)
FOUND = st.builds(
    lambda hits, entities, facts: make_result(*hits, entities=tuple(entities), facts=tuple(facts)),
    HITS,
    st.lists(ENTITIES, max_size=4),
    st.lists(FACTS, max_size=8),
)
CONFIGS = st.builds(ContextConfig, st.integers(0, 900), st.integers(0, 500), st.booleans(), st.booleans())
EVERY = given(FOUND, st.sampled_from(LAYOUTS), CONFIGS, st.sampled_from(sorted(COUNTS)))
OWN_WORDS = set(
    """Knowledge Graph Context Query entities Related weight Description Relevant Relationships strength
    USER CONTEXT Passages Sources""".split()
)


def find_relationships(text: str) -> set[tuple[str, ...]]:
    return set(re.findall(r'^- (.+) -> (.+): "(.+?)"', text, re.MULTILINE))


def list_relationships(facts: tuple[Fact, ...]) -> set[tuple[str, ...]]:
    return {tuple(" ".join(word.split()) for word in (f.subject, f.object, f.predicate)) for f in facts}


@EVERY
@example(AUTH, "graph", ContextConfig(60, 60), "pieces")
@example(AUTH, "graph", ContextConfig(900, 500), "more than its lines")
def test_context_never_exceeds_budget(what: SearchResult, layout: Layout, config: ContextConfig, by: str) -> None:
    answer = render(what, layout, config=config, count=COUNTS[by])
    assert answer.tokens == COUNTS[by](answer.text) <= config.max_tokens
    block = render(replace(what, hits=()), layout, config=config, count=COUNTS[by])
    assert block.tokens <= config.max_tokens
    assert not block.text or COUNTS[by](unfence(block.text)) <= config.graph_tokens
    assert answer.text.startswith(block.text)


@EVERY
def test_set_opens_the_context_in_a_third_of_the_budget(
    what: SearchResult, layout: Layout, config: ContextConfig, by: str
) -> None:
    lines = tuple(f"- Service {name} —depends on→ Quarry" for name in "ABCDEFGH")
    count = COUNTS[by]
    asked = replace(what, set_answer=SetAnswer("all 8 facts: “depends on” Quarry", lines))
    answer = render(asked, layout, config=config, count=count)
    assert answer.tokens == count(answer.text) <= config.max_tokens
    opening = render(replace(make_result(), set_answer=asked.set_answer), layout, config=config, count=count)
    assert opening.tokens <= config.max_tokens / 3
    assert unfence(answer.text).startswith(unfence(opening.text))
    shown = sum(line in opening.text for line in lines)
    left = re.search(r"\((\d+) lines? do(?:es)? not fit here\)", opening.text)
    assert not opening.text or shown + (int(left[1]) if left else 0) == len(lines)


@EVERY
def test_context_marks_match_sources(what: SearchResult, layout: Layout, config: ContextConfig, by: str) -> None:
    answer = render(what, layout, config=config, count=COUNTS[by])
    marks = [source.mark for source in answer.sources]
    assert marks == list(range(1, len(marks) + 1))
    assert {int(mark) for mark in re.findall(r"\[(\d+)\]", answer.text)} == set(marks)
    hits = {h.passage.id: h for h in what.hits}
    shown = [hits[source.passage_id] for source in answer.sources]
    assert [h for h in what.hits if h in shown] == shown
    assert [source.document_id for source in answer.sources] == [h.document.id for h in shown]


@EVERY
def test_context_shows_only_search_result(what: SearchResult, layout: Layout, config: ContextConfig, by: str) -> None:
    answer = render(what, layout, config=config, count=COUNTS[by])
    names = [word for e in what.entities for word in (e.name, e.type, e.description)]
    told = [word for f in what.facts for word in (f.subject, f.predicate, f.object, f.statement, f"{f.weight:g}")]
    read = [word for h in what.hits for word in (h.passage.text, h.passage.title, h.document.uri)]
    known = OWN_WORDS | {str(source.mark) for source in answer.sources}
    known.update(re.findall(r"\w+", neutralize(" ".join(names + told + read)).text))
    assert set(re.findall(r"\w+", unfence(answer.text))) <= known
    assert find_relationships(answer.text) <= list_relationships(what.facts)


@EVERY
def test_context_is_tidy_and_deterministic(what: SearchResult, layout: Layout, config: ContextConfig, by: str) -> None:
    answer = render(what, layout, config=config, count=COUNTS[by])
    assert answer == render(what, layout, config=config, count=COUNTS[by])
    assert all(line == line.rstrip() for line in answer.text.split("\n"))
    assert answer.text.strip("\n") == answer.text


@given(FOUND, st.sampled_from(LAYOUTS))
def test_large_budget_shows_everything(what: SearchResult, layout: Layout) -> None:
    answer = render(what, layout, config=ROOMY)
    texts = [text for h in what.hits if (text := neutralize(h.passage.text).text).strip()]
    assert len(answer.sources) == len(texts)
    assert all(line.rstrip() in answer.text for text in texts for line in text.split("\n"))
    if layout == "graph":
        assert find_relationships(answer.text) == list_relationships(what.facts)


@given(st.lists(FACTS, max_size=12))
def test_order_facts_keeps_each_fact_once(facts: list[Fact]) -> None:
    assert sorted(map(repr, order_facts(facts))) == sorted(map(repr, facts))
    assert order_facts(facts) == order_facts(list(facts))
