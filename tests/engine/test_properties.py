"""Test adding twice, forgetting and importing with random knowledge.

Collections are compared by the bytes of their exports.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import NewFact, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.knowledge import SOURCES, STATUSES

EMBEDDER = HashingEmbedder(32, quiet=True)
THEN = datetime(2024, 5, 1, tzinfo=UTC)

names = st.sampled_from(["Ada", "ada", "Byron", "C++", "Łódź", "東京", "Lothair II", "the Engine"])
moments = st.none() | st.datetimes(datetime(1, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC))
spans = st.tuples(moments, moments).map(lambda ends: ends if None in ends else tuple(sorted(ends, key=str)))
plain_facts = st.builds(
    NewFact,
    subject=names,
    predicate=st.sampled_from(["knows", "depends_on", "Depends On", "旅"]),
    object=names,
    statement=st.sampled_from(["", "as they say", "Ada knows Byron."]),
    weight=st.integers(1, 10).map(float),
    confidence=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    source=st.sampled_from(SOURCES),
    status=st.sampled_from(STATUSES),
    is_value=st.booleans(),
)
facts = st.builds(lambda fact, span: replace(fact, valid_from=span[0], valid_to=span[1]), plain_facts, spans)
texts = st.lists(
    st.sampled_from(["Ada knows Byron.", "東京は晴れ。", "C++ and Łódź!", "x" * 700, "\n\n", "🦊"]), min_size=1
)
scalars = st.sampled_from(["en", "fr", 1, 2.5, True])


@dataclass(frozen=True)
class Added:
    """One call of `add`."""

    text: str
    facts: Sequence[NewFact]
    uri: str
    labels: frozenset[str]
    metadata: dict[str, str | int | float | bool]


additions = st.builds(
    Added,
    text=texts.map(" ".join).filter(lambda t: t.strip() != ""),
    facts=st.lists(facts, max_size=4),
    uri=st.sampled_from(["", "", "page/1", "page/2", "page/3"]),
    labels=st.frozensets(st.sampled_from(["family", "spies"]), max_size=2),
    metadata=st.dictionaries(st.sampled_from(["lang", "year"]), scalars, max_size=2),
)


def add(memory: Waylore, added: Added) -> str:
    return memory.add(added.text, facts=added.facts, uri=added.uri, labels=added.labels, metadata=added.metadata)


def export_bytes(memory: Waylore, folder: Path) -> bytes:
    memory.export(folder / "export.jsonl")
    return (folder / "export.jsonl").read_bytes()


def open_memory(folder: Path, name: str) -> Waylore:
    return Waylore.open(folder / name, embedder=EMBEDDER, clock=lambda: THEN)


def select_surviving(added: Sequence[Added]) -> list[Added]:
    """Return the texts that are left when a text replaces an older one at the same address."""
    kept = {a.uri or (a.text, a.labels): a for a in added}
    return list(kept.values())


@given(st.lists(additions, max_size=5))
def test_adding_twice_equals_adding_once(added: list[Added]) -> None:
    with tempfile.TemporaryDirectory() as name, open_memory(Path(name), "a.waylore") as memory:
        for each in added:
            add(memory, each)
        once, version = export_bytes(memory, Path(name)), memory.stats().version
        for each in select_surviving(added):
            add(memory, each)
        assert export_bytes(memory, Path(name)) == once
        assert memory.stats().version == version


@given(st.lists(additions, max_size=4), st.lists(additions, max_size=4))
def test_forgetting_equals_never_adding(kept: list[Added], gone: list[Added]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_memory(folder, "never.waylore") as never:
            ids = [add(never, each) for each in kept]
            expected = export_bytes(never, folder)
        with open_memory(folder, "forgot.waylore") as forgot:
            others = [add(forgot, each) for each in gone]
            for each in kept:
                add(forgot, each)
            if removed := sorted(set(others) - set(ids)):
                forgot.forget(removed)
            assert export_bytes(forgot, folder) == expected


@given(st.lists(additions, max_size=5))
def test_import_equals_the_export(added: list[Added]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_memory(folder, "a.waylore") as memory:
            for each in added:
                add(memory, each)
            before = export_bytes(memory, folder)
        (folder / "moved.jsonl").write_bytes(before)
        with open_memory(folder, "b.waylore") as copy:
            copy.import_(folder / "moved.jsonl")
            assert export_bytes(copy, folder) == before


PAGES = [
    "Fly is what we use. Apps on Fly run well, and Fly bills us each month.",
    "The birds fly south. Check the Hub before you fly, and note what Mara Lindqvist said.",
    "The hub runs on Kubernetes. Our Hub is JupyterHub, and the Hub has an API.",
    "Marburg hat eine Bibliothek. Der Leiter der Bibliothek ist Jonas Weidlich.",
    "- Slack: [#help](https://example.org)\n- Owner: Mara Lindqvist\n\nAsk in `#help` or on Slack.",
    "临江图书馆很大。周明远在临江图书馆。我们去临江图书馆。",
]


@settings(max_examples=20)
@given(st.permutations(PAGES), st.permutations(PAGES))
def test_what_is_read_does_not_depend_on_the_order_of_adding(one: list[str], other: list[str]) -> None:
    exports = []
    for pages in (one, other):
        with tempfile.TemporaryDirectory() as name, open_memory(Path(name), "a.waylore") as memory:
            for page in pages:
                memory.add(page, uri=f"page/{PAGES.index(page)}", title=f"Page {PAGES.index(page)}")
            exports.append(export_bytes(memory, Path(name)))
    assert exports[0] == exports[1]
