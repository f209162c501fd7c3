"""Both catalogues keep what the protocol says, and give the same answers to the same questions."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cells.cells import CELLS
from databases import database, server
from waylore.cells import admin
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.catalogue.protocol import Catalogue, Cell, Placed
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.open import open_catalogue
from waylore.errors import ConfigError, Forbidden, SchemaOutdated, StoreUnavailable
from waylore.store.urls import open_store

Opening = Callable[[], Catalogue]
MOVER = """
import sys, time
from waylore.store import open_catalogue
with open_catalogue(sys.argv[1]).moving():
    print("moving", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a catalogue that is not there yet."""
    return database() if request.param == "postgres" else f"sqlite:///{tmp_path / 'catalogue.waylore'}"


@pytest.fixture
def opening(url: str) -> Iterator[Opening]:
    """Opens the catalogue anew, as another process would."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(open_catalogue(url)))


@pytest.fixture
def catalogue(opening: Opening) -> Catalogue:
    """A catalogue of three cells."""
    made = opening()
    for name in CELLS:
        made.set_cell(Cell(name, f"{name}.waylore"))
    return made


# -- cells ---------------------------------------------------------------------------------------------


def test_cells_are_listed_with_what_lives_in_them(tmp_path: Path, catalogue: Catalogue) -> None:
    catalogue.place("notes")
    listed = admin.listed(catalogue)
    assert [(info.cell.name, info.collections) for info in listed] == [
        ("east", ("notes",)),
        ("north", ()),
        ("west", ()),
    ]
    version = catalogue.version()
    admin.add(catalogue, "south", str(tmp_path / "south.waylore"))
    assert catalogue.version() > version


def test_a_cell_has_one_name_and_one_address(tmp_path: Path, catalogue: Catalogue) -> None:
    admin.add(catalogue, "south", str(tmp_path / "south.waylore"))
    admin.add(catalogue, "south", str(tmp_path / "south.waylore"))
    for name, file in (("other", "south.waylore"), ("south", "other.waylore")):
        with pytest.raises(ConfigError, match=r"in use: the cells are east, north, south, west"):
            admin.add(catalogue, name, str(tmp_path / file))


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(Cell("east", "postgresql://me:secret@host/db"))


# -- places --------------------------------------------------------------------------------------------


def test_a_new_collection_comes_to_the_active_cell_that_has_the_fewest(catalogue: Catalogue) -> None:
    assert [catalogue.place(name).cell for name in "abcd"] == [*CELLS, "east"]
    catalogue.set_cell(replace(catalogue.cells()["north"], state="draining"))
    assert [catalogue.place(name).cell for name in "efgb"] == ["west", "east", "west", "north"]


@pytest.mark.parametrize("name", ["", "a*", "a,b", "+a"])
def test_a_name_that_could_not_be_opened_is_refused(name: str, catalogue: Catalogue) -> None:
    with pytest.raises(ConfigError, match="leave out"):
        catalogue.place(name)


def test_a_catalogue_without_cells_says_what_to_do(url: str) -> None:
    with pytest.raises(ConfigError, match=r"no active cell for 'notes'.*waylore\.store\.cells\.add"):
        open_store(f"cells+{url}", "notes")


def test_what_one_changes_others_read(catalogue: Catalogue, opening: Opening) -> None:
    other, before = opening(), catalogue.place("notes")
    moving = catalogue.change(before, replace(before, state="copying", other="west"))
    assert moving is not None
    assert other.placed(["notes", "unknown"]) == {"notes": moving}
    assert other.names("west") == other.names("east") == other.names() == ("notes",)
    assert other.version() == catalogue.version() == moving.version > before.version


def test_a_change_is_made_only_by_the_first_of_those_who_read_the_same(
    catalogue: Catalogue, opening: Opening
) -> None:
    before = catalogue.place("notes")
    others = [opening() for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        for turn in range(10):
            changes = [
                partial(o.change, before, replace(before, base=turn * 10 + n)) for n, o in enumerate(others)
            ]
            made = [done for done in threads.map(lambda change: change(), changes) if done]
            assert len(made) == 1
            assert catalogue.placed(["notes"]) == {"notes": made[0]}
            before = made[0]


def test_many_place_at_once_and_agree(catalogue: Catalogue, opening: Opening) -> None:
    others = [opening() for _ in range(6)]
    names = [f"collection {n}" for n in range(12)]
    with ThreadPoolExecutor(6) as threads:
        told = list(threads.map(lambda other: {name: other.place(name) for name in names}, others))
    assert all(places == told[0] for places in told)
    assert sorted(len(catalogue.names(cell)) for cell in CELLS) == [4, 4, 4]


# -- moving --------------------------------------------------------------------------------------------


def test_one_moves_at_a_time(catalogue: Catalogue, opening: Opening) -> None:
    other = opening()
    with (
        catalogue.moving(),
        pytest.raises(StoreUnavailable, match="somebody else is moving"),
        other.moving(),
    ):
        pass
    for _ in range(20):  # one after another, at once
        with other.moving():
            pass
        with catalogue.moving():
            pass


def test_a_mover_that_is_killed_holds_up_nobody(catalogue: Catalogue, url: str) -> None:
    mover = subprocess.Popen([sys.executable, "-c", MOVER, url], stdout=subprocess.PIPE, text=True)
    assert mover.stdout is not None
    assert mover.stdout.readline() == "moving\n"
    with pytest.raises(StoreUnavailable, match="somebody else is moving"), catalogue.moving():
        pass
    os.kill(mover.pid, signal.SIGKILL)
    mover.communicate()
    _eventually(lambda: _moves(catalogue))


def _moves(catalogue: Catalogue) -> bool:
    try:
        with catalogue.moving():
            return True
    except StoreUnavailable:
        return False


def _eventually(holds: Callable[[], bool]) -> None:
    """A server may take a moment to notice that someone is gone."""
    for _ in range(100):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("that did not become true within five seconds")


# -- both say the same ---------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "Ä", "a b"])
operations = st.one_of(
    st.tuples(st.just("place"), names),
    st.tuples(st.just("cell"), st.sampled_from(CELLS), st.sampled_from(["active", "draining"])),
    st.tuples(st.just("change"), names, st.sampled_from(CELLS), st.booleans()),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder for catalogues in files, and the address of one in PostgreSQL."""
    return tmp_path_factory.mktemp("both"), database()


@settings(max_examples=30)
@given(st.lists(operations, max_size=12))
def test_both_give_the_same_answers(both: tuple[Path, str], done: Sequence[tuple[Any, ...]]) -> None:
    folder, url = both
    file = folder / "catalogue.waylore"
    file.unlink(missing_ok=True)
    with closing(SqliteCatalogue(file)) as one, closing(PostgresCatalogue(url)) as other:
        _superuser(
            "TRUNCATE waylore_cells.cells, waylore_cells.collections; UPDATE waylore_cells.catalogue SET version = 0",
            url,
        )
        assert _told(one, done) == _told(other, done)
    for left in folder.iterdir():
        left.unlink()


def _told(catalogue: Catalogue, done: Sequence[tuple[Any, ...]]) -> list[object]:
    """All that a catalogue says while things are done to it."""
    told: list[object] = []
    for kind, name, *more in done:
        try:
            told.append(_do(catalogue, kind, name, *more))
        except ConfigError as error:
            told.append(str(error).split("no active")[-1])
        grown = catalogue.version() > 0
        told += [grown, dict(catalogue.cells()), *(catalogue.names(cell) for cell in ("", *CELLS))]
        told.append(catalogue.placed(catalogue.names()))
    return told


def _do(catalogue: Catalogue, kind: str, name: str, *more: Any) -> object:
    if kind == "cell":
        catalogue.set_cell(Cell(name, f"{name}.waylore", more[0]))
        return None
    placed = catalogue.place(name)
    if kind == "place":
        return placed
    cell, is_late = more
    if cell not in catalogue.cells():
        return None
    before: Placed = replace(placed, version=placed.version - is_late)
    return catalogue.change(
        before, replace(placed, cell=cell, other=placed.cell, base=placed.base + 1, until=2.5)
    )


# -- the schema, and the server ------------------------------------------------------------------------


def _superuser(sql: str, url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        done = db.execute(sql)
        return done.fetchall() if done.description else []


def test_a_newer_catalogue_is_refused(tmp_path: Path) -> None:
    SqliteCatalogue(tmp_path / "catalogue.waylore").close()
    with apsw.Connection(str(tmp_path / "catalogue.waylore")) as db:
        db.execute("UPDATE catalogue SET schema = 99")
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        SqliteCatalogue(tmp_path / "catalogue.waylore")
    url = database()
    PostgresCatalogue(url).close()
    _superuser("INSERT INTO waylore_cells.migrations (number, name) VALUES (99, 'from the future')", url)
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        PostgresCatalogue(url)


def test_many_may_make_it_at_once(url: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(open_catalogue, [url] * 6))
    for each in opened:
        assert each.version() == 0
        each.close()


def test_it_shares_a_database_with_a_store() -> None:
    url = database()
    open_store(url, "notes").close()
    with closing(PostgresCatalogue(url)) as catalogue:
        catalogue.set_cell(Cell("east", url))
        store = open_store(f"cells+{url}", "notes")
        assert store.statistics().documents == 0
        store.close()


def test_an_application_places_collections_but_makes_no_cells() -> None:
    url = database()
    with closing(PostgresCatalogue(url)) as catalogue:
        catalogue.set_cell(Cell("east", "east.waylore"))
    _superuser("CREATE ROLE waylore_test_service LOGIN IN ROLE waylore_app", server())
    with closing(PostgresCatalogue(url.replace("//postgres@", "//waylore_test_service@"))) as service:
        placed = service.place("notes")
        assert service.change(placed, replace(placed, base=7)) is not None
        with pytest.raises(Forbidden):
            service.set_cell(Cell("west", "west.waylore"))
        assert list(service.cells()) == ["east"]


def test_connections_that_were_cut_are_replaced_and_none_is_left() -> None:
    url = database()
    ours = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with closing(PostgresCatalogue(url)) as catalogue:
        catalogue.set_cell(Cell("east", "east.waylore"))
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(catalogue.place, [f"n{i}" for i in range(40)]))
        assert 1 <= len(_superuser(ours, url)) <= 8
        _superuser(f"SELECT pg_terminate_backend(pid) FROM ({ours}) AS ours", url)
        assert len(catalogue.names()) == 40
        assert catalogue.place("one more").cell == "east"
    _eventually(lambda: _superuser(ours, url) == [])
