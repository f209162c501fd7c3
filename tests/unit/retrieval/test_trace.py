"""A trace records when each stage started and ended, in any interleaving."""

import time

from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import StoreError
from waylore.retrieval.trace import Trace
from waylore.store.reads import Reads, drive, read_nothing, run_together

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


def make_stage(trips: int) -> Reads[int]:
    for _ in range(trips):
        yield []
    return trips


@given(NAMES, st.data())
def test_stages_run_together_overlap_in_time(names: list[str], data: st.DataObject) -> None:
    trace, trips = Trace(), {name: data.draw(st.integers(0, 4)) for name in names}
    before = time.perf_counter()
    drive(run_together([trace.run_stage(n, make_stage(trips[n]), default=None) for n in names]), lambda _: ())
    after = time.perf_counter()
    assert set(trace.started) == set(trace.seconds) == set(names)
    for name in names:
        assert before <= trace.started[name] <= trace.started[name] + trace.seconds[name] <= after + 1e-9
    assert sorted(names, key=lambda name: trace.started[name]) == names


def test_nested_stage_is_within_outer_time() -> None:
    trace = Trace()
    with trace.measure("graph"), trace.measure("walk"):
        time.sleep(0.001)
    assert trace.started["graph"] <= trace.started["walk"]
    assert trace.seconds["walk"] <= trace.seconds["graph"]


def test_failed_stage_is_timed() -> None:
    def failing() -> Reads[None]:
        yield from read_nothing()
        raise StoreError("no")

    trace = Trace()
    assert drive(trace.run_stage("vector", failing(), default=7), lambda _: ()) == 7
    assert trace.call_model("embedding", lambda: 1 / 0, default=None, stage="vector") is None
    assert set(trace.started) == set(trace.seconds) == {"vector", "embedding"}
    assert [missing.partition(":")[0] for missing in trace.missing] == ["vector", "vector"]
