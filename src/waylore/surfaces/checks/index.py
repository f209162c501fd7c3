"""Check the index of a collection on a Qdrant cluster: that it answers, has every item, and is not far behind."""

from collections.abc import Iterator
from contextlib import closing

from waylore.errors import NotFound, WayloreError
from waylore.settings.sections import Settings
from waylore.store.urls import parse_url
from waylore.surfaces.checks.findings import Finding

MAX_LAG_SECONDS = 60.0  # age of the oldest change that the index does not have
MIN_SHARE = 0.99  # share of the items with a point; some passages have neither words nor a vector
FEED = "run `waylore index feed`, and look at the log of the processes that have the collection open"


def check_index(settings: Settings) -> Iterator[Finding]:
    """Check the index of the collection, if it has one."""
    parsed = parse_url(settings.store)
    if parsed.is_cells or not parsed.is_server:
        return
    from waylore.store.postgres.candidates.admin import IndexAdmin, IndexStatus  # noqa: PLC0415 (optional driver)

    def describe(status: IndexStatus) -> Finding:
        lag = f"{status.pending:,} changes behind, the oldest {status.seconds:,.0f} s"
        if status.points is None:
            message = f"{status.problem}; searches use PostgreSQL alone, {lag}"
            return Finding("index", "wrong", message, "start the cluster, or drop the index with `waylore index drop`")
        if not status.is_built:
            return Finding("index", "note", f"{status.url} is being built", FEED)
        if not status.pending and status.points < MIN_SHARE * status.items:
            message = f"{status.url} has {status.points:,} points for {status.items:,} items"
            remedy = "build it again: `waylore index drop`, then `waylore index create URL`"
            return Finding("index", "wrong", message, remedy)
        message = f"{status.url}, {lag if status.pending else 'up to date'}"
        if status.seconds > MAX_LAG_SECONDS:
            return Finding("index", "note", message, FEED)
        return Finding("index", "good", message)

    try:
        with closing(IndexAdmin(settings.store, settings.collection)) as index:
            yield describe(index.read_status())
    except NotFound:
        return
    except WayloreError as error:
        yield Finding("index", "wrong", str(error), FEED)
