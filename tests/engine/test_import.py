"""Imports through the facade: found by search with a path, visible by label, unchanged if repeated."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from waylore import Filter, Waylore
from waylore.errors import ArgumentError, Forbidden
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.author import Author


def to_lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_triples(folder: Path, more: bool) -> Path:
    path = folder / "facts.jsonl"
    rows = [["Mara Lind", "works_at", "Acme"], ["Acme", "based_in", "Oslo"]]
    path.write_text(to_lines(*rows, *([["Oslo", "part_of", "Norway"]] if more else [])))
    return path


def write_ntriples(folder: Path, more: bool) -> Path:
    path, base = folder / "facts.nt", "http://example.org"
    rows = [
        f"<{base}/Mara_Lind> <{base}/worksAt> <{base}/Acme> .",
        f"<{base}/Acme> <{base}/basedIn> <{base}/Oslo> .",
    ]
    path.write_text("\n".join([*rows, *([f"<{base}/Oslo> <{base}/partOf> <{base}/Norway> ."] if more else [])]))
    return path


def write_research(folder: Path, more: bool) -> Path:
    path = folder / "papers.jsonl"
    mara = {"title": "Mara Lind", "abstract": "On anvils.", "citations": ["2501.00002"]}
    acme = {"arxiv_id": "2501.00002", "title": "Acme", "abstract": "Made in Oslo.", "citations": ["2501.00003"]}
    later = {"arxiv_id": "2501.00003", "title": "Forges", "abstract": "Iron and fire."}
    path.write_text(to_lines(mara, acme, *([later] if more else [])))
    return path


def write_graphrag(folder: Path, more: bool) -> Path:
    folder.mkdir(exist_ok=True)
    documents = [
        ("d1", "Mara Lind works at Acme."),
        ("d2", "Acme makes anvils in Oslo."),
        ("d3", "Oslo is cold."),
    ]
    chosen = documents if more else documents[:2]
    units = [{"id": f"u{id_}", "text": text, "document_ids": [id_]} for id_, text in chosen]
    relation = {"source": "MARA LIND", "target": "ACME", "description": "Mara Lind is employed by Acme"}
    tables: dict[str, list[dict[str, Any]]] = {
        "documents": [{"id": id_, "title": id_, "text": text} for id_, text in chosen],
        "text_units": units,
        "entities": [{"title": "ACME", "type": "ORGANIZATION", "description": "", "text_unit_ids": ["ud1", "ud2"]}],
        "relationships": [{**relation, "weight": 8.0, "text_unit_ids": ["ud1"]}],
    }
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return folder


def write_lightrag(folder: Path, more: bool) -> Path:
    path = folder / "graph.json"
    texts = ["Mara Lind works at Acme.", "Acme makes anvils in Oslo.", "Oslo is cold."]
    relation = {
        "src_id": "Mara Lind",
        "tgt_id": "Acme",
        "description": "She works there",
        "keywords": "employment",
    }
    graph = {
        "chunks": [{"content": t, "source_id": f"doc-{n}"} for n, t in enumerate(texts if more else texts[:2])],
        "entities": [{"entity_name": "Acme", "entity_type": "company", "source_id": "doc-1"}],
        "relationships": [{**relation, "source_id": "doc-0"}],
    }
    path.write_text(json.dumps(graph))
    return path


def write_mcp_memory(folder: Path, more: bool) -> Path:
    path = folder / "memory.jsonl"
    rows = [
        {"type": "entity", "name": "Mara Lind", "entityType": "person", "observations": ["Likes tea"]},
        {"type": "entity", "name": "Acme", "entityType": "company", "observations": ["Makes anvils in Oslo"]},
        {"type": "relation", "from": "Mara Lind", "to": "Acme", "relationType": "works_at"},
    ]
    later = {"type": "entity", "name": "Oslo", "entityType": "city", "observations": ["Is cold"]}
    path.write_text(to_lines(*rows, *([later] if more else [])))
    return path


def write_mem0(folder: Path, more: bool) -> Path:
    path = folder / "memories.json"
    texts = ["Mara Lind works at Acme.", "Acme makes anvils in Oslo.", "Oslo is cold."]
    rows = [{"id": str(n), "memory": text, "hash": "", "created_at": "2026-01-01"} for n, text in enumerate(texts)]
    path.write_text(json.dumps({"results": rows if more else rows[:2]}))
    return path


def write_zep(folder: Path, more: bool) -> Path:
    path = folder / "edges.json"
    facts = [("Mara Lind", "WORKS_AT", "Acme"), ("Acme", "MAKES_ANVILS_IN", "Oslo"), ("Oslo", "IS_IN", "Norway")]
    rows = [
        {"uuid": "-".join(ends), "fact": " ".join(ends), "name": ends[1]}
        | {"source_node_name": ends[0], "target_node_name": ends[2]}
        for ends in facts
    ]
    path.write_text(json.dumps({"edges": rows if more else rows[:2]}))
    return path


FORMATS = {
    "triples": write_triples,
    "ntriples": write_ntriples,
    "research": write_research,
    "graphrag": write_graphrag,
    "lightrag": write_lightrag,
    "mcp-memory": write_mcp_memory,
    "mem0": write_mem0,
    "zep": write_zep,
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "memory.waylore", embedder=HashingEmbedder(64, quiet=True)) as memory:
        yield memory


@pytest.fixture(params=sorted(FORMATS))
def format_(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def write(format_: str, tmp_path: Path) -> Callable[..., Path]:
    def written(*, more: bool = False) -> Path:
        return FORMATS[format_](tmp_path / "in" if format_ == "graphrag" else tmp_path, more)

    return written


def export(memory: Waylore, path: Path) -> str:
    memory.export(path)
    return path.read_text("utf-8")


def test_imported_documents_are_found_with_path(memory: Waylore, format_: str, write: Callable[..., Path]) -> None:
    done = memory.import_(write())
    assert (done.format, done.skipped_count, done.documents) == (format_, 0, done.written)
    method = "citations" if format_ == "research" else "chain"
    found = memory.search("Where does Mara Lind make things?", method=method)
    [hit] = [hit for hit in found.hits if "Oslo" in hit.passage.text]
    assert hit.path is not None
    assert hit.path.facts[0].object.lower() == "acme"
    assert hit.path.start.lower() == "mara lind"


def test_importing_again_changes_nothing(memory: Waylore, write: Callable[..., Path], tmp_path: Path) -> None:
    first = memory.import_(write(), labels=["team"])
    before = export(memory, tmp_path / "before.jsonl")
    version = memory.stats().version
    again = memory.import_(write(), labels=["team"])
    assert (again.documents, again.written) == (first.documents, 0)
    assert memory.stats().version == version
    assert export(memory, tmp_path / "after.jsonl") == before


def test_grown_file_adds_new_documents(memory: Waylore, format_: str, write: Callable[..., Path]) -> None:
    before = memory.import_(write())
    grown = memory.import_(write(more=True))
    renamed = 1 if format_ == "research" else 0  # a paper that cites the new one now has its title
    assert (grown.documents, grown.written) == (before.documents + 1, 1 + renamed)


def test_labels_limit_who_sees_an_import(memory: Waylore, write: Callable[..., Path]) -> None:
    memory.import_(write(), labels=["team"], metadata={"from": "elsewhere"})
    for where, is_seen in [
        (Filter(labels=frozenset({"team"})), True),
        (Filter(labels=frozenset({"others"})), False),
        (Filter(metadata={"from": ["elsewhere"]}), True),
        (Filter(metadata={"from": ["here"]}), False),
    ]:
        assert bool(memory.search("Acme in Oslo", where=where).hits) == is_seen


def test_import_can_be_forgotten_completely(memory: Waylore, write: Callable[..., Path], tmp_path: Path) -> None:
    memory.import_(write())
    documents = [json.loads(line)["document"]["id"] for line in export(memory, tmp_path / "e").splitlines()[1:]]
    memory.forget(*documents)
    left = memory.stats()
    assert (left.documents, left.passages, left.entities, left.facts, left.mentions) == (0, 0, 0, 0, 0)


def test_citations_are_followed_two_steps(memory: Waylore, tmp_path: Path) -> None:
    memory.import_(write_research(tmp_path, more=True))
    found = memory.search("What does Mara Lind cite?", method="citations")
    paths = {hit.passage.title: str(hit.path) for hit in found.hits}
    assert paths["Forges"] == "Mara Lind —cites→ Acme —cites→ Forges → this passage"


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("paper: 2501.03236", "MAGMA Memory"),
        ("arXiv:2501.03236", "MAGMA Memory"),
        ("What is 2501.03236 about?", "MAGMA Memory"),
        ("doi 10.1000/182", "Attention"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "agentic", "Keyword", "hybrid"])
def test_papers_are_found_by_identifier(
    memory: Waylore, tmp_path: Path, question: str, title: str, method: str
) -> None:
    papers = [
        {"arxiv_id": "2501.03236", "title": "MAGMA Memory", "abstract": "Agents need graphs."},
        {"title": "Attention", "abstract": "A paper on all you need.", "doi": "10.1000/182"},
    ]
    (tmp_path / "papers.json").write_text(json.dumps({"academic_papers": papers}))
    memory.import_(tmp_path / "papers.json")
    assert memory.search(question, method=method).hits[0].document.title == title


def test_papers_are_found_by_author(memory: Waylore, tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl"
    path.write_text(to_lines({"title": "A", "abstract": "B.", "authors": ["Ada Lovelace", {"name": "Bo"}]}))
    memory.import_(path)
    for author in ("lovelace", "Bo"):
        assert memory.search(author, method="keyword").hits[0].document.title == "A"


def test_citations_are_followed_from_the_papers_of_a_concept(memory: Waylore, tmp_path: Path) -> None:
    first = {"arxiv_id": "2501.00001", "title": "Anvils", "abstract": "Iron.", "concepts": ["smithing"]}
    second = {"arxiv_id": "2501.00002", "title": "Forges", "abstract": "Fire."}
    path = tmp_path / "papers.jsonl"
    path.write_text(to_lines(first | {"citations": ["2501.00002"]}, second))
    memory.import_(path)
    question = "What do the papers on smithing cite, and which of those is the one to read first?"
    found = memory.search(question, method="citations")
    placements = {h.document.title: p for h in found.hits for p in h.placements if p.search == "graph"}
    assert {title: placement.score for title, placement in placements.items()} == {"Anvils": 1.0, "Forges": 0.5}


def test_paper_cited_by_number_in_another_file_is_found(memory: Waylore, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(to_lines({"title": "Mara", "abstract": "Iron.", "citations": ["2501.00003"]}))
    (tmp_path / "two.jsonl").write_text(to_lines({"arxiv_id": "2501.00003", "title": "Forges", "abstract": "Fire."}))
    for name in ("one.jsonl", "two.jsonl"):
        memory.import_(tmp_path / name)
    found = memory.search("What does Mara cite?", method="citations")
    paths = {hit.passage.title: str(hit.path) for hit in found.hits}
    assert paths["Forges"] == "Mara —cites→ arXiv:2501.00003 → this passage"


def test_user_of_memory_server_answers_for_i(memory: Waylore, tmp_path: Path) -> None:
    user = {
        "type": "entity",
        "name": "default_user",
        "entityType": "person",
        "observations": ["Plays the oboe"],
    }
    (tmp_path / "memory.jsonl").write_text(to_lines(user))
    memory.import_(tmp_path / "memory.jsonl")
    found = memory.search("What instrument do I have at home?")
    assert [entity.name for entity in found.entities] == ["default_user"]
    assert found.hits[0].passage.text == "Plays the oboe"


def test_import_does_not_override_the_user(memory: Waylore, tmp_path: Path) -> None:
    memory.add_facts([("Mara Lind", "works_at", "Acme")])
    memory.import_(write_triples(tmp_path, more=False))
    facts = memory.search("Mara Lind works at Acme", method="neighbourhood").facts
    assert {fact.predicate: fact.source for fact in facts} == {"works_at": "user_edit", "based_in": "file"}


def test_progress_is_reported_and_batches_survive_a_stop(memory: Waylore, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(to_lines(*(["Mara", "counts", f"Number {n}"] for n in range(600))))
    reported: list[int] = []

    def stop(done: int) -> None:
        reported.append(done)
        if done > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.import_(tmp_path / "a.jsonl", progress=stop)
    assert reported == [256, 512]
    assert memory.stats().documents == 512
    assert memory.import_(tmp_path / "a.jsonl").written == 88


async def import_async(memory: Waylore, path: Path) -> int:
    return (await memory.aimport_(path)).written


def test_import_can_be_awaited(memory: Waylore, tmp_path: Path) -> None:
    assert asyncio.run(import_async(memory, write_triples(tmp_path, more=False))) == 2


def test_unknown_format_raises_argument_error(memory: Waylore, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"format must be one of auto, waylore, triples.*got 'turtle'"):
        memory.import_(write_triples(tmp_path, more=False), "turtle")


def test_imports_of_two_users_are_apart(memory: Waylore, write: Callable[..., Path]) -> None:
    first = memory.import_(write(), user="ann")
    second = memory.import_(write(), user="ben")
    assert (second.documents, second.written) == (first.documents, first.written)
    memory.forget(user="ann")
    assert memory.search("Acme in Oslo", user="ann").hits == ()
    assert memory.search("Acme in Oslo", user="ben").hits


def test_bound_author_imports_for_its_user_alone(memory: Waylore, tmp_path: Path) -> None:
    rows = [{"memory": "Likes tea", "hash": "1", "user_id": user} for user in ("ann", "ben")]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    bound = memory.as_author(Author("key", user="ann"))
    report = bound.import_(tmp_path / "a.json")
    assert (report.documents, [skip.reason for skip in report.skipped]) == (1, ["it belongs to the user 'ben'"])
    assert memory.documents(user="ben") == ()
    with pytest.raises(Forbidden):
        bound.import_(tmp_path / "a.json", user="ben")
