"""The conformance suite on one collection in cells, in files and on servers, and how collections are opened."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cells.cells import CELLS, create_catalogue, create_federation, get_placement, open_stores
from databases import open_collections
from waylore import Waylore
from waylore.cells import open as opening
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import open_federated
from waylore.errors import ConfigError, NotFound, StoreUnavailable
from waylore.store.urls import open_store
from waylore.testing import OpenStore, StoreConformance
from waylore.testing.world import KING, MODEL, QUEEN, SECRET
from waylore.types.author import OWNER


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    made = Federation(create_catalogue(tmp_path), open_cell)
    yield made
    made.close()


@pytest.mark.full  # CI runs it on servers
class TestOneCollectionInCells(StoreConformance):
    @pytest.fixture
    def open_store(self, federation: Federation) -> OpenStore:
        return lambda collection: open_federated(federation, collection)


class TestOneCollectionOnServers(StoreConformance):
    @pytest.fixture
    def open_store(self, three_cells: Federation) -> Iterator[OpenStore]:
        with open_collections(lambda name: open_federated(three_cells, name)) as open_store:
            yield open_store


# -- opening -------------------------------------------------------------------------------------------


def test_new_collection_goes_to_emptiest_cell(federation: Federation) -> None:
    for name in ("a", "b", "c", "d"):
        open_federated(federation, name).close()
    assert [get_placement(federation, name).cell for name in ("a", "b", "c", "d")] == [*CELLS, "east"]


def test_cells_url_opens_federated_store(tmp_path: Path) -> None:
    create_catalogue(tmp_path).close()
    url = f"cells+sqlite:///{tmp_path / 'catalogue.waylore'}"
    with Waylore.open(url, collection="notes") as memory:
        memory.add("The ferry leaves at noon.")
    with Waylore.open(url, collection="more") as memory:
        memory.add("The ferry is late.")
    with Waylore.open(url, collection="*") as memory:
        assert len(memory.search("ferry").hits) == 2
        with pytest.raises(ConfigError, match=r"open one alone, or mark one with \+ \(\+NAME"):
            memory.add("Another text.")


def test_marked_collection_of_several_is_written(tmp_path: Path) -> None:
    federation = create_federation(tmp_path, {"library": [KING]}, MODEL)
    with open_stores(federation, "+mine,library") as store:
        assert (
            store.write([KING, QUEEN], author=OWNER, model=MODEL) == 2
        )  # a document of another collection is new in this one
        assert store.statistics().documents == 3
        assert [c.document.id for c in store.export()] == sorted([KING.document.id, QUEEN.document.id])
        assert store.forget([KING.document.id], author=OWNER).documents == (KING.document.id,)
        assert KING.document.id in store.documents([KING.document.id])
        assert store.digests([KING.document.id]) == {}
    with open_stores(federation, "+mine,*") as store:
        assert store.write([SECRET], author=OWNER, model=MODEL) == 1
    with open_stores(federation, "mine") as store:
        assert store.statistics().documents == 2
    federation.close()


def test_open_reports_unknown_and_invalid_collections(federation: Federation) -> None:
    with pytest.raises(NotFound, match="no collection b; open it alone"):
        open_federated(federation, "+a,b")
    with pytest.raises(ConfigError, match="a and b are marked for writing"):
        open_federated(federation, "+a,+b")
    with pytest.raises(ConfigError, match="must not be empty or contain"):
        open_federated(federation, "a*")
    with open_stores(federation, "*") as store:
        assert store.statistics().documents == 1 - 1
        assert store.lexical("anything", top_k=3) == ()


def test_catalogue_without_cells_names_remedy(tmp_path: Path) -> None:
    url = f"cells+sqlite:///{tmp_path / 'catalogue.waylore'}"
    with pytest.raises(NotFound, match=r"waylore cells add"):
        open_store(url, "notes")
    opening.create_catalogue(url).close()
    with pytest.raises(ConfigError, match=r"waylore cells add"):
        open_store(url, "notes")


def test_missing_cell_file_is_not_an_empty_cell(tmp_path: Path, federation: Federation) -> None:
    with open_stores(federation, "notes") as store:
        store.write([KING], author=OWNER, model=MODEL)
    (tmp_path / "east.waylore").unlink()
    with (
        open_stores(federation, "notes") as store,
        pytest.raises(StoreUnavailable, match=r"east.*does not exist"),
    ):
        store.lexical("king", top_k=3)
    assert not (tmp_path / "east.waylore").exists()
