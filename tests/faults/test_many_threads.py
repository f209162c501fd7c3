"""Many threads on one store: right answers, no leaked connection, and a clear word when all are in use."""

from benchmarks.faults.servers import SAMPLE
from benchmarks.faults.threads import crowded, exhausted


def test_24_threads_get_right_answers_and_leave_no_connection() -> None:
    crowd = crowded(SAMPLE, (1, 24))
    assert [one.wrong for one in crowd.throughputs] == [(), ()]
    assert all(one.searches > 0 for one in crowd.throughputs)
    assert crowd.most <= 16
    assert crowd.after == crowd.before
    assert crowd.is_whole


def test_one_who_finds_no_connection_free_is_told_in_time_what_to_raise() -> None:
    refused = exhausted(connections=2, wait_seconds=1.0)
    assert 1.0 <= refused.seconds < 4.0
    assert "all connections" in refused.message
    assert "more connections or a longer wait_seconds" in refused.message
