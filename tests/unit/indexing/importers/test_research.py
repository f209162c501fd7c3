"""Research findings: papers and projects become documents, citations and concepts facts."""

import json
from pathlib import Path

import pytest

from unit.indexing.importers.imports import get_subjects, import_content, lines, list_facts, list_texts
from waylore.indexing.importers.research import parse_arxiv_number

MAGMA = {
    "arxiv_id": "2501.03236",
    "title": "MAGMA Memory",
    "abstract": "Agents need graphs.",
    "citations": ["arXiv:2405.14831v2", {"title": "Attention"}, "1706.03762"],
    "concepts": ["agent memory"],
    "authors": ["Ada", {"name": "Bo"}],
    "year": 2025,
}
HIPPO = {"id": "http://arxiv.org/abs/2405.14831", "title": "HippoRAG", "summary": "Recall.", "citations": 212}
GRAPH = {
    "name": "langchain-ai/langgraph",
    "description": "Resilient agents.",
    "topics": ["agent memory"],
    "papers": ["2501.03236"],
    "html_url": "https://code.example/langgraph",
}
BOTH = {"academic_papers": [MAGMA, HIPPO], "github_projects": [GRAPH]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(BOTH, indent=2)),
        ("a.json", json.dumps(BOTH)),
        ("a.json", json.dumps([MAGMA, HIPPO, GRAPH])),
        ("a.jsonl", lines(MAGMA, HIPPO, GRAPH)),
        ("a.jsonl", lines({"papers": [MAGMA]}, {"papers": [HIPPO], "projects": [GRAPH]})),
    ],
)
def test_papers_and_projects_become_documents(name: str, content: str, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / name, content, "research")
    assert not skipped
    assert list_texts(found) == [
        ("MAGMA Memory", ["Agents need graphs.\n\nAuthors: Ada, Bo\narXiv:2501.03236"]),
        ("HippoRAG", ["Recall.\n\narXiv:2405.14831"]),
        ("langchain-ai/langgraph", ["Resilient agents."]),
    ]
    assert [fact.split(" | ")[0] for fact in list_facts(found)] == [
        "MAGMA Memory —cites→ HippoRAG",
        "MAGMA Memory —cites→ Attention",
        "MAGMA Memory —cites→ arXiv:1706.03762",
        "MAGMA Memory —has_concept→ agent memory",
        "MAGMA Memory —has_author→ Ada",
        "MAGMA Memory —has_author→ Bo",
        "langchain-ai/langgraph —cites→ MAGMA Memory",
        "langchain-ai/langgraph —has_concept→ agent memory",
    ]


def test_paper_has_its_number_as_alias(tmp_path: Path) -> None:
    [[magma, hippo, graph], _] = import_content(tmp_path / "a.json", json.dumps(BOTH))
    assert get_subjects(magma) == {"MAGMA Memory", "arXiv:2501.03236"}
    assert get_subjects(hippo) == {"HippoRAG", "arXiv:2405.14831"}, "though it cites nothing"
    assert magma.document.uri == "https://arxiv.org/abs/2501.03236"
    assert magma.document.metadata == {"arxiv_id": "2501.03236", "year": 2025, "by": "test"}
    assert hippo.document.metadata["citations"] == 212, "a count is no list of papers"
    assert {a for e in magma.entities if e.name == "MAGMA Memory" for a in e.aliases} == {
        "arXiv:2501.03236",
        "2501.03236",
    }
    [project] = [e for e in graph.entities if e.type == "project"]
    assert (project.aliases, graph.document.uri) == (("langgraph",), "https://code.example/langgraph")


def test_broken_records_are_skipped_with_place(tmp_path: Path) -> None:
    content = lines(MAGMA, {"abstract": "?"}, [1], {"title": "", "id": 7}, "{broken", {"papers": [3, HIPPO]})
    found, skipped = import_content(tmp_path / "a.jsonl", content)
    assert len(found) == 2
    assert skipped == {
        "#line=2": "it has no title",
        "#line=3": "it is not a JSON object: a paper or project must be {…}",
        "#line=4": "it has no title",
        "#line=5": "it is not JSON: Expecting property name enclosed in double quotes at character 2",
        "#line=6#papers=1": "it is not a JSON object",
    }


@pytest.mark.parametrize(
    ("paper", "text"),
    [
        ({"arxiv_id": "2501.03236v2", "title": "A", "abstract": "B."}, "B.\n\narXiv:2501.03236"),
        ({"arxiv_id": "2501.03236", "abstract": "B."}, "B."),
        ({"title": "A", "abstract": "B.", "doi": "10.1000/182"}, "B.\n\ndoi:10.1000/182"),
        ({"title": "A", "abstract": "B.", "authors": [{"name": "Ada"}, "", 3]}, "B.\n\nAuthors: Ada, 3"),
        ({"title": "A", "abstract": "B."}, "B."),
    ],
)
def test_text_of_paper_ends_with_authors_and_identifiers(paper: dict[str, object], text: str, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "a.json", json.dumps([paper]), "research")
    assert not skipped
    assert list_texts(found)[0][1] == [text]


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("2501.03236", "2501.03236"),
        ("arXiv:2501.03236v3", "2501.03236"),
        ("https://arxiv.org/pdf/1706.03762v7.pdf", "1706.03762"),
        ("http://www.arxiv.org/abs/cs.CL/0501001", "cs.cl/0501001"),
        ("hep-th/9711200", "hep-th/9711200"),
        ("Attention", ""),
        ("10.1000/182", ""),
        ("2501.032361", ""),
    ],
)
def test_arxiv_numbers_are_parsed(written: str, number: str) -> None:
    assert parse_arxiv_number(written) == number
