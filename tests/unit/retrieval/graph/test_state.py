"""A trace knows when each stage began and ended, however stages interleave."""

import time

from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import StoreError
from waylore.retrieval.trace import Trace
from waylore.store.reads import Reads, driven, nothing, side_by_side

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


def stage(trips: int) -> Reads[int]:
    for _ in range(trips):
        yield []
    return trips


@given(NAMES, st.data())
def test_stages_that_go_side_by_side_are_within_the_whole(names: list[str], data: st.DataObject) -> None:
    trace, trips = Trace(), {name: data.draw(st.integers(0, 4)) for name in names}
    before = time.perf_counter()
    driven(side_by_side([trace.reads(n, stage(trips[n]), instead=None) for n in names]), lambda _: ())
    after = time.perf_counter()
    assert set(trace.began) == set(trace.seconds) == set(names)
    for name in names:
        assert before <= trace.began[name] <= trace.began[name] + trace.seconds[name] <= after + 1e-9
    assert sorted(names, key=lambda name: trace.began[name]) == names


def test_one_within_another_is_within_its_time() -> None:
    trace = Trace()
    with trace.stage("graph"), trace.stage("walk"):
        time.sleep(0.001)
    assert trace.began["graph"] <= trace.began["walk"]
    assert trace.seconds["walk"] <= trace.seconds["graph"]


def test_what_fails_has_its_time_too() -> None:
    def failing() -> Reads[None]:
        yield from nothing()
        raise StoreError("no")

    trace = Trace()
    assert driven(trace.reads("dense", failing(), instead=7), lambda _: ()) == 7
    assert trace.asks("embedding", lambda: 1 / 0, instead=None, lost="dense") is None
    assert set(trace.began) == set(trace.seconds) == {"dense", "embedding"}
    assert [missing.partition(":")[0] for missing in trace.missing] == ["dense", "dense"]
