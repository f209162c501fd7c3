"""A replica takes over from its primary under load: samples of `benchmarks.faults`, and a primary that is fenced."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
from benchmarks.faults import failover
from benchmarks.faults.load import Report
from benchmarks.faults.servers import SAMPLE, LoadSize
from tools.postgres.builds import find_plain_build
from tools.postgres.replicas import start_pair
from tools.postgres.server import DURABLE_SETTINGS, HOST
from tools.waiting import wait_until

from faults.test_postgres_faults import check_report
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.catalogue.protocol import Cell
from waylore.errors import StoreUnavailable
from waylore.store.postgres.store import PostgresStore
from waylore.testing.world import KING, MODEL, QUEEN
from waylore.types.author import OWNER


@pytest.mark.parametrize(
    "fault", [failover.fail_over_cell, pytest.param(failover.fail_over_catalogue, marks=pytest.mark.full)]
)
def test_replica_takes_over_and_nothing_is_lost(fault: Callable[[LoadSize], Report]) -> None:
    report = fault(SAMPLE)
    check_report(report, f"{HOST}:")
    assert all(type(r.error) is StoreUnavailable for r in report.requests if r.error)
    assert any(r.kind == "write" and r.is_answered and r.begun > report.since for r in report.requests)


def test_writers_leave_a_primary_that_has_become_read_only() -> None:
    """Connections to the old primary stay open. A write and a change of the catalogue go to the new one."""
    with (
        start_pair(find_plain_build(), settings=DURABLE_SETTINGS) as pair,
        closing(PostgresCatalogue(pair.build_url())) as catalogue,
        closing(PostgresStore(pair.build_url(), "notes")) as store,
    ):
        store.write([KING], author=OWNER, model=MODEL)
        with psycopg.connect(pair.primary.url, autocommit=True) as db:
            db.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            db.execute("SELECT pg_reload_conf()")
            wait_until(lambda: db.execute("SHOW default_transaction_read_only").fetchall() == [("on",)])
        with pytest.raises(StoreUnavailable, match=f"{HOST}:{pair.replica.port}.*"):
            PostgresStore(pair.build_url(), "others", wait_seconds=0.5)
        pair.promote()
        assert store.write([QUEEN], author=OWNER, model=MODEL) == 1
        catalogue.set_cell(Cell("east", "east.waylore"))
        with psycopg.connect(pair.replica.url) as db:
            assert db.execute("SELECT count(*) FROM waylore.documents").fetchall() == [(2,)]
            assert db.execute("SELECT name FROM waylore_cells.cells").fetchall() == [("east",)]
