"""The conformance suite on one collection of a federation, of files and of servers, and how one is opened."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cells.cells import CELLS, catalogue, opened, placed, spread
from databases import opening
from waylore import Waylore
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import open_federated
from waylore.errors import ConfigError, NotFound, StoreUnavailable
from waylore.store.urls import open_store
from waylore.testing.suite import KING, MODEL, QUEEN, SECRET, OpenStore, StoreConformance


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    made = Federation(catalogue(tmp_path), open_cell)
    yield made
    made.close()


class TestOneCollectionInCells(StoreConformance):
    @pytest.fixture
    def open_store(self, federation: Federation) -> OpenStore:
        return lambda collection: open_federated(federation, collection)


class TestOneCollectionOnServers(StoreConformance):
    @pytest.fixture
    def open_store(self, three_cells: Federation) -> Iterator[OpenStore]:
        with opening(lambda name: open_federated(three_cells, name)) as open_store:
            yield open_store


# -- opening -------------------------------------------------------------------------------------------


def test_new_collections_come_to_the_cell_that_has_the_fewest(federation: Federation) -> None:
    for name in ("a", "b", "c", "d"):
        open_federated(federation, name).close()
    assert [placed(federation, name).cell for name in ("a", "b", "c", "d")] == [*CELLS, "east"]


def test_an_address_opens_a_federation(tmp_path: Path) -> None:
    catalogue(tmp_path).close()
    url = f"cells+sqlite:///{tmp_path / 'catalogue.waylore'}"
    with Waylore.open(url, collection="notes") as memory:
        memory.add("The ferry leaves at noon.")
    with Waylore.open(url, collection="more") as memory:
        memory.add("The ferry is late.")
    with Waylore.open(url, collection="*") as memory:
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
    with pytest.raises(ConfigError, match=r"waylore\.store\.cells\.add"):
        open_store(f"cells+sqlite:///{tmp_path / 'catalogue.waylore'}", "notes")


def test_a_cell_that_is_gone_is_not_taken_for_an_empty_one(tmp_path: Path, federation: Federation) -> None:
    with opened(federation, "notes") as store:
        store.write([KING], model=MODEL)
    (tmp_path / "east.waylore").unlink()
    with opened(federation, "notes") as store, pytest.raises(StoreUnavailable, match=r"east.*is gone"):
        store.lexical("king", top_k=3)
    assert not (tmp_path / "east.waylore").exists()
