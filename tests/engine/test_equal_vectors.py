"""The vectors of a document depend on that document alone: not on others that are added with it, nor on how."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from requirements import find_model
from waylore import Waylore
from waylore.protocols import Embedder
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder

pytestmark = [pytest.mark.slow, pytest.mark.model]

THEN = datetime(2024, 5, 1, tzinfo=UTC)
SENTENCES = [
    "Mara Lindqvist leads the Harbour Project in Oslo.",
    "The Harbour Project is funded by Nordbank.",
    "Nordbank, which was founded in 1902 by Elin Berg, has its seat in Bergen and lends money to ship owners.",
    "Jonas Weidlich works for Nordbank.",
    "Ask Mara Lindqvist about keys.",
    "Łódź and 東京 are twin towns.",
]
pages = st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4), min_size=2, max_size=4)


@pytest.fixture(scope="module", params=["bge-small", "potion"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    folder = find_model(request.param)
    return Model2VecEmbedder(folder) if request.param == "potion" else FastEmbedder(path=folder)


def export_documents(store: Path, folder: Path, embedder: Embedder) -> set[str]:
    """Add a folder to a new store, and return the lines of its documents, vectors included."""
    with Waylore.open(store, embedder=embedder, clock=lambda: THEN) as memory:
        memory.add_files(folder, root=folder)
    return read_documents(store)


def read_documents(store: Path) -> set[str]:
    with Waylore.open(store) as memory:
        return set(list(memory.export_lines())[1:])


@settings(max_examples=6)
@given(pages)
def test_vectors_do_not_depend_on_documents_that_are_added_together(embedder: Embedder, pages: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, lines = Path(name), set()
        (folder / "all").mkdir()
        for number, sentences in enumerate(pages):
            alone = folder / f"alone-{number}"
            alone.mkdir()
            for place in (alone, folder / "all"):
                (place / f"{number}.md").write_text(f"# Page {number}\n\n{' '.join(sentences)}\n")
            lines |= export_documents(folder / f"{number}.waylore", alone, embedder)
        assert export_documents(folder / "all.waylore", folder / "all", embedder) == lines
        other = folder / "other.waylore"
        export_documents(other, folder / "all", HashingEmbedder(quiet=True))
        Waylore.reembed(other, embedder=embedder)
        assert read_documents(other) == lines
