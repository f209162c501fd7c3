"""A set is answered alike in a file and on a server, is written once, and is spread over cells.

The set is the four worlds of the acceptance tests. It is small enough for every vector to be compared on both
engines: above 2,000 passages SQLite finds some by their bits, and the last of 80 candidates may differ.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from databases import database
from waylore.cells.members import Federation
from waylore.cells.open import open_catalogue
from waylore.evaluation.__main__ import main
from waylore.evaluation.datasets import Dataset, load
from waylore.evaluation.index import SPREAD, indexed
from waylore.evaluation.run import asked
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES
from waylore.store.protocol import Store
from waylore.types.knowledge import Contribution

GOLDEN = Path(__file__).parents[1] / "acceptance" / "golden"
WORLDS = ("assistant", "family", "papers", "systems")
EMBEDDER = HashingEmbedder(64, quiet=True)


def read(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def rows() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The worlds as a set has them: a page for each document, with its facts as triples, and the questions."""
    documents = [document for world in WORLDS for document in read(world)["documents"]]
    questions = [question for world in WORLDS for question in read(f"{world}.questions")]
    yield "corpus", [{"id": d["uri"], "title": d.get("title", ""), "text": d["text"]} for d in documents]
    yield "triples", [{"passage_id": d["uri"], "triples": _triples(d)} for d in documents]
    yield "queries", [{"id": q["id"], "question": q["question"], "gold": q.get("hits", [])} for q in questions]


def _triples(document: dict[str, Any]) -> list[list[str]]:
    """Facts are lists in some worlds, and told at length in others."""
    facts = document.get("facts", ())
    return [f if isinstance(f, list) else [f["subject"], f["predicate"], f["object"]] for f in facts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sets") / "worlds"
    made.mkdir()
    for name, of_it in rows():
        with gzip.open(made / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in of_it)
    return made


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return load(folder)


@pytest.fixture(scope="module")
def server() -> str:
    return database()


@pytest.fixture(scope="module")
def federation(three_cells: Federation) -> str:
    """The address of the three servers."""
    return f"cells+{three_cells.catalogue.cells()['east'].url}"


def first_five(store: Store, dataset: Dataset, recipe: str) -> dict[str, tuple[str, ...]]:
    return {a.id: a.ranked[:5] for a in asked(store, EMBEDDER, dataset, RECIPES[recipe]).answers}


@pytest.mark.parametrize("recipe", ["hybrid", "chain"])
def test_the_first_five_are_the_same_in_a_file_and_on_a_server(
    recipe: str, dataset: Dataset, server: str
) -> None:
    assert len(dataset.questions) > 50
    with indexed(dataset, EMBEDDER) as file, indexed(dataset, EMBEDDER, url=server) as served:
        assert first_five(file, dataset, recipe) == first_five(served, dataset, recipe)


def test_by_vectors_alone_they_are_the_same_in_cells(dataset: Dataset, federation: str) -> None:
    """Words weigh what they weigh in their own collection, so other recipes may rank a little differently."""
    with indexed(dataset, EMBEDDER) as file, indexed(dataset, EMBEDDER, url=federation) as spread:
        assert first_five(file, dataset, "vector") == first_five(spread, dataset, "vector")
        assert spread.statistics().passages == file.statistics().passages
        assert sorted(map(_identity, spread.export())) == sorted(map(_identity, file.export()))
    catalogue = open_catalogue(federation)
    placed = catalogue.placed([name for name in catalogue.names() if name.startswith("worlds.")])
    catalogue.close()
    assert len(placed) == SPREAD


def _identity(contribution: Contribution) -> tuple[str, str]:
    return contribution.document.id, contribution.digest


@pytest.mark.parametrize("store", ["server", "federation"])
def test_a_set_that_is_there_is_not_written_again(
    store: str, dataset: Dataset, request: pytest.FixtureRequest
) -> None:
    versions = []
    for _ in range(2):
        with indexed(dataset, EMBEDDER, url=request.getfixturevalue(store)) as found:
            versions.append(found.version())
    assert versions[0] == versions[1] > 0


def test_the_command_line_takes_an_address(
    folder: Path, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--sample", "5", "--embedder", "hashing"]
    assert main(["--data", str(folder.parent), "--sets", "worlds", "--store", server, *options]) == 0
    assert "worlds" in capsys.readouterr().out
    nowhere = "postgresql://postgres@127.0.0.1:1/postgres"
    assert main(["--data", str(folder.parent), "--sets", "worlds", "--store", nowhere, *options]) == 1
    assert "error: 127.0.0.1:1/postgres cannot be reached" in capsys.readouterr().err
