"""Many threads use one store: right answers, no leaked connection, a clear error if all are in use."""

from benchmarks.faults.servers import SAMPLE
from benchmarks.faults.threads import exhaust_pool, measure_crowd


def test_24_threads_get_right_answers_and_leak_no_connection() -> None:
    crowd = measure_crowd(SAMPLE, (1, 24))
    assert [one.wrong for one in crowd.throughputs] == [(), ()]
    assert all(one.searches > 0 for one in crowd.throughputs)
    assert crowd.most <= 16
    assert crowd.after == crowd.before
    assert crowd.is_whole


def test_full_pool_raises_error_with_remedy_after_wait_seconds() -> None:
    refusal = exhaust_pool(connections=2, wait_seconds=1.0)
    assert refusal.seconds >= 1.0
    assert "all connections" in refusal.message
    assert "after 1.00 sec" in refusal.message
    assert "more connections or a longer wait_seconds" in refusal.message
