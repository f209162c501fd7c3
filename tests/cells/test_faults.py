"""Cells that hang, answer slowly or are gone: what the others know is told, and what was missing."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cells.cells import CELLS, QUICK, Cabling, catalogue, opened
from waylore import Waylore
from waylore.cells.channels import Line, settle
from waylore.cells.members import Federation
from waylore.cells.store import open_federated
from waylore.errors import DimensionMismatch, StoreUnavailable
from waylore.store.partial import partial_answers
from waylore.testing.suite import EMBEDDER, KING, MODEL, QUEEN, SECRET, day

TOLD = {"a": KING, "b": QUEEN, "c": SECRET}  # in east, north and west
QUESTION = "Who is Lothair's mother, and what does he rule?"


@pytest.fixture
def cabling() -> Iterator[Cabling]:
    made = Cabling()
    yield made
    made.release()


@pytest.fixture
def federation(tmp_path: Path, cabling: Cabling) -> Iterator[Federation]:
    made = Federation(catalogue(tmp_path), cabling.open, QUICK)
    for name, told in TOLD.items():
        with opened(made, name) as store:
            store.write([told], model=MODEL)
    yield made
    made.close()


@pytest.fixture
def waylore(federation: Federation) -> Iterator[Waylore]:
    made = Waylore(open_federated(federation, "a,b,c"), EMBEDDER, clock=lambda: day("2024-05-02"))
    made.search(QUESTION, method="hybrid", count_use=False)  # every cell is open, and answers
    yield made
    made.close()


def hang(cabling: Cabling, cell: str) -> None:
    cabling.hanging.add(cell)


def be_gone(cabling: Cabling, cell: str) -> None:
    cabling.gone.add(cell)


def dawdle(cabling: Cabling, cell: str) -> None:
    cabling.late[cell] = 5 * QUICK.read_seconds


def texts(found: object) -> set[str]:
    return {hit.passage.text for hit in found.hits}  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", [hang, be_gone, dawdle])
@pytest.mark.parametrize("method", ["chain", "hybrid", "neighbourhood", "activation"])
def test_the_others_answer_and_what_was_missing_is_told(
    fault: Callable[[Cabling, str], None], method: str, waylore: Waylore, cabling: Cabling
) -> None:
    fault(cabling, "west")
    begun = time.monotonic()
    found = waylore.search(QUESTION, method=method, count_use=False)
    assert time.monotonic() - begun < 3 * QUICK.read_seconds  # one wait for all of the stages
    assert texts(found) == {c.passages[0].text for c in (KING, QUEEN)}
    assert [note.split(":")[0] for note in found.missing] == ["cell west"]
    assert "Falcon" not in repr(found)


def test_what_is_partial_is_not_kept(waylore: Waylore, cabling: Cabling) -> None:
    be_gone(cabling, "west")
    assert waylore.search(QUESTION, method="hybrid", count_use=False).missing
    cabling.gone.clear()
    time.sleep(QUICK.rest_seconds)
    found = waylore.search(QUESTION, method="hybrid", count_use=False)
    assert (len(found.hits), found.missing) == (3, ())


def test_what_cannot_say_what_is_missing_is_refused(federation: Federation, cabling: Cabling) -> None:
    """`get` would say that there is no such document, `stats` would count too few."""
    with opened(federation, "a,b,c") as store:
        be_gone(cabling, "west")
        for verb in (store.statistics, store.version, lambda: store.documents([KING.document.id])):
            with pytest.raises(StoreUnavailable, match="cell west: west cannot be reached"):
                verb()
        with pytest.raises(StoreUnavailable):
            list(store.export())
        with partial_answers() as missing:
            assert store.documents([KING.document.id, SECRET.document.id]).keys() == {KING.document.id}
        assert list(missing) == ["west"]


def test_if_no_cell_answers_there_is_no_answer(waylore: Waylore, cabling: Cabling) -> None:
    for cell in CELLS:
        be_gone(cabling, cell)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        waylore.search(QUESTION, method="hybrid", count_use=False)


def test_a_federation_opens_though_a_cell_is_gone(federation: Federation, cabling: Cabling) -> None:
    be_gone(cabling, "west")
    with Waylore(open_federated(federation, "a,b,c"), EMBEDDER) as waylore:
        assert len(waylore.search(QUESTION, method="hybrid", count_use=False).hits) == 2


def test_the_callers_own_mistakes_are_not_the_cells_fault(federation: Federation) -> None:
    with opened(federation, "a,b,c") as store:
        for _ in range(2 * QUICK.failures):
            with pytest.raises(DimensionMismatch), partial_answers():
                store.dense(EMBEDDER.embed_query("king")[:3], top_k=3)
        assert len(store.lexical("Lothair", top_k=9)) == 3


# -- second tries --------------------------------------------------------------------------------------


def test_a_late_read_is_tried_again_and_the_first_answer_counts() -> None:
    line, calls = Line("slow", replace(QUICK, read_seconds=5.0)), []
    hung = threading.Event()

    def read() -> str:
        calls.append(time.monotonic())
        if len(calls) == 1:
            hung.wait(5)
        return "read"

    begun = time.monotonic()
    asked = line.ask(read)
    settle([asked])
    hung.set()
    assert asked.answer == "read"
    assert len(calls) == 2
    assert QUICK.hedge_seconds <= calls[1] - begun < 2.0
    line.end()


def test_a_read_that_fails_once_is_tried_again() -> None:
    line, calls = Line("shaky", QUICK), []

    def read() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise StoreUnavailable("cut off in the middle")
        return "read"

    asked = line.ask(read)
    settle([asked])
    assert (asked.answer, len(calls)) == ("read", 2)
    line.end()


def test_what_is_usual_follows_the_cell() -> None:
    line = Line("steady", QUICK)
    for _ in range(100):
        line.succeeded(0.3)
    assert line.usual() == 0.3
    for _ in range(200):
        line.succeeded(0.001)
    assert line.usual() == QUICK.hedge_seconds


def test_a_use_is_counted_once_however_late(federation: Federation, cabling: Cabling) -> None:
    fact = KING.facts[0].id
    with opened(federation, "a,b,c") as store:
        store.statistics()
        cabling.late["east"] = 2 * QUICK.hedge_seconds
        store.touch(facts=[fact], at=day("2024-06-01"))
        assert store.facts([fact])[fact].access_count == 1


# -- the breaker ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [hang, be_gone])
def test_a_cell_that_fails_is_left_alone_and_comes_back_by_itself(
    fault: Callable[[Cabling, str], None], waylore: Waylore, cabling: Cabling
) -> None:
    fault(cabling, "west")
    for _ in range(QUICK.failures):
        assert waylore.search(QUESTION, method="keyword", count_use=False).missing
    asked, begun = len(cabling.calls), time.monotonic()
    found = waylore.search(QUESTION, method="keyword", count_use=False)
    assert time.monotonic() - begun < QUICK.read_seconds / 2
    assert "west" not in {cell for cell, _ in cabling.calls[asked:]}
    assert "left alone" in found.missing[0]
    cabling.hanging.clear()  # those that hang still do: others must take their place
    cabling.gone.clear()
    deadline = time.monotonic() + 5
    while waylore.search(QUESTION, method="keyword", count_use=False).missing:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(waylore.search(QUESTION, method="keyword", count_use=False).hits) == 3


def test_a_cell_that_hangs_holds_up_no_other(federation: Federation, cabling: Cabling) -> None:
    with opened(federation, "a") as one, opened(federation, "c") as other:
        assert one.statistics().documents == other.statistics().documents == 1
        hang(cabling, "west")
        threads = [threading.Thread(target=_refused, args=(other.statistics,)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            begun = time.monotonic()
            assert one.statistics().documents == 1
            assert time.monotonic() - begun < QUICK.read_seconds / 2
        for thread in threads:
            thread.join()


def _refused(verb: Callable[[], object]) -> None:
    with pytest.raises(StoreUnavailable):
        verb()
