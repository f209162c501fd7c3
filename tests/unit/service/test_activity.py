"""Searches are counted by the decision of the gate and by the time of each stage, from any thread."""

from concurrent.futures import ThreadPoolExecutor

from waylore.service.activity import BOUNDS, MAX_COLLECTIONS, Activity, CollectionActivity
from waylore.types.results import Receipt
from waylore.types.search import SearchResult


def observe(activity: CollectionActivity, result: object) -> None:
    with activity.observe("search") as record:
        record(result)


def test_searches_are_counted_and_other_results_are_not() -> None:
    activity = CollectionActivity()
    observe(activity, SearchResult("a", (), gate="open", seconds={"fuse": 0.001, "walk": 60.0}))
    observe(activity, SearchResult("a", (), gate="unsure", seconds={"fuse": 0.002}, from_cache=True))
    observe(activity, Receipt())
    seen = activity.report()
    assert seen.gate == {"open": 1, "unsure": 1}
    assert seen.stages == {"fuse": (1, *[0] * len(BOUNDS)), "walk": (*[0] * len(BOUNDS), 1)}


def test_no_count_is_lost_between_threads() -> None:
    activity = CollectionActivity()
    with ThreadPoolExecutor(8) as threads:
        for _ in range(2_000):
            threads.submit(observe, activity, SearchResult("a", (), seconds={"fuse": 0.01}))
    assert activity.report().gate == {"open": 2_000}
    assert sum(activity.report().stages["fuse"]) == 2_000


def test_few_collections_are_kept() -> None:
    activity = Activity()
    first = activity.get("0")
    assert activity.get("0") is first
    for number in range(MAX_COLLECTIONS):
        activity.get(str(number + 1))
    assert activity.get("0") is not first
    last = activity.get("last")
    activity.forget("last")
    activity.forget("unknown")
    assert activity.get("last") is not last
