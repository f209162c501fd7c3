"""Three real servers as cells, one of which fails: small samples of `benchmarks.faults`."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest
from benchmarks.faults import cells, notes
from benchmarks.faults.cells import CONFIG, FAULTY, NAMES, start_three_cells
from benchmarks.faults.load import Report
from benchmarks.faults.servers import SAMPLE, LoadSize
from tools.postgres.server import HOST

from faults.test_postgres_faults import check_report
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import open_federated
from waylore.store.protocol import Store

SMALL = replace(SAMPLE, searches=16.0, writes=4.0)


@pytest.mark.parametrize("fault", [cells.hang_cell, pytest.param(cells.delay_cell, marks=pytest.mark.full)])
def test_other_cells_answer_and_cell_recovers(fault: Callable[[LoadSize], Report]) -> None:
    report = fault(SMALL)
    check_report(report, *(f"cell {name}" for name in NAMES), f"{HOST}:")
    notes_of_missing = {note for r in report.requests for note in r.missing}
    assert notes_of_missing
    assert [note for note in notes_of_missing if not note.startswith(f"cell {FAULTY}")] == []
    assert any("is not read for" in note for note in notes_of_missing)  # the breaker opened
    last = max(report.requests, key=lambda r: r.begun)
    assert (last.error, last.missing) == (None, ())  # and closed
    assert all(r.error is None for r in report.requests if r.kind != "write")


@pytest.mark.full
def test_second_attempt_answers_for_a_late_read() -> None:
    report = cells.slow_cell(SMALL)
    check_report(report)
    assert report.errors == {}
    assert report.partial == 0


def test_hanging_cell_does_not_block_opening_others() -> None:
    """A process that starts while a cell hangs must not queue for the other cells, or they would be missing too."""

    def open_as_new_process(url: str, collection: str) -> Store:
        return open_cell(f"{url}?application_name=another", collection)

    with (
        start_three_cells(SMALL) as trio,
        trio.proxies["east"].hang(),
        closing(Federation(SqliteCatalogue(trio.catalogue), open_as_new_process, CONFIG)) as federation,
        notes.open_collection(open_federated(federation, "a,b,c")) as waylore,
    ):
        found = waylore.search("Which ship lies at Pier 3?", record_use=False)
        assert [note.split(":")[0] for note in found.missing] == ["cell east"]
        assert found.hits
