"""Importing through the facade: found by search with a path, seen by whom it may be, the same if repeated."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from waylore import Filter, Waylore
from waylore.errors import ConfigError
from waylore.providers.embedders.hashing import HashingEmbedder


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def triples(folder: Path, more: bool) -> Path:
    path = folder / "facts.jsonl"
    rows = [["Mara Lind", "works_at", "Acme"], ["Acme", "based_in", "Oslo"]]
    path.write_text(lines(*rows, *([["Oslo", "part_of", "Norway"]] if more else [])))
    return path


def ntriples(folder: Path, more: bool) -> Path:
    path, base = folder / "facts.nt", "http://example.org"
    rows = [
        f"<{base}/Mara_Lind> <{base}/worksAt> <{base}/Acme> .",
        f"<{base}/Acme> <{base}/basedIn> <{base}/Oslo> .",
    ]
    path.write_text("\n".join([*rows, *([f"<{base}/Oslo> <{base}/partOf> <{base}/Norway> ."] if more else [])]))
    return path


def research(folder: Path, more: bool) -> Path:
    path = folder / "papers.jsonl"
    mara = {"title": "Mara Lind", "abstract": "On anvils.", "citations": ["2501.00002"]}
    acme = {"arxiv_id": "2501.00002", "title": "Acme", "abstract": "Made in Oslo.", "citations": ["2501.00003"]}
    later = {"arxiv_id": "2501.00003", "title": "Forges", "abstract": "Iron and fire."}
    path.write_text(lines(mara, acme, *([later] if more else [])))
    return path


def graphrag(folder: Path, more: bool) -> Path:
    folder.mkdir(exist_ok=True)
    documents = [
        ("d1", "Mara Lind works at Acme."),
        ("d2", "Acme makes anvils in Oslo."),
        ("d3", "Oslo is cold."),
    ]
    kept = documents if more else documents[:2]
    units = [{"id": f"u{id_}", "text": text, "document_ids": [id_]} for id_, text in kept]
    relation = {"source": "MARA LIND", "target": "ACME", "description": "Mara Lind is employed by Acme"}
    tables: dict[str, list[dict[str, Any]]] = {
        "documents": [{"id": id_, "title": id_, "text": text} for id_, text in kept],
        "text_units": units,
        "entities": [
            {"title": "ACME", "type": "ORGANIZATION", "description": "", "text_unit_ids": ["ud1", "ud2"]}
        ],
        "relationships": [{**relation, "weight": 8.0, "text_unit_ids": ["ud1"]}],
    }
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return folder


def lightrag(folder: Path, more: bool) -> Path:
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


def mcp_memory(folder: Path, more: bool) -> Path:
    path = folder / "memory.jsonl"
    rows = [
        {"type": "entity", "name": "Mara Lind", "entityType": "person", "observations": ["Likes tea"]},
        {"type": "entity", "name": "Acme", "entityType": "company", "observations": ["Makes anvils in Oslo"]},
        {"type": "relation", "from": "Mara Lind", "to": "Acme", "relationType": "works_at"},
    ]
    later = {"type": "entity", "name": "Oslo", "entityType": "city", "observations": ["Is cold"]}
    path.write_text(lines(*rows, *([later] if more else [])))
    return path


FORMATS = {
    "triples": triples,
    "ntriples": ntriples,
    "research": research,
    "graphrag": graphrag,
    "lightrag": lightrag,
    "mcp-memory": mcp_memory,
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


def exported(memory: Waylore, path: Path) -> str:
    memory.export(path)
    return path.read_text("utf-8")


def test_what_was_imported_is_found_with_its_path(
    memory: Waylore, format_: str, write: Callable[..., Path]
) -> None:
    done = memory.import_from(write())
    assert (done.format, done.refused, done.documents) == (format_, 0, done.written)
    method = "citations" if format_ == "research" else "chain"
    found = memory.search("Where does Mara Lind make things?", method=method)
    [hit] = [hit for hit in found.hits if "Oslo" in hit.passage.text]
    assert hit.path is not None
    assert hit.path.facts[0].object.lower() == "acme"
    assert hit.path.start.lower() == "mara lind"


def test_importing_again_changes_nothing(memory: Waylore, write: Callable[..., Path], tmp_path: Path) -> None:
    first = memory.import_from(write(), labels=["team"])
    before = exported(memory, tmp_path / "before.jsonl")
    version = memory.stats().version
    again = memory.import_from(write(), labels=["team"])
    assert (again.documents, again.written) == (first.documents, 0)
    assert memory.stats().version == version
    assert exported(memory, tmp_path / "after.jsonl") == before


def test_a_grown_file_adds_what_is_new(memory: Waylore, format_: str, write: Callable[..., Path]) -> None:
    before = memory.import_from(write())
    grown = memory.import_from(write(more=True))
    renamed = 1 if format_ == "research" else 0  # a paper that cites the new one now tells its title
    assert (grown.documents, grown.written) == (before.documents + 1, 1 + renamed)


def test_what_is_labelled_is_seen_by_those_who_may(memory: Waylore, write: Callable[..., Path]) -> None:
    memory.import_from(write(), labels=["team"], metadata={"from": "elsewhere"})
    for where, is_seen in [
        (Filter(labels=frozenset({"team"})), True),
        (Filter(labels=frozenset({"others"})), False),
        (Filter(metadata={"from": ["elsewhere"]}), True),
        (Filter(metadata={"from": ["here"]}), False),
    ]:
        assert bool(memory.search("Acme in Oslo", where=where).hits) == is_seen


def test_all_of_an_import_can_be_forgotten(memory: Waylore, write: Callable[..., Path], tmp_path: Path) -> None:
    memory.import_from(write())
    documents = [
        json.loads(line)["document"]["id"] for line in exported(memory, tmp_path / "e").splitlines()[1:]
    ]
    memory.forget(*documents)
    left = memory.stats()
    assert (left.documents, left.passages, left.entities, left.facts, left.mentions) == (0, 0, 0, 0, 0)


def test_citations_are_walked_two_deep(memory: Waylore, tmp_path: Path) -> None:
    memory.import_from(research(tmp_path, more=True))
    found = memory.search("What does Mara Lind cite?", method="citations")
    paths = {hit.passage.title: str(hit.path) for hit in found.hits}
    assert paths["Forges"] == "Mara Lind —cites→ Acme —cites→ Forges → this passage"


def test_a_paper_that_was_cited_by_its_number_in_another_file_is_reached(
    memory: Waylore, tmp_path: Path
) -> None:
    (tmp_path / "one.jsonl").write_text(
        lines({"title": "Mara", "abstract": "Iron.", "citations": ["2501.00003"]})
    )
    (tmp_path / "two.jsonl").write_text(
        lines({"arxiv_id": "2501.00003", "title": "Forges", "abstract": "Fire."})
    )
    for name in ("one.jsonl", "two.jsonl"):
        memory.import_from(tmp_path / name)
    found = memory.search("What does Mara cite?", method="citations")
    paths = {hit.passage.title: str(hit.path) for hit in found.hits}
    assert paths["Forges"] == "Mara —cites→ arXiv:2501.00003 → this passage"


def test_whoever_a_memory_server_talks_to_is_the_user(memory: Waylore, tmp_path: Path) -> None:
    user = {
        "type": "entity",
        "name": "default_user",
        "entityType": "person",
        "observations": ["Plays the oboe"],
    }
    (tmp_path / "memory.jsonl").write_text(lines(user))
    memory.import_from(tmp_path / "memory.jsonl")
    found = memory.search("What instrument do I have at home?")
    assert [entity.name for entity in found.entities] == ["default_user"]
    assert found.hits[0].passage.text == "Plays the oboe"


def test_an_import_does_not_speak_over_the_user(memory: Waylore, tmp_path: Path) -> None:
    memory.add_facts([("Mara Lind", "works_at", "Acme")])
    memory.import_from(triples(tmp_path, more=False))
    facts = memory.search("Mara Lind works at Acme", method="neighbourhood").facts
    assert {fact.predicate: fact.source for fact in facts} == {"works_at": "user_edit", "based_in": "file"}


def test_progress_is_told_and_batches_are_kept(memory: Waylore, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(*(["Mara", "counts", f"Number {n}"] for n in range(600))))
    told: list[int] = []

    def stop(done: int) -> None:
        told.append(done)
        if done > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.import_from(tmp_path / "a.jsonl", progress=stop)
    assert told == [256, 512]
    assert memory.stats().documents == 512
    assert memory.import_from(tmp_path / "a.jsonl").written == 88


async def imported(memory: Waylore, path: Path) -> int:
    return (await memory.aimport_from(path)).written


def test_it_can_be_awaited(memory: Waylore, tmp_path: Path) -> None:
    assert asyncio.run(imported(memory, triples(tmp_path, more=False))) == 2


def test_a_wrong_format_is_an_error_of_the_callers(memory: Waylore, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no format 'turtle': use auto, triples"):
        memory.import_from(triples(tmp_path, more=False), "turtle")
