"""A set is read as pages and questions, without the hints that retrieval must not see."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from waylore.errors import ConfigError
from waylore.evaluation.datasets import EvaluationQuestion, read_dataset
from waylore.types.identity import entity_id

CORPUS = [
    {"id": "p1", "title": "Ada Lovelace (countess)", "text": "Ada wrote notes.", "scope": "s"},
    {"id": "p2", "title": "Babbage", "text": "Babbage built engines."},
]
QUERIES: list[dict[str, Any]] = [
    {"id": "q1", "question": "Who wrote?", "gold": ["p1"], "type": "1hop", "decomposition": ["secret"]},
    {"id": "q2", "question": "None?", "gold": []},
    {"id": "q3", "question": "Abstain?", "gold": ["p1"], "abstention": True},
    {"id": "q4", "question": "Who cites?", "gold": ["p2", "p1"], "scope": "s", "source_paper": "p2"},
]
TRIPLES = [
    {
        "passage_id": "p1",
        "entities": ["Ada Lovelace", "England"],
        "triples": [["Ada Lovelace", "wrote", "Notes"], ["ADA LOVELACE", "wrote", "notes"], ["Ada", "!", "  "]],
    }
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES), ("triples", TRIPLES)):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def test_questions_have_gold_and_no_hints(folder: Path) -> None:
    assert read_dataset(folder).questions == (
        EvaluationQuestion("q1", "Who wrote?", frozenset({"p1"}), "1hop"),
        EvaluationQuestion("q4", "Who cites?", frozenset({"p1", "p2"}), "", "s", "p2"),
    )


def test_page_is_document_with_one_passage(folder: Path) -> None:
    first, second = read_dataset(folder).pages
    assert (first.document.uri, first.document.metadata) == ("p1", {"scope": "s"})
    assert first.passages[0].embeddable == "Ada Lovelace (countess)\nAda wrote notes."
    assert (second.facts, [e.name for e in second.entities]) == ((), ["babbage"])


def test_triples_become_facts_with_mentions(folder: Path) -> None:
    page = read_dataset(folder).pages[0]
    assert [f.statement for f in page.facts] == ["ada lovelace wrote notes"]
    mentions = {m.entity_id: (m.count, m.is_own) for m in page.mentions}
    assert mentions == {
        entity_id("Ada Lovelace"): (5, True),
        entity_id("notes"): (2, False),
        entity_id("England"): (1, False),
    }


def test_sample_limits_questions_only(folder: Path) -> None:
    sampled = read_dataset(folder, sample=1)
    assert [q.id for q in sampled.questions] == ["q1"]
    assert len(sampled.pages) == 2


def test_folder_without_corpus_raises(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"corpus\.jsonl\.gz"):
        read_dataset(tmp_path)
