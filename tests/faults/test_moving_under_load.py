"""Move a collection between real servers during writes and searches: a sample of `benchmarks.faults`."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from benchmarks.faults import moving
from benchmarks.faults.load import Report
from benchmarks.faults.servers import SAMPLE, LoadSize

from faults.test_postgres_faults import check_report

GENTLE = replace(SAMPLE, searches=10.0)  # few enough that a busy machine does not make a search fail


@pytest.mark.full
@pytest.mark.parametrize("fault", [moving.move_collection, moving.kill_mover])
def test_move_fails_no_search_and_loses_no_write(fault: Callable[[LoadSize], Report]) -> None:
    report = fault(GENTLE)
    check_report(report)
    assert report.errors == {}
    assert report.partial == 0
