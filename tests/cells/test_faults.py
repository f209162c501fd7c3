"""Cells that hang, are slow or fail: other cells answer, and the answer names what is missing."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tools.waiting import HANG_SECONDS, wait_until

from cells.cells import CELLS, QUICK, FaultyCells, create_catalogue, open_stores
from waylore import Waylore
from waylore.cells.channels import Channel, settle
from waylore.cells.members import Federation
from waylore.cells.store import open_federated
from waylore.config import CellsConfig
from waylore.errors import DimensionMismatch, StoreUnavailable
from waylore.store.partial import partial_answers
from waylore.testing.world import EMBEDDER, KING, MODEL, QUEEN, SECRET, day
from waylore.types.author import OWNER

DOCUMENTS = {"a": KING, "b": QUEEN, "c": SECRET}  # in east, north and west
QUESTION = "Who is Lothair's mother, and what does he rule?"


@pytest.fixture
def cells() -> Iterator[FaultyCells]:
    made = FaultyCells()
    yield made
    made.release()


@pytest.fixture
def federation(tmp_path: Path, cells: FaultyCells) -> Iterator[Federation]:
    with closing(open_federation(tmp_path, cells, QUICK)) as made:
        yield made


def open_federation(folder: Path, cells: FaultyCells, config: CellsConfig) -> Federation:
    made = Federation(create_catalogue(folder), cells.open, config)
    for name, document in DOCUMENTS.items():
        with open_stores(made, name) as store:
            store.write([document], author=OWNER, model=MODEL)
    return made


@pytest.fixture
def waylore(federation: Federation) -> Iterator[Waylore]:
    with open_all(federation) as made:
        yield made


def open_all(federation: Federation) -> Waylore:
    """Open all collections as one, and search once, so that every cell is open."""
    made = Waylore(open_federated(federation, "a,b,c"), EMBEDDER, clock=lambda: day("2024-05-02"))
    made.search(QUESTION, method="hybrid", record_use=False)
    return made


def hang(cells: FaultyCells, cell: str) -> None:
    cells.hanging.add(cell)


def fail(cells: FaultyCells, cell: str) -> None:
    cells.gone.add(cell)


def slow_down(cells: FaultyCells, cell: str) -> None:
    cells.late[cell] = 5 * QUICK.read_seconds


def texts(found: object) -> set[str]:
    return {hit.passage.text for hit in found.hits}  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", [hang, fail, slow_down])
@pytest.mark.parametrize("method", ["chain", "hybrid", "neighbourhood", "activation"])
def test_other_cells_answer_and_missing_cell_is_named(
    fault: Callable[[FaultyCells, str], None], method: str, waylore: Waylore, cells: FaultyCells
) -> None:
    fault(cells, "west")
    before = len(cells.calls)
    found = waylore.search(QUESTION, method=method, record_use=False)
    assert len(cells.list_calls("west", before)) <= 2  # one read with its second attempt, for all of the stages
    assert texts(found) == {c.passages[0].text for c in (KING, QUEEN)}
    assert [note.split(":")[0] for note in found.missing] == ["cell west"]
    assert "Falcon" not in repr(found)


def test_partial_answer_is_not_cached(waylore: Waylore, cells: FaultyCells) -> None:
    fail(cells, "west")
    assert waylore.search(QUESTION, method="hybrid", record_use=False).missing
    cells.gone.clear()
    wait_until(lambda: not waylore.search(QUESTION, method="hybrid", record_use=False).missing)
    assert len(waylore.search(QUESTION, method="hybrid", record_use=False).hits) == 3


def test_calls_without_partial_answers_fail(federation: Federation, cells: FaultyCells) -> None:
    """`documents` would lack a document, `statistics` would count too few."""
    with open_stores(federation, "a,b,c") as store:
        fail(cells, "west")
        for verb in (store.statistics, store.version, lambda: store.documents([KING.document.id])):
            with pytest.raises(StoreUnavailable, match="cell west: west cannot be reached"):
                verb()
        with pytest.raises(StoreUnavailable):
            list(store.export())
        with partial_answers() as missing:
            assert store.documents([KING.document.id, SECRET.document.id]).keys() == {KING.document.id}
        assert list(missing) == ["west"]


def test_search_fails_if_no_cell_answers(waylore: Waylore, cells: FaultyCells) -> None:
    for cell in CELLS:
        fail(cells, cell)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        waylore.search(QUESTION, method="hybrid", record_use=False)


def test_store_opens_while_a_cell_fails(federation: Federation, cells: FaultyCells) -> None:
    fail(cells, "west")
    with Waylore(open_federated(federation, "a,b,c"), EMBEDDER) as waylore:
        assert len(waylore.search(QUESTION, method="hybrid", record_use=False).hits) == 2


def test_argument_errors_do_not_open_the_breaker(federation: Federation) -> None:
    with open_stores(federation, "a,b,c") as store:
        for _ in range(2 * QUICK.failures):
            with pytest.raises(DimensionMismatch), partial_answers():
                store.dense(EMBEDDER.embed_query("king")[:3], top_k=3)
        assert len(store.lexical("Lothair", top_k=9)) == 3


# -- closing -------------------------------------------------------------------------------------------


def test_store_that_a_late_attempt_opens_is_closed(federation: Federation, cells: FaultyCells) -> None:
    hang(cells, "west")
    before = len(cells.calls)
    with open_stores(federation, "c") as store, pytest.raises(StoreUnavailable, match="did not answer within 1 s"):
        store.statistics()
    cells.release()
    wait_until(lambda: cells.list_calls("west", before) == ["open", "open", "close", "close"])


def test_store_of_failed_cell_is_closed(federation: Federation, cells: FaultyCells) -> None:
    with open_stores(federation, "c") as store:
        store.statistics()
        fail(cells, "west")
        for _ in range(2 * QUICK.failures):
            with pytest.raises(StoreUnavailable):
                store.statistics()
        before = len(cells.calls)
    assert cells.list_calls("west", before) == ["close"]


# -- second attempts -----------------------------------------------------------------------------------


def test_late_read_gets_second_attempt_and_first_answer_wins() -> None:
    line, calls = Channel("slow", replace(QUICK, read_seconds=HANG_SECONDS)), []
    hung = threading.Event()

    def read() -> str:
        calls.append(time.monotonic())
        if len(calls) == 2:
            return "second"
        hung.wait()
        return "first"

    begun = time.monotonic()
    pending = line.start_read(read)
    settle([pending])
    hung.set()
    assert (pending.answer, len(calls)) == ("second", 2)
    assert calls[1] - begun >= QUICK.hedge_seconds
    line.stop()


def test_failed_read_gets_second_attempt() -> None:
    line, calls = Channel("shaky", QUICK), []

    def read() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise StoreUnavailable("cut off in the middle")
        return "read"

    pending = line.start_read(read)
    settle([pending])
    assert (pending.answer, len(calls)) == ("read", 2)
    line.stop()


def test_hedge_delay_follows_recent_reads() -> None:
    line = Channel("steady", QUICK)
    for _ in range(100):
        line.record_success(0.3)
    assert line.get_hedge_delay() == 0.3
    for _ in range(200):
        line.record_success(0.001)
    assert line.get_hedge_delay() == QUICK.hedge_seconds


def test_late_use_is_counted_once(federation: Federation, cells: FaultyCells) -> None:
    fact = KING.facts[0].id
    with open_stores(federation, "a,b,c") as store:
        store.statistics()
        cells.late["east"] = 2 * QUICK.hedge_seconds
        store.count_uses(facts=[fact], at=day("2024-06-01"))
        assert store.facts([fact])[fact].access_count == 1


# -- the breaker ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [hang, fail])
def test_breaker_opens_for_failing_cell_and_closes_again(
    fault: Callable[[FaultyCells, str], None], tmp_path: Path, cells: FaultyCells
) -> None:
    config = replace(QUICK, rest_seconds=3.0)  # longer than a search on a busy machine
    with closing(open_federation(tmp_path, cells, config)) as federation, open_all(federation) as waylore:
        fault(cells, "west")
        for _ in range(config.failures):
            assert waylore.search(QUESTION, method="keyword", record_use=False).missing
        before = len(cells.calls)
        found = waylore.search(QUESTION, method="keyword", record_use=False)
        assert cells.list_calls("west", before) == []
        assert "is not read for" in found.missing[0]
        cells.hanging.clear()  # threads that hang still do: new ones must replace them
        cells.gone.clear()
        wait_until(lambda: not waylore.search(QUESTION, method="keyword", record_use=False).missing)
        assert len(waylore.search(QUESTION, method="keyword", record_use=False).hits) == 3


def test_hanging_cell_does_not_delay_other_cells(tmp_path: Path, cells: FaultyCells) -> None:
    with (
        closing(open_federation(tmp_path, cells, replace(QUICK, read_seconds=HANG_SECONDS))) as federation,
        open_stores(federation, "a") as one,
        open_stores(federation, "c") as other,
        ThreadPoolExecutor(20) as threads,
    ):
        assert one.statistics().documents == other.statistics().documents == 1
        hang(cells, "west")
        waiting = [threads.submit(other.statistics) for _ in range(20)]
        for _ in range(20):
            assert one.statistics().documents == 1
        assert not any(each.done() for each in waiting)
        cells.release()
        assert [each.result().documents for each in waiting] == [1] * 20
