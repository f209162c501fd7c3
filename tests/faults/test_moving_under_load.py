"""A collection moves between real servers while it is written and searched: a sample of `benchmarks.faults`."""

from collections.abc import Callable

import pytest
from benchmarks.faults import moving
from benchmarks.faults.load import Report
from benchmarks.faults.servers import SAMPLE, Size

from faults.test_postgres_faults import check


@pytest.mark.parametrize("fault", [moving.moved, moving.mover_killed])
def test_no_search_fails_and_no_write_is_lost(fault: Callable[[Size], Report]) -> None:
    report = fault(SAMPLE)
    check(report)
    assert report.errors == {}
    assert report.partial == 0
