"""The servers of other tests are real, have the promised extensions, and keep acknowledged writes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector
from tools.postgres.builds import MissingRequirement, find_plain_build, find_textsearch_build
from tools.postgres.server import (
    DURABLE_SETTINGS,
    Server,
    ServerFailed,
    start_persistent_server,
    start_server,
    start_servers,
)
from tools.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]
DIMENSION = 16
OLDEST = (1, 5, 1)
OWNER = """
from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_server
with start_server(find_plain_build()) as one:
    print(one.url, one.folder, flush=True)
    input()
"""


@pytest.fixture
def crashing() -> Iterator[Server]:
    """Start a server of this test's own, which may be killed."""
    with start_server(find_plain_build(), settings=DURABLE_SETTINGS) as started:
        yield started


@pytest.mark.parametrize("kind", ["postgres", "textsearch_postgres"])
def test_vectors_are_found_by_hnsw(kind: str, request: pytest.FixtureRequest) -> None:
    vectors = np.random.default_rng(7).normal(size=(500, DIMENSION)).astype(np.float16)
    with request.getfixturevalue(kind).create_database() as url, psycopg.connect(url) as db:
        db.execute("CREATE EXTENSION vector")
        register_vector(db)
        db.execute(f"CREATE TABLE item (id int, near halfvec({DIMENSION}))")
        db.cursor().executemany("INSERT INTO item VALUES (%s, %s)", enumerate(vectors))
        db.execute("CREATE INDEX ON item USING hnsw (near halfvec_cosine_ops)")
        db.execute("SET LOCAL enable_seqscan = off")
        query = "SELECT id FROM item ORDER BY near <=> %s::halfvec LIMIT 1"
        plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN {query}", [vectors[42]]))
        assert "hnsw" in plan or "item_near_idx" in plan
        assert db.execute(query, [vectors[42]]).fetchone() == (42,)


def test_words_are_found_by_bm25(textsearch_postgres: Server) -> None:
    texts = ["the cat sat", "a dog and a cat and a cat", "nothing of the kind", "dog"]
    with textsearch_postgres.create_database() as url, psycopg.connect(url) as db:
        db.execute("CREATE EXTENSION pg_textsearch")
        db.execute("CREATE TABLE item (id int, said text)")
        db.cursor().executemany("INSERT INTO item VALUES (%s, %s)", enumerate(texts))
        db.execute("CREATE INDEX said ON item USING bm25 (said) WITH (text_config = 'simple')")
        query = "SELECT id FROM item WHERE score < 0 ORDER BY 1"
        found = db.execute(
            f"WITH item AS (SELECT id, said <@> to_bm25query('cat', 'said') AS score FROM item) {query}"
        ).fetchall()
        assert found == [(0,), (1,)]


def test_textsearch_is_new_enough(textsearch_postgres: Server) -> None:
    with psycopg.connect(textsearch_postgres.url) as db:
        [version] = db.execute(
            "SELECT default_version FROM pg_available_extensions WHERE name = 'pg_textsearch'"
        ).fetchone() or [""]
    assert tuple(map(int, version.split("."))) >= OLDEST


def test_acknowledged_writes_survive_kill(crashing: Server) -> None:
    with psycopg.connect(crashing.url, autocommit=True) as db:
        assert db.execute("SHOW fsync").fetchone() == ("on",)
        db.execute("CREATE TABLE kept (id int)")
        db.execute("INSERT INTO kept VALUES (1)")
        crashing.kill()
        assert not crashing.is_running
        with pytest.raises(psycopg.OperationalError):
            db.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(crashing.url)
    crashing.start()
    with psycopg.connect(crashing.url) as db:
        assert db.execute("SELECT id FROM kept").fetchall() == [(1,)]
    assert "was not properly shut down" in crashing.log.read_text()


def test_stopped_server_starts_again(crashing: Server) -> None:
    crashing.stop()
    assert not crashing.is_running
    crashing.start()
    psycopg.connect(crashing.url).close()


def test_servers_are_separate_and_leave_no_trace() -> None:
    with start_servers(find_plain_build(), 3) as three:
        for number, one in enumerate(three):
            with psycopg.connect(one.url) as db:
                db.execute("CREATE TABLE own (id int)")
                db.execute("INSERT INTO own VALUES (%s)", [number])
        for number, one in enumerate(three):
            with psycopg.connect(one.url) as db:
                assert db.execute("SELECT id FROM own").fetchall() == [(number,)]
    assert not any(one.is_running or one.folder.exists() for one in three)


def test_servers_end_with_killed_process() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True) as owner:
        assert owner.stdout is not None
        url, folder = owner.stdout.readline().split()
        psycopg.connect(url).close()
        owner.kill()
    wait_until(lambda: not Path(folder).exists())
    wait_until(lambda: is_refused(url))  # a moment later than its folder, the server is gone too


def is_refused(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError as error:
        return "refused" in str(error)
    return False


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_command_runs_servers_until_signal(ending: signal.Signals) -> None:
    command = [sys.executable, "-m", "tools.postgres", "--count", "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=PIPE, text=True) as owner:
        assert owner.stdout is not None
        urls = [owner.stdout.readline().strip() for _ in range(2)]
        for url in urls:
            psycopg.connect(url).close()
        owner.send_signal(ending)
        assert owner.wait(HANG_SECONDS) == 0
    for url in urls:
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(url)


def test_database_is_copied_from_template_and_dropped(postgres: Server) -> None:
    with postgres.create_database() as template:
        with psycopg.connect(template) as db:
            db.execute("CREATE TABLE made (id int)")
        name = template.rpartition("/")[2]
        with postgres.create_database(template=name) as url, psycopg.connect(url) as db:
            assert db.execute("SELECT count(*) FROM made").fetchone() == (0,)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(template)


def test_server_that_cannot_start_reports_reason() -> None:
    with (
        pytest.raises(ServerFailed, match="shared_buffers"),
        start_server(find_plain_build(), settings={"shared_buffers": "none"}),
    ):
        pass


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 error"), ("", "1 skipped")])
def test_missing_server_fails_ci_and_skips_elsewhere(ci: str, outcome: str, tmp_path: Path) -> None:
    wanted = "tests/servers/test_postgres.py::test_textsearch_is_new_enough"
    environment = {**os.environ, "CI": ci, "WAYLORE_TEXTSEARCH": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", wanted]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert outcome in run.stdout, run.stdout + run.stderr
    assert "postgres/textsearch.sh" in run.stdout


def test_textsearch_is_read_from_configured_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tools.postgres.builds.TEXTSEARCH_FOLDER", tmp_path)
    with pytest.raises(MissingRequirement, match=r"postgres/textsearch\.sh"):
        find_textsearch_build()


def test_persistent_server_keeps_data(tmp_path: Path) -> None:
    with (
        start_persistent_server(find_plain_build(), tmp_path / "here") as first,
        psycopg.connect(first.url, autocommit=True) as db,
    ):
        db.execute("CREATE TABLE said AS SELECT 'something' AS what")
    assert not first.is_running
    with (
        start_persistent_server(find_plain_build(), tmp_path / "here") as again,
        psycopg.connect(again.url) as db,
    ):
        assert db.execute("SELECT what FROM said").fetchone() == ("something",)


def test_a_server_that_a_killed_process_left_is_stopped(tmp_path: Path) -> None:
    with start_persistent_server(find_plain_build(), tmp_path / "here") as first:
        with psycopg.connect(first.url, autocommit=True) as db:
            db.execute("CREATE TABLE kept AS SELECT 1 AS number")
        with (
            start_persistent_server(find_plain_build(), tmp_path / "here") as again,
            psycopg.connect(again.url) as db,
        ):
            assert not first.is_running
            assert db.execute("SELECT number FROM kept").fetchone() == (1,)
