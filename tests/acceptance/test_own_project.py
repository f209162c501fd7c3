"""Waylore reads its own docs and source, and answers the questions of a contributor.

Rules extract names and facts, and vectors are potion's: no language model, nothing prepared by hand.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from requirements import find_model
from waylore import Waylore
from waylore.providers.embedders.model2vec import Model2VecEmbedder

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
ADDED = ("docs", "src", "ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")
# A question, the document that answers it, the heading above the answer, a part of the path to it, and the
# number of hits among which it must be.
QUESTIONS = [
    (
        "Which module imports waylore.retrieval.gate?",
        "src/waylore/retrieval/search.py",
        "",
        "waylore.retrieval.gate ←imports— waylore.retrieval.search",
        3,
    ),
    (
        "Why does SQLite search vectors without sqlite-vec?",
        "ARCHITECTURE.md",
        "How does SQLite find vectors, and why not with sqlite-vec?",
        "SQLite",
        3,
    ),
    (
        "What does `decide` return?",
        "src/waylore/retrieval/gate.py",
        "decide",
        "decide ←defines— waylore.retrieval.gate",
        3,
    ),
    (
        "How do I write a store of my own?",
        "docs/how-to/write-a-store.md",
        "Write a store of your own",
        "",
        3,
    ),
    (
        "Which files does gitignore leave out of a folder?",
        "docs/how-to/files.md",
        "Which files of a folder are left out",
        "gitignore",
        3,
    ),
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waylore]:
    embedder = Model2VecEmbedder(find_model("potion"))
    with Waylore.open(tmp_path_factory.mktemp("own") / "own.waylore", embedder=embedder) as memory:
        for path in ADDED:
            memory.add_files(ROOT / path, root=ROOT)
        memory.search("store")  # starts the thread that counts uses, which then belongs to no test
        yield memory


@pytest.mark.parametrize(("question", "uri", "heading", "path", "among"), QUESTIONS, ids=lambda x: str(x)[:40])
def test_contributor_question_is_answered(
    memory: Waylore, question: str, uri: str, heading: str, path: str, among: int
) -> None:
    hits = memory.search(question).hits[:among]
    answers = [h for h in hits if h.document.uri == uri and (not heading or heading in h.passage.headings)]
    assert answers, [(h.document.uri, h.passage.headings) for h in hits]
    assert any(path in str(hit.path) for hit in answers), [str(hit.path) for hit in answers]


def test_whole_project_is_read(memory: Waylore) -> None:
    assert memory.stats().documents > 100
    assert memory.stats().facts > 2_000
