"""A load with many processes gives what adding with one gives, by export, whatever is killed or changed in between."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import psycopg
import pytest
from tools.waiting import wait_until

from databases import create_database
from loading.loads import add, export, load, make_job, write_corpus, write_rows
from surfaces.commands import COMMAND, environment
from waylore.cells.admin import add_cell
from waylore.cells.open import create_catalogue
from waylore.store.postgres.scope import compute_key
from waylore.store.urls import open_store

SKIPPED = {"broken.parquet", "rows.jsonl#line=122"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus")


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "loaded.waylore")
    request.getfixturevalue("postgres")
    return create_database()


def test_load_gives_what_adding_gives(corpus: Path, target: str, tmp_path: Path) -> None:
    added = add(corpus, str(tmp_path / "added.waylore"))
    loaded = load(corpus, target, writers=2 if "://" in target else 1)
    assert export(target) == export(str(tmp_path / "added.waylore"))
    counts = ("files", "unchanged", "documents", "passages", "forgotten", "skipped_count")
    assert [getattr(loaded, name) for name in counts] == [getattr(added, name) for name in counts]
    assert {each.uri for each in loaded.skipped} == {each.uri for each in added.skipped} == SKIPPED


def test_second_load_and_adding_find_everything_unchanged(corpus: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "loaded.waylore")
    (corpus / "broken.parquet").unlink()
    write_clean_rows(corpus / "rows.jsonl")
    first, second, third = load(corpus, url), load(corpus, url), add(corpus, url)
    assert first.documents > 200
    assert [(each.documents, each.unchanged) for each in (second, third)] == [(0, first.files)] * 2


@pytest.mark.full
def test_load_finds_added_files_unchanged(corpus: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "added.waylore")
    (corpus / "broken.parquet").unlink()
    write_clean_rows(corpus / "rows.jsonl")
    added, loaded = add(corpus, url), load(corpus, url)
    assert (loaded.documents, loaded.unchanged) == (0, added.files)


@pytest.mark.full
def test_changed_and_shortened_files_replace_their_documents(corpus: Path, target: str, tmp_path: Path) -> None:
    load(corpus, target)
    before = len(export(target))
    write_rows(corpus / "rows.jsonl", Random(9), 60)
    (corpus / "notes" / "3.md").write_text("# Note 3\n\nAda Lovelace left London.\n", "utf-8")
    (corpus / "people.csv").write_text("", "utf-8")
    report = load(corpus, target)
    add(corpus, str(tmp_path / "fresh.waylore"))
    assert export(target) == export(str(tmp_path / "fresh.waylore"))
    assert report.forgotten == before - len(export(target)) == 62


@pytest.mark.usefixtures("postgres")
def test_documents_are_spread_over_the_collections_of_cells(corpus: Path, tmp_path: Path) -> None:
    url = make_cells(tmp_path, 2)
    names = ("docs-0", "docs-1", "docs-2")
    job = make_job(corpus, url, names, cells=2)
    first, second = load(corpus, url, names, job=job, writers=2), load(corpus, url, names, job=job, writers=2)
    add(corpus, str(tmp_path / "added.waylore"))
    assert export(url, names) == export(str(tmp_path / "added.waylore"))
    assert all(len(export(url, [name])) > 50 for name in names)
    assert (second.documents, second.unchanged) == (0, first.files - len(SKIPPED))


def make_cells(folder: Path, count: int) -> str:
    """Create a catalogue of cells on databases, and return its URL."""
    with closing(create_catalogue(str(folder / "catalogue.waylore"))) as catalogue:
        for number in range(count):
            add_cell(catalogue, f"cell-{number}", create_database())
    return f"cells+sqlite:///{folder / 'catalogue.waylore'}"


def write_clean_rows(path: Path) -> None:
    """Remove the broken line, so that the file is complete."""
    path.write_text(path.read_text("utf-8").replace("{broken\n", ""), "utf-8")


# -- kills ----------------------------------------------------------------------------------------------


@pytest.mark.full
def test_killed_process_is_replaced(corpus: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "loaded.waylore")
    driver = start_load(corpus, url, tmp_path)
    try:
        killed = wait_until(lambda: next(iter(list_workers(driver.pid)), None))
        os.kill(killed, signal.SIGKILL)
        assert driver.wait(120) == 0
    finally:
        end(driver)
    add(corpus, str(tmp_path / "added.waylore"))
    assert export(url) == export(str(tmp_path / "added.waylore"))


def test_killed_load_resumes_from_what_is_stored(tmp_path: Path) -> None:
    corpus, url = write_corpus(tmp_path / "corpus", rows=800), str(tmp_path / "loaded.waylore")
    driver = start_driver(corpus, url, 1)
    try:
        wait_until(lambda: count_documents(url) > 100)
    finally:
        end(driver)
    stored = count_documents(url)
    report = load(corpus, url)
    add(corpus, str(tmp_path / "added.waylore"))
    assert export(url) == export(str(tmp_path / "added.waylore"))
    assert report.documents == count_documents(url) - stored > 0
    assert report.passages == report.documents, "stored documents are neither embedded nor written again"


def start_load(source: Path, url: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start `waylore load` as a process of its own."""
    return subprocess.Popen(
        [*COMMAND, "load", str(source), "--root", str(source), "--store", url, "--workers", "2"],
        cwd=folder,
        env=environment(WAYLORE_EMBEDDING_PROVIDER="hashing"),
    )


def start_driver(source: Path, url: str, writers: int) -> subprocess.Popen[bytes]:
    """Start a load in small units as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "loading.driver", str(source), url, str(writers)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def end(driver: subprocess.Popen[bytes]) -> None:
    """Kill the driver; its processes end when they find that it is gone."""
    if driver.poll() is None:
        os.kill(driver.pid, signal.SIGKILL)
    driver.wait()


def list_workers(pid: int) -> Iterator[int]:
    """Yield the processes that prepare for a driver."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    for child in map(int, children):
        if b"loading.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
            yield child


def count_documents(url: str) -> int:
    """Return the number of documents of a store, 0 if it does not exist yet."""
    if "://" not in url and not Path(url).exists():
        return 0
    with closing(open_store(url)) as store:
        return store.statistics().documents


# -- limits ---------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.usefixtures("postgres")
def test_no_cell_has_more_writers_than_allowed_and_no_file_is_read_far_ahead(tmp_path: Path) -> None:
    """While the collection is locked, three writers wait, and nothing more is read than some batches."""
    corpus = tmp_path / "long.jsonl"
    write_rows(corpus, Random(5), 3_000)
    url = create_database()
    with psycopg.connect(url) as db:
        driver = start_driver(corpus, url, 3)
        try:
            wait_until(lambda: count_documents(url) > 0)
            db.execute("SELECT pg_advisory_xact_lock(%s)", [compute_key("default")])
            wait_until(lambda: count_waiting(url) == 3)
            place = wait_until(lambda: find_stop(driver.pid, corpus))
            assert 0 < place < corpus.stat().st_size / 2
            assert count_waiting(url) == 3
        finally:
            end(driver)


def find_stop(pid: int, file: Path) -> int:
    """Return how far a process has read a file; 0 if it still reads."""
    places = []
    for _ in range(20):
        time.sleep(0.1)
        places.append(find_place(pid, file))
    return places[-1] if len(set(places)) == 1 else 0


def count_waiting(url: str) -> int:
    """Return the number of transactions that wait for the lock of a collection."""
    with psycopg.connect(url) as db:
        waiting = db.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchone()
    return int(waiting[0]) if waiting else 0


def find_place(pid: int, file: Path) -> int:
    """Return how far a process has read a file that it has open."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if link.resolve() == file.resolve():
            return int(Path(f"/proc/{pid}/fdinfo/{link.name}").read_text("utf-8").split()[1])
    return 0
