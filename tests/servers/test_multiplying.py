"""A multiplied database is like one that Waylore wrote: complete, with right counters, and answers that are equal."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from benchmarks.corpus import Corpus, make_name
from benchmarks.scale import multiply
from benchmarks.scale.engines import write_copies
from benchmarks.scale.multiply import Progress, build_database
from benchmarks.scale.sample import Sample, name_tenant
from tools.postgres.server import Server

from waylore.recipes import RECIPES
from waylore.retrieval.search import search
from waylore.store.postgres.store import PostgresStore
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER
from waylore.types.knowledge import EPOCH
from waylore.types.results import Receipt
from waylore.types.search import Filter, Query

PAGES, COPIES, TENANTS = 30, 12, 2
SAMPLE = Sample(list(Corpus().make_documents(0, PAGES)), "synthetic", COPIES, TENANTS)


@pytest.fixture(scope="module")
def url(postgres: Server) -> Iterator[str]:
    with postgres.create_database() as made:
        build_database(made, SAMPLE)
        yield made


@pytest.fixture(params=range(TENANTS))
def store(url: str, request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url, name_tenant(request.param))) as opened:
        yield opened


def test_rows_have_owners_and_counters_are_right(store: PostgresStore, url: str) -> None:
    assert store.find_remains(Receipt()) == ()
    statistics = store.statistics()
    with psycopg.connect(url) as db:
        for table in ("documents", "passages", "entities", "mentions"):
            rows = f"SELECT count(*) FROM waylore.{table} WHERE collection = %s"
            assert db.execute(rows, [store._key]).fetchone() == (getattr(statistics, table),)
        facts = "SELECT count(DISTINCT fact) FROM waylore.assertions WHERE collection = %s"
        assert db.execute(facts, [store._key]).fetchone() == (statistics.facts,)
    assert statistics.passages == PAGES * COPIES


def test_name_is_found_only_in_its_copy(store: PostgresStore) -> None:
    names = {SAMPLE.rename_copy(SAMPLE.mark(make_name(PAGES - 1)), copy) for copy in range(COPIES)}
    found = store.entities_by_names(sorted(names))
    assert len(names) == COPIES == len({e.id for entities in found.values() for e in entities})
    assert all(len(entities) == 1 for entities in found.values())


def test_searches_find_copy(store: PostgresStore) -> None:
    page = SAMPLE.pages[-1].passages[0]
    text = SAMPLE.rename_copy(page.text, COPIES - 1)
    [best] = store.lexical(text, top_k=1)
    [passage] = store.passages([best.id], vectors=True).values()
    assert passage.text == text
    assert passage.vector is not None
    assert [near.id for near in store.dense(passage.vector, top_k=1)] == [best.id]
    assert not store.dense(passage.vector, top_k=1, where=Filter(metadata={"part": "none"}))


def test_copy_can_be_forgotten_and_written(store: PostgresStore) -> None:
    [first] = store.list_documents(limit=1)
    before = store.statistics()
    [document] = store.get_indexed_documents([first.id]).values()
    store.forget([first.id], author=OWNER)
    assert store.find_remains(Receipt()) == ()
    store.write([document], author=OWNER, model="synthetic")
    after = store.statistics()
    assert (after.passages, after.entities, after.facts) == (before.passages, before.entities, before.facts)
    assert store.find_remains(Receipt()) == ()


class Interrupted(Exception):
    """A load was interrupted."""


class Watch:
    """Interrupts a load before its fifth step."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def report(self, step: str) -> None:
        self.steps.append(step)
        if len(self.steps) == 5:
            raise Interrupted


def build_with_interruptions(url: str, sample: Sample) -> list[list[str]]:
    """Build a database, start again after each interruption, and return the steps that each run began."""
    runs: list[list[str]] = []
    while not runs or len(runs[-1]) == 5:
        watch = Watch()
        runs.append(watch.steps)
        try:
            build_database(url, sample, Progress(watch.report))
        except Interrupted:
            assert len(runs) < 30
    return runs


def list_answers(store: Store, sample: Sample) -> list[object]:
    """Return what words, vectors, and searches through the graph find for each page."""
    answers: list[object] = [store.statistics().passages, store.statistics().entities, store.statistics().facts]
    for page in sample.pages[::5]:
        [passage] = page.passages
        assert passage.vector is not None
        question = Query(sample.rename_copy(f"{passage.title} {passage.text[:60]}", 11), passage.vector)
        found = search(store, None, question, RECIPES["chain"], now=EPOCH)
        answers += [
            store.lexical(question.text, top_k=20),
            store.dense(passage.vector, top_k=20),
            [(hit.passage.id, hit.passage.text, round(hit.score, 4)) for hit in found.hits],
        ]
    return answers


def test_interrupted_load_continues_and_its_answers_are_those_of_a_written_store(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiply, "PIECE_PASSAGES", 4 * PAGES)
    sample = replace(SAMPLE, tenants=1, repeats=3)
    with postgres.create_database() as url, closing(SqliteStore(tmp_path / "written.waylore")) as written:
        runs = build_with_interruptions(url, sample)
        done = [step for run in runs for step in (run[:4] if len(run) == 5 else run)]
        assert len(done) == len(set(done))
        assert len(runs) > 3
        assert [step for step in done if step.startswith("copy")] == ["copy 0 to 3", "copy 4 to 7", "copy 8 to 11"]
        first = list(sample.make_documents(0))
        written.write(first[:10], author=OWNER, model="synthetic")  # as an interrupted run would have
        write_copies(written, sample, tmp_path / "steps.jsonl")
        with closing(PostgresStore(url, name_tenant(0))) as multiplied:
            assert multiplied.find_remains(Receipt()) == ()
            assert list_answers(multiplied, sample) == list_answers(written, sample)
        assert written.find_remains(Receipt()) == ()
        build_database(url, sample, Progress(pytest.fail))  # nothing is left to do
