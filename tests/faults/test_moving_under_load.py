"""A collection moves between real servers while it is written and searched: a sample of `benchmarks.faults`."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from benchmarks.faults import moving
from benchmarks.faults.load import Report
from benchmarks.faults.servers import SAMPLE, Size

from faults.test_postgres_faults import check

GENTLE = replace(SAMPLE, searches=10.0)  # a machine with others on it must not be what fails a search


@pytest.mark.parametrize("fault", [moving.moved, moving.mover_killed])
def test_no_search_fails_and_no_write_is_lost(fault: Callable[[Size], Report]) -> None:
    report = fault(GENTLE)
    check(report)
    assert report.errors == {}
    assert report.partial == 0
