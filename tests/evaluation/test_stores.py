"""A set has equal answers in a file and on a server, is written once, and is spread over cells.

The set is the four worlds of the acceptance tests. It is small enough for every vector to be compared on both
engines: above 2,000 passages SQLite finds some by their bits, and the last of 80 candidates may differ.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from databases import create_database
from waylore.cells.members import Federation
from waylore.cells.open import open_catalogue
from waylore.evaluation.__main__ import main
from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.evaluation.index import COLLECTIONS_PER_SET, open_indexed
from waylore.evaluation.run import run_questions
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES
from waylore.store.protocol import Store
from waylore.types.knowledge import IndexedDocument

GOLDEN = Path(__file__).parents[1] / "acceptance" / "golden"
WORLDS = ("assistant", "family", "papers", "systems")
EMBEDDER = HashingEmbedder(64, quiet=True)


def read_json(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def list_rows() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the worlds in the form of a set: pages, facts as triples, and questions."""
    documents = [document for world in WORLDS for document in read_json(world)["documents"]]
    questions = [question for world in WORLDS for question in read_json(f"{world}.questions")]
    yield "corpus", [{"id": d["uri"], "title": d.get("title", ""), "text": d["text"]} for d in documents]
    yield "triples", [{"passage_id": d["uri"], "triples": _list_triples(d)} for d in documents]
    yield "queries", [{"id": q["id"], "question": q["question"], "gold": q.get("hits", [])} for q in questions]


def _list_triples(document: dict[str, Any]) -> list[list[str]]:
    """Return facts as triples. Some worlds have them as lists, others as objects."""
    facts = document.get("facts", ())
    return [f if isinstance(f, list) else [f["subject"], f["predicate"], f["object"]] for f in facts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sets") / "worlds"
    made.mkdir()
    for name, of_it in list_rows():
        with gzip.open(made / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in of_it)
    return made


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return read_dataset(folder)


@pytest.fixture(scope="module")
def server() -> str:
    return create_database()


@pytest.fixture(scope="module")
def federation(three_cells: Federation) -> str:
    """Return the address of the three servers."""
    return f"cells+{three_cells.catalogue.get_cells()['east'].url}"


def list_first_five(store: Store, dataset: Dataset, recipe: str) -> dict[str, tuple[str, ...]]:
    return {a.id: a.ranked[:5] for a in run_questions(store, EMBEDDER, dataset, RECIPES[recipe]).answers}


@pytest.mark.parametrize("recipe", ["hybrid", "chain"])
def test_first_five_are_equal_in_file_and_server(recipe: str, dataset: Dataset, server: str) -> None:
    assert len(dataset.questions) > 50
    with open_indexed(dataset, EMBEDDER) as file, open_indexed(dataset, EMBEDDER, url=server) as served:
        assert list_first_five(file, dataset, recipe) == list_first_five(served, dataset, recipe)


def test_vector_results_are_equal_in_cells(dataset: Dataset, federation: str) -> None:
    """Compare vectors only: keywords are weighted by collection, so other recipes may rank differently."""
    with open_indexed(dataset, EMBEDDER) as file, open_indexed(dataset, EMBEDDER, url=federation) as spread:
        assert list_first_five(file, dataset, "vector") == list_first_five(spread, dataset, "vector")
        assert spread.statistics().passages == file.statistics().passages
        assert sorted(map(_get_identity, spread.export())) == sorted(map(_get_identity, file.export()))
    catalogue = open_catalogue(federation)
    placed = catalogue.find_placements([name for name in catalogue.list_collections() if name.startswith("worlds.")])
    catalogue.close()
    assert len(placed) == COLLECTIONS_PER_SET


def _get_identity(contribution: IndexedDocument) -> tuple[str, str]:
    return contribution.document.id, contribution.digest


@pytest.mark.parametrize("store", ["server", "federation"])
def test_indexed_set_is_not_written_again(store: str, dataset: Dataset, request: pytest.FixtureRequest) -> None:
    versions = []
    for _ in range(2):
        with open_indexed(dataset, EMBEDDER, url=request.getfixturevalue(store)) as found:
            versions.append(found.version())
    assert versions[0] == versions[1] > 0


def test_command_line_compares_fusions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--sample", "9", "--embedder", "hashing", "--recipes", "--fusions", "weighted", "anchored"]
    assert main(["--data", str(folder.parent), "--sets", "worlds", *options]) == 0
    _, _, weighted, anchored, _, comparison = capsys.readouterr().out.splitlines()
    assert weighted.startswith("worlds  hybrid, weighted")
    assert anchored.startswith("worlds  hybrid, anchored")
    assert comparison.startswith("worlds: hybrid, anchored and hybrid, weighted ")


def test_auto_is_printed_beside_the_recipes_that_it_chooses(folder: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    options = ["--embedder", "hashing", "--json", str(figures)]
    assert main(["--data", str(folder.parent), "--sets", "worlds", *options]) == 0
    runs = {run["recipe"]: run["questions"] for run in json.loads(figures.read_text("utf-8"))["runs"]}
    assert list(runs) == ["hybrid", "chain", "auto"]
    ranked = {name: {q["id"]: q["ranked"] for q in questions} for name, questions in runs.items()}
    assert ranked["auto"]["auto-to-the-owners"] == ranked["chain"]["auto-to-the-owners"]
    assert ranked["hybrid"]["auto-to-the-owners"] != ranked["chain"]["auto-to-the-owners"]
    differing = {id_ for id_, found in ranked["auto"].items() if found != ranked["chain"][id_]}
    assert "numbers-are-routed" in differing


def test_command_line_accepts_store_url(folder: Path, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--sample", "5", "--embedder", "hashing"]
    assert main(["--data", str(folder.parent), "--sets", "worlds", "--store", server, *options]) == 0
    assert "worlds" in capsys.readouterr().out
    nowhere = "postgresql://postgres@127.0.0.1:1/postgres"
    assert main(["--data", str(folder.parent), "--sets", "worlds", "--store", nowhere, *options]) == 1
    assert "error: 127.0.0.1:1/postgres cannot be reached" in capsys.readouterr().err
