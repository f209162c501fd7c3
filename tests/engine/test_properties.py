"""The promises of memory as properties: adding twice, forgetting, and moving, over random knowledge.

Everything is compared by the bytes of its export.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import Claim, Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.knowledge import SOURCES, STATUSES

EMBEDDER = HashingEmbedder(32, quiet=True)
THEN = datetime(2024, 5, 1, tzinfo=UTC)

names = st.sampled_from(["Ada", "ada", "Byron", "C++", "Łódź", "東京", "Lothair II", "the Engine"])
moments = st.none() | st.datetimes(datetime(1, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC))
spans = st.tuples(moments, moments).map(lambda ends: ends if None in ends else tuple(sorted(ends, key=str)))
plain_claims = st.builds(
    Claim,
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
claims = st.builds(
    lambda claim, span: replace(claim, valid_from=span[0], valid_to=span[1]), plain_claims, spans
)
texts = st.lists(
    st.sampled_from(["Ada knows Byron.", "東京は晴れ。", "C++ and Łódź!", "x" * 700, "\n\n", "🦊"]), min_size=1
)
scalars = st.sampled_from(["en", "fr", 1, 2.5, True])


@dataclass(frozen=True)
class Added:
    """One call of `add`."""

    text: str
    claims: Sequence[Claim]
    uri: str
    labels: frozenset[str]
    metadata: dict[str, str | int | float | bool]


additions = st.builds(
    Added,
    text=texts.map(" ".join).filter(lambda t: t.strip() != ""),
    claims=st.lists(claims, max_size=4),
    uri=st.sampled_from(["", "", "page/1", "page/2", "page/3"]),
    labels=st.frozensets(st.sampled_from(["family", "spies"]), max_size=2),
    metadata=st.dictionaries(st.sampled_from(["lang", "year"]), scalars, max_size=2),
)


def add(memory: Waylore, added: Added) -> str:
    return memory.add(
        added.text, facts=added.claims, uri=added.uri, labels=added.labels, metadata=added.metadata
    )


def exported(memory: Waylore, folder: Path) -> bytes:
    memory.export(folder / "export.jsonl")
    return (folder / "export.jsonl").read_bytes()


def opened(folder: Path, name: str) -> Waylore:
    return Waylore.open(folder / name, embedder=EMBEDDER, clock=lambda: THEN)


def surviving(added: Sequence[Added]) -> list[Added]:
    """What is left when a text at the same address replaces the one before it."""
    kept = {a.uri or (a.text, a.labels): a for a in added}
    return list(kept.values())


@settings(max_examples=40)
@given(st.lists(additions, max_size=5))
def test_adding_twice_is_adding_once(added: list[Added]) -> None:
    with tempfile.TemporaryDirectory() as name, opened(Path(name), "a.waylore") as memory:
        for each in added:
            add(memory, each)
        once, version = exported(memory, Path(name)), memory.stats().version
        for each in surviving(added):
            add(memory, each)
        assert exported(memory, Path(name)) == once
        assert memory.stats().version == version


@settings(max_examples=40)
@given(st.lists(additions, max_size=4), st.lists(additions, max_size=4))
def test_forgetting_is_never_having_added(kept: list[Added], gone: list[Added]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with opened(folder, "never.waylore") as never:
            ids = [add(never, each) for each in kept]
            expected = exported(never, folder)
        with opened(folder, "forgot.waylore") as forgot:
            others = [add(forgot, each) for each in gone]
            for each in kept:
                add(forgot, each)
            forgot.forget(*sorted(set(others) - set(ids)))
            assert exported(forgot, folder) == expected


@settings(max_examples=40)
@given(st.lists(additions, max_size=5))
def test_an_import_equals_the_export(added: list[Added]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with opened(folder, "a.waylore") as memory:
            for each in added:
                add(memory, each)
            before = exported(memory, folder)
        (folder / "moved.jsonl").write_bytes(before)
        with opened(folder, "b.waylore") as copy:
            copy.import_(folder / "moved.jsonl")
            assert exported(copy, folder) == before
