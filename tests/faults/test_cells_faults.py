"""Three real servers as cells, one of which fails: small samples of `benchmarks.faults`."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from benchmarks.faults import cells, notes
from benchmarks.faults.cells import CONFIG, FAULTY, NAMES, federated
from benchmarks.faults.load import Report
from benchmarks.faults.servers import SAMPLE, Size
from tools.postgres import HOST

from faults.test_postgres_faults import check
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import open_federated
from waylore.store.protocol import Store

SMALL = replace(SAMPLE, searches=16.0, writes=4.0)


@pytest.mark.parametrize("fault", [cells.hanging, cells.late])
def test_the_others_answer_in_time_and_the_cell_comes_back_by_itself(fault: Callable[[Size], Report]) -> None:
    report = fault(SMALL)
    check(report, *(f"cell {name}" for name in NAMES), f"{HOST}:")
    notes_of_missing = {note for r in report.requests for note in r.missing}
    assert notes_of_missing
    assert all(note.startswith(f"cell {FAULTY}") for note in notes_of_missing)
    assert any("left alone" in note for note in notes_of_missing)  # the breaker opened
    last = max(report.requests, key=lambda r: r.begun)
    assert (last.error, last.missing) == (None, ())  # and closed
    assert all(r.error is None for r in report.requests if r.kind != "write")


def test_a_second_try_answers_for_one_that_is_late() -> None:
    report = cells.slow(SMALL)
    check(report)
    assert report.errors == {}
    assert report.partial == 0


def test_a_cell_that_hangs_keeps_no_other_from_being_opened() -> None:
    """A process that starts while a cell hangs: the others must not queue behind it."""

    def as_a_new_process(url: str, collection: str) -> Store:
        return open_cell(f"{url}?application_name=another", collection)

    with federated(SMALL) as trio, trio.proxies["east"].hanging():
        federation = Federation(trio.federation.catalogue, as_a_new_process, CONFIG)
        begun = time.monotonic()
        with notes.opened(open_federated(federation, "a,b,c")) as waylore:
            found = waylore.search("Which ship lies at Pier 3?", count_use=False)
        assert time.monotonic() - begun < 4 * CONFIG.read_seconds
        assert [note.split(":")[0] for note in found.missing] == ["cell east"]
        assert found.hits
