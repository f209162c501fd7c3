"""Uses are counted in batches: after two seconds, after a thousand uses, at the end, and before they are read."""

import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import apsw
import pytest
from tools.waiting import wait_until

from retrieval.worlds import EMBEDDER, NOW, QUESTION, SAMPLE, index_world
from waylore import Waylore
from waylore.config import GateConfig
from waylore.deadline import Deadline
from waylore.engine import uses
from waylore.errors import StoreUnavailable
from waylore.recipes import ACTIVATION
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER, Author

NEVER = 3_600.0
OPEN = replace(ACTIVATION, gate=GateConfig(min_confidence=0.0, min_graph_score=0.0))


class Recording(SqliteStore):
    """A store that remembers how many uses each write had, and raises the errors that a test gives it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.batches: list[int] = []
        self.errors: list[Exception] = []

    def count_uses(self, *, passages: Sequence[str] = (), facts: Sequence[str] = (), at: datetime) -> None:
        if self.errors:
            raise self.errors.pop()
        super().count_uses(passages=passages, facts=facts, at=at)
        self.batches.append(len(passages) + len(facts))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.waylore"


@pytest.fixture
def store(path: Path) -> Recording:
    store = Recording(path)
    store.write(index_world(SAMPLE), author=OWNER, model=EMBEDDER.name)
    return store


@pytest.fixture
def memory(store: Recording) -> Iterator[Waylore]:
    with Waylore(store, EMBEDDER, clock=lambda: NOW, cache=None) as memory:
        yield memory


@pytest.fixture
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no batch be written because of its age."""
    monkeypatch.setattr(uses, "BATCH_SECONDS", NEVER)


def count_uses(path: Path) -> int:
    """Return the number of all uses in a file."""
    with closing(apsw.Connection(str(path))) as db:
        return int(db.execute("SELECT total(access_count) FROM usage").get)


def search_as(memory: Waylore, *names: str) -> int:
    """Search as several authors, and return how many uses that are."""
    found = [memory.as_author(Author(name)).search(QUESTION, method="hybrid") for name in names]
    return sum(len(result.hits) for result in found)


def list_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "waylore-uses"}


@pytest.mark.usefixtures("no_timer")
def test_close_writes_the_uses_of_all_searches_at_once(memory: Waylore, store: Recording) -> None:
    expected = search_as(memory, "key:a", "key:b", "key:c")
    assert store.batches == []
    memory.close()
    assert store.batches == [expected]


def test_batch_is_written_after_two_seconds(memory: Waylore, store: Recording) -> None:
    begun = time.monotonic()
    first = search_as(memory, "key:a")
    wait_until(lambda: store.batches)
    assert time.monotonic() - begun >= uses.BATCH_SECONDS
    second = search_as(memory, "key:b")
    wait_until(lambda: len(store.batches) == 2)
    assert store.batches == [first, second]


@pytest.mark.usefixtures("no_timer")
def test_large_batch_is_written_at_once(memory: Waylore, store: Recording) -> None:
    expected, callers = 0, iter(range(uses.BATCH_USES))
    while expected < uses.BATCH_USES:
        assert store.batches == []
        expected += search_as(memory, f"key:{next(callers)}")
    wait_until(lambda: store.batches)
    assert store.batches == [expected]


@pytest.mark.usefixtures("no_timer")
def test_activation_reads_the_uses_of_earlier_searches(memory: Waylore, store: Recording, path: Path) -> None:
    before = memory.search(QUESTION, method=OPEN, record_use=False)
    memory.search(QUESTION, method="chain")
    assert count_uses(path) == 0
    memory.search("storm", method="hybrid", record_use=False)
    assert count_uses(path) == 0
    after = memory.search(QUESTION, method=OPEN, record_use=False)
    assert count_uses(path) == sum(store.batches) > 0
    assert [(hit.id, hit.score) for hit in after] != [(hit.id, hit.score) for hit in before]


def test_close_ends_the_thread(store: Recording) -> None:
    before = list_threads()
    with Waylore(store, EMBEDDER) as memory:
        memory.search(QUESTION, record_use=False)
        assert list_threads() == before
        memory.search(QUESTION)
        memory.search("storm")
        assert len(list_threads() - before) == 1
    assert list_threads() == before


def test_collected_memory_writes_its_uses_and_ends_its_thread(store: Recording) -> None:
    before = list_threads()
    memory = Waylore(store, EMBEDDER)
    expected = search_as(memory, "key:a")
    del memory
    gc.collect()
    wait_until(lambda: store.batches)
    gc.collect()
    wait_until(lambda: list_threads() == before)
    assert store.batches == [expected]
    store.close()


@pytest.mark.usefixtures("store")
def test_process_that_exits_without_close_writes_its_uses(path: Path) -> None:
    program = (
        "import sys\nfrom retrieval.worlds import EMBEDDER, QUESTION\nfrom waylore import Waylore\n"
        "from waylore.engine import uses\n"
        f"uses.BATCH_SECONDS = {NEVER}\n"
        "memory = Waylore.open(sys.argv[1], embedder=EMBEDDER)\n"
        "print(len(memory.search(QUESTION, method='hybrid').hits))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, env=environment, check=True, timeout=60, capture_output=True, text=True)
    assert count_uses(path) == int(done.stdout) > 0
    assert done.stderr == ""


@pytest.mark.usefixtures("no_timer")
def test_uses_are_written_after_the_deadline_of_a_request(memory: Waylore, path: Path) -> None:
    expected = search_as(memory, "key:a")
    with Deadline(0.0).activate():
        memory.close()
    assert count_uses(path) == expected


@pytest.mark.usefixtures("no_timer")
def test_use_of_a_forgotten_passage_is_not_counted(memory: Waylore, path: Path) -> None:
    found = memory.search(QUESTION)
    documents = {hit.document.id for hit in found}
    receipt = memory.forget(*documents)
    assert set(receipt.documents) == documents
    memory.close()
    assert count_uses(path) == 0
    with Waylore.open(path, embedder=EMBEDDER) as again:
        assert again.verify_forgotten(receipt) == ()


@pytest.mark.usefixtures("no_timer")
@pytest.mark.parametrize("error", [StoreUnavailable(), RuntimeError("broken")], ids=repr)
def test_failed_write_is_logged_and_later_uses_are_counted(
    memory: Waylore, store: Recording, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store.errors = [error]
    search_as(memory, "key:a")
    with caplog.at_level(logging.WARNING):
        memory.search(QUESTION, method="activation", record_use=False)
    assert "uses were not counted" in caplog.text
    expected = search_as(memory, "key:b")
    memory.close()
    assert store.batches == [expected]


def test_search_that_ends_after_close_counts_nothing(store: Recording) -> None:
    before = list_threads()
    memory = Waylore(store, EMBEDDER)
    found = memory.search(QUESTION, record_use=False)
    memory.close()
    memory._answers.record_use(found, "key:a")
    assert list_threads() == before
    assert store.batches == []
