"""Research findings: papers and projects become documents, citations and concepts facts."""

import json
from pathlib import Path

import pytest

from unit.indexing.importers.imports import facts, imported, lines, own, texts
from waylore.indexing.importers.research import arxiv_number

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
    found, refusals = imported(tmp_path / name, content, "research")
    assert not refusals
    assert texts(found) == [
        ("MAGMA Memory", ["Agents need graphs."]),
        ("HippoRAG", ["Recall."]),
        ("langchain-ai/langgraph", ["Resilient agents."]),
    ]
    assert [fact.split(" | ")[0] for fact in facts(found)] == [
        "MAGMA Memory —cites→ HippoRAG",
        "MAGMA Memory —cites→ Attention",
        "MAGMA Memory —cites→ arXiv:1706.03762",
        "MAGMA Memory —has_concept→ agent memory",
        "MAGMA Memory —has_author→ Ada",
        "MAGMA Memory —has_author→ Bo",
        "langchain-ai/langgraph —cites→ MAGMA Memory",
        "langchain-ai/langgraph —has_concept→ agent memory",
    ]


def test_a_paper_is_known_by_its_title_and_its_number(tmp_path: Path) -> None:
    [[magma, hippo, graph], _] = imported(tmp_path / "a.json", json.dumps(BOTH))
    assert own(magma) == {"MAGMA Memory", "arXiv:2501.03236"}
    assert own(hippo) == {"HippoRAG", "arXiv:2405.14831"}, "though it cites nothing"
    assert magma.document.uri == "https://arxiv.org/abs/2501.03236"
    assert magma.document.metadata == {"arxiv_id": "2501.03236", "year": 2025, "by": "test"}
    assert hippo.document.metadata["citations"] == 212, "a count is no list of papers"
    assert {a for e in magma.entities if e.name == "MAGMA Memory" for a in e.aliases} == {
        "arXiv:2501.03236",
        "2501.03236",
    }
    [project] = [e for e in graph.entities if e.type == "project"]
    assert (project.aliases, graph.document.uri) == (("langgraph",), "https://code.example/langgraph")


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    content = lines(MAGMA, {"abstract": "?"}, [1], {"title": "", "id": 7}, "{broken", {"papers": [3, HIPPO]})
    found, refusals = imported(tmp_path / "a.jsonl", content)
    assert len(found) == 2
    assert refusals == {
        "#line=2": "it has no title",
        "#line=3": "it is not a JSON object: a paper or project must be {…}",
        "#line=4": "it has no title",
        "#line=5": "it is not JSON: Expecting property name enclosed in double quotes at character 2",
        "#line=6#papers=1": "it is not a JSON object",
    }


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
def test_numbers_of_papers(written: str, number: str) -> None:
    assert arxiv_number(written) == number
