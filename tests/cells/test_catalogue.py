"""Both catalogues follow the protocol and give the same answers."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.waiting import wait_until

from cells.cells import CELLS
from databases import create_database, get_server_url
from waylore.cells import admin
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.catalogue.protocol import Catalogue, Cell, CollectionPlacement
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.open import create_catalogue
from waylore.errors import ConfigError, Forbidden, SchemaOutdated, StoreUnavailable
from waylore.store.sqlite.file import open_file
from waylore.store.urls import open_store

Opening = Callable[[], Catalogue]
MOVER = """
import sys, time
from waylore.cells.open import open_catalogue
with open_catalogue(sys.argv[1]).lock_moves():
    print("moving", flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a catalogue that does not exist yet."""
    return create_database() if request.param == "postgres" else f"sqlite:///{tmp_path / 'catalogue.waylore'}"


@pytest.fixture
def opening(url: str) -> Iterator[Opening]:
    """Return a function that opens the catalogue as another process does."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(create_catalogue(url)))


@pytest.fixture
def catalogue(opening: Opening) -> Catalogue:
    """Return a catalogue of three cells."""
    made = opening()
    for name in CELLS:
        made.set_cell(Cell(name, f"{name}.waylore"))
    return made


# -- cells ---------------------------------------------------------------------------------------------


def test_list_cells_includes_their_collections(tmp_path: Path, catalogue: Catalogue) -> None:
    catalogue.place("notes")
    listed = admin.list_cells(catalogue)
    assert [(info.cell.name, info.collections) for info in listed] == [
        ("east", ("notes",)),
        ("north", ()),
        ("west", ()),
    ]
    version = catalogue.version()
    admin.add_cell(catalogue, "south", str(tmp_path / "south.waylore"))
    assert catalogue.version() > version


def test_add_cell_refuses_used_name_or_url(tmp_path: Path, catalogue: Catalogue) -> None:
    admin.add_cell(catalogue, "south", str(tmp_path / "south.waylore"))
    admin.add_cell(catalogue, "south", str(tmp_path / "south.waylore"))
    for name, file in (("other", "south.waylore"), ("south", "other.waylore")):
        with pytest.raises(ConfigError, match=r"in use; the cells are east, north, south, west"):
            admin.add_cell(catalogue, name, str(tmp_path / file))


def test_cell_repr_hides_password() -> None:
    assert "secret" not in repr(Cell("east", "postgresql://me:secret@host/db"))


# -- placements ----------------------------------------------------------------------------------------


def test_new_collection_goes_to_emptiest_active_cell(catalogue: Catalogue) -> None:
    assert [catalogue.place(name).cell for name in "abcd"] == [*CELLS, "east"]
    catalogue.set_cell(replace(catalogue.get_cells()["north"], state="draining"))
    assert [catalogue.place(name).cell for name in "efgb"] == ["west", "east", "west", "north"]


@pytest.mark.parametrize("name", ["", "a*", "a,b", "+a"])
def test_place_refuses_reserved_characters(name: str, catalogue: Catalogue) -> None:
    with pytest.raises(ConfigError, match="must not be empty or contain"):
        catalogue.place(name)


def test_catalogue_without_cells_names_remedy(url: str) -> None:
    create_catalogue(url).close()
    with pytest.raises(ConfigError, match=r"no active cell for collection 'notes'.*waylore cells add"):
        open_store(f"cells+{url}", "notes")


def test_change_is_visible_to_other_connections(catalogue: Catalogue, opening: Opening) -> None:
    other, before = opening(), catalogue.place("notes")
    moving = catalogue.change(before, replace(before, state="copying", other="west"))
    assert moving is not None
    assert other.find_placements(["notes", "unknown"]) == {"notes": moving}
    assert other.list_collections("west") == other.list_collections("east") == other.list_collections() == ("notes",)
    assert other.version() == catalogue.version() == moving.version > before.version


def test_only_first_of_concurrent_changes_applies(catalogue: Catalogue, opening: Opening) -> None:
    before = catalogue.place("notes")
    others = [opening() for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        for turn in range(10):
            changes = [partial(o.change, before, replace(before, base=turn * 10 + n)) for n, o in enumerate(others)]
            made = [done for done in threads.map(lambda change: change(), changes) if done]
            assert len(made) == 1
            assert catalogue.find_placements(["notes"]) == {"notes": made[0]}
            before = made[0]


def test_concurrent_placements_agree(catalogue: Catalogue, opening: Opening) -> None:
    others = [opening() for _ in range(6)]
    names = [f"collection {n}" for n in range(12)]
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda other: {name: other.place(name) for name in names}, others))
    assert all(places == answers[0] for places in answers)
    assert sorted(len(catalogue.list_collections(cell)) for cell in CELLS) == [4, 4, 4]


# -- moving --------------------------------------------------------------------------------------------


def test_lock_moves_excludes_other_movers(catalogue: Catalogue, opening: Opening) -> None:
    other = opening()
    with (
        catalogue.lock_moves(),
        pytest.raises(StoreUnavailable, match="another process is moving"),
        other.lock_moves(),
    ):
        pass
    for _ in range(20):  # one after another, at once
        with other.lock_moves():
            pass
        with catalogue.lock_moves():
            pass


def test_killed_mover_releases_lock(catalogue: Catalogue, url: str) -> None:
    mover = subprocess.Popen([sys.executable, "-c", MOVER, url], stdout=subprocess.PIPE, text=True)
    assert mover.stdout is not None
    assert mover.stdout.readline() == "moving\n"
    with pytest.raises(StoreUnavailable, match="another process is moving"), catalogue.lock_moves():
        pass
    os.kill(mover.pid, signal.SIGKILL)
    mover.communicate()
    wait_until(lambda: _can_move(catalogue))  # a server may notice a lost connection late


def _can_move(catalogue: Catalogue) -> bool:
    try:
        with catalogue.lock_moves():
            return True
    except StoreUnavailable:
        return False


# -- both catalogues give the same answers -------------------------------------------------------------

names = st.sampled_from(["a", "b", "Ä", "a b"])
operations = st.one_of(
    st.tuples(st.just("place"), names),
    st.tuples(st.just("cell"), st.sampled_from(CELLS), st.sampled_from(["active", "draining"])),
    st.tuples(st.just("change"), names, st.sampled_from(CELLS), st.booleans()),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder for catalogues in files, and the URL of one in PostgreSQL."""
    return tmp_path_factory.mktemp("both"), create_database()


@settings(max_examples=30)
@given(st.lists(operations, max_size=12))
def test_sqlite_and_postgres_give_the_same_answers(both: tuple[Path, str], done: Sequence[tuple[Any, ...]]) -> None:
    folder, url = both
    file = folder / "catalogue.waylore"
    file.unlink(missing_ok=True)
    with closing(SqliteCatalogue(file)) as one, closing(PostgresCatalogue(url)) as other:
        _run_as_superuser(
            "TRUNCATE waylore_cells.cells, waylore_cells.collections;UPDATE waylore_cells.catalogue SET version = 0",
            url,
        )
        assert _apply_all(one, done) == _apply_all(other, done)
    for left in folder.iterdir():
        left.unlink()


def _apply_all(catalogue: Catalogue, done: Sequence[tuple[Any, ...]]) -> list[object]:
    """Apply operations to a catalogue, and return all of its answers after each."""
    answers: list[object] = []
    for kind, name, *more in done:
        try:
            answers.append(_do(catalogue, kind, name, *more))
        except ConfigError as error:
            answers.append(str(error).split("no active")[-1])
        grown = catalogue.version() > 0
        answers += [
            grown,
            dict(catalogue.get_cells()),
            *(catalogue.list_collections(cell) for cell in ("", *CELLS)),
        ]
        answers.append(catalogue.find_placements(catalogue.list_collections()))
    return answers


def _do(catalogue: Catalogue, kind: str, name: str, *more: Any) -> object:
    if kind == "cell":
        catalogue.set_cell(Cell(name, f"{name}.waylore", more[0]))
        return None
    placed = catalogue.place(name)
    if kind == "place":
        return placed
    cell, is_late = more
    if cell not in catalogue.get_cells():
        return None
    before: CollectionPlacement = replace(placed, version=placed.version - is_late)
    return catalogue.change(before, replace(placed, cell=cell, other=placed.cell, base=placed.base + 1, until=2.5))


# -- the schema, and the server ------------------------------------------------------------------------


def _run_as_superuser(sql: str, url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        done = db.execute(sql)
        return done.fetchall() if done.description else []


def test_newer_schema_is_refused(tmp_path: Path) -> None:
    SqliteCatalogue(tmp_path / "catalogue.waylore").close()
    with open_file(str(tmp_path / "catalogue.waylore")) as db:
        db.execute("INSERT INTO catalogue_migrations VALUES (99, 'from the future', 0, '')")
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        SqliteCatalogue(tmp_path / "catalogue.waylore")
    url = create_database()
    PostgresCatalogue(url).close()
    _run_as_superuser("INSERT INTO waylore_cells.migrations (number, name) VALUES (99, 'from the future')", url)
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        PostgresCatalogue(url)


def test_concurrent_creation_succeeds(url: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(create_catalogue, [url] * 6))
    for each in opened:
        assert each.version() == 0
        each.close()


def test_catalogue_shares_database_with_store() -> None:
    url = create_database()
    open_store(url, "notes").close()
    with closing(PostgresCatalogue(url)) as catalogue:
        catalogue.set_cell(Cell("east", url))
        store = open_store(f"cells+{url}", "notes")
        assert store.statistics().documents == 0
        store.close()


def test_app_role_places_collections_but_adds_no_cells() -> None:
    url = create_database()
    with closing(PostgresCatalogue(url)) as catalogue:
        catalogue.set_cell(Cell("east", "east.waylore"))
    _run_as_superuser("CREATE ROLE waylore_test_catalogue LOGIN IN ROLE waylore_app", get_server_url())
    with closing(PostgresCatalogue(url.replace("//postgres@", "//waylore_test_catalogue@"))) as service:
        placed = service.place("notes")
        assert service.change(placed, replace(placed, base=7)) is not None
        with pytest.raises(Forbidden):
            service.set_cell(Cell("west", "west.waylore"))
        assert list(service.get_cells()) == ["east"]


def test_lost_connections_are_replaced_and_all_are_closed() -> None:
    url = create_database()
    ours = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with closing(PostgresCatalogue(url)) as catalogue:
        catalogue.set_cell(Cell("east", "east.waylore"))
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(catalogue.place, [f"n{i}" for i in range(40)]))
        assert 1 <= len(_run_as_superuser(ours, url)) <= 8
        _run_as_superuser(f"SELECT pg_terminate_backend(pid) FROM ({ours}) AS ours", url)
        assert len(catalogue.list_collections()) == 40
        assert catalogue.place("one more").cell == "east"
    wait_until(lambda: _run_as_superuser(ours, url) == [])
