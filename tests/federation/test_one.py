"""The conformance suite on one collection in a federation of three cells, and how collections are opened."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from federation.cells import CELLS, catalogue, opened, placed, spread
from weft import Weft
from weft.errors import ConfigError, NotFound, SchemaOutdated, StoreUnavailable
from weft.store import Federation, cells, open_cell, open_federated, open_store
from weft.store.catalogue_sqlite import SqliteCatalogue
from weft.testing import KING, MODEL, QUEEN, SECRET, OpenStore, StoreConformance


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    made = Federation(catalogue(tmp_path), open_cell)
    yield made
    made.close()


class TestOneCollectionInCells(StoreConformance):
    @pytest.fixture
    def open_store(self, federation: Federation) -> OpenStore:
        return lambda collection: open_federated(federation, collection)


# -- opening -------------------------------------------------------------------------------------------


def test_new_collections_come_to_the_cell_that_has_the_fewest(federation: Federation) -> None:
    for name in ("a", "b", "c", "d"):
        open_federated(federation, name).close()
    assert [placed(federation, name).cell for name in ("a", "b", "c", "d")] == [*CELLS, "east"]


def test_an_address_opens_a_federation(tmp_path: Path) -> None:
    catalogue(tmp_path).close()
    url = f"cells+sqlite:///{tmp_path / 'catalogue.weft'}"
    with Weft.open(url, collection="notes") as memory:
        memory.add("The ferry leaves at noon.")
    with Weft.open(url, collection="more") as memory:
        memory.add("The ferry is late.")
    with Weft.open(url, collection="*") as memory:
        assert len(memory.search("ferry").hits) == 2
        with pytest.raises(ConfigError, match=r"open one alone, or mark it \(\+NAME"):
            memory.add("Another text.")


def test_one_of_several_is_written_if_it_is_marked(tmp_path: Path) -> None:
    federation = spread(tmp_path, {"library": [KING]}, MODEL)
    with opened(federation, "+mine,library") as store:
        assert store.write([KING, QUEEN], model=MODEL) == 2  # what is in another collection is not in this one
        assert store.statistics().documents == 3
        assert [c.document.id for c in store.export()] == sorted([KING.document.id, QUEEN.document.id])
        assert store.forget([KING.document.id]).documents == (KING.document.id,)
        assert KING.document.id in store.documents([KING.document.id])
        assert store.digests([KING.document.id]) == {}
    with opened(federation, "+mine,*") as store:
        assert store.write([SECRET], model=MODEL) == 1
    with opened(federation, "mine") as store:
        assert store.statistics().documents == 2
    federation.close()


def test_what_cannot_be_opened_says_so(federation: Federation) -> None:
    with pytest.raises(NotFound, match="no collection b: open it alone"):
        open_federated(federation, "+a,b")
    with pytest.raises(ConfigError, match="a and b cannot be written at once"):
        open_federated(federation, "+a,+b")
    with pytest.raises(ConfigError, match="leave out"):
        open_federated(federation, "a*")
    with opened(federation, "*") as store:
        assert store.statistics().documents == 1 - 1
        assert store.lexical("anything", top_k=3) == ()


def test_a_catalogue_without_cells_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"weft\.store\.cells\.add"):
        open_store(f"cells+sqlite:///{tmp_path / 'catalogue.weft'}", "notes")


def test_a_cell_that_is_gone_is_not_taken_for_an_empty_one(tmp_path: Path, federation: Federation) -> None:
    with opened(federation, "notes") as store:
        store.write([KING], model=MODEL)
    (tmp_path / "east.weft").unlink()
    with opened(federation, "notes") as store, pytest.raises(StoreUnavailable, match=r"east.*is gone"):
        store.lexical("king", top_k=3)
    assert not (tmp_path / "east.weft").exists()


# -- the catalogue -------------------------------------------------------------------------------------


def test_cells_are_listed_with_what_lives_in_them(tmp_path: Path, federation: Federation) -> None:
    open_federated(federation, "notes").close()
    listed = cells.listed(federation.catalogue)
    assert [(info.cell.name, info.collections) for info in listed] == [
        ("east", ("notes",)),
        ("north", ()),
        ("west", ()),
    ]
    version = federation.catalogue.version()
    cells.add(federation.catalogue, "south", str(tmp_path / "south.weft"))
    assert federation.catalogue.version() > version


def test_a_cell_has_one_name_and_one_address(tmp_path: Path, federation: Federation) -> None:
    cells.add(federation.catalogue, "east", str(tmp_path / "east.weft"))
    for name, file in (("south", "east.weft"), ("east", "south.weft")):
        with pytest.raises(ConfigError, match="in use"):
            cells.add(federation.catalogue, name, str(tmp_path / file))


def test_a_newer_catalogue_is_refused(tmp_path: Path) -> None:
    catalogue(tmp_path).close()
    with apsw.Connection(str(tmp_path / "catalogue.weft")) as db:
        db.execute("UPDATE catalogue SET schema = 99")
    with pytest.raises(SchemaOutdated, match="upgrade Weft"):
        SqliteCatalogue(tmp_path / "catalogue.weft")
