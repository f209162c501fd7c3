"""Which importer a file gets, and that nothing a file can hold stops an import or is lost without a word."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.indexing.importers.imports import FRAME, imported, lines
from waylore.errors import ConfigError
from waylore.indexing.blocks import Refusal
from waylore.indexing.importers import dispatch
from waylore.indexing.importers.dispatch import FORMATS, LIMITS, Imported, read
from waylore.indexing.importers.graphrag import COLUMNS
from waylore.store.sqlite.store import SqliteStore

SUFFIXES = {
    "triples": (".jsonl", ".json", ".csv", ".tsv"),
    "ntriples": (".nt",),
    "research": (".jsonl", ".json"),
    "graphrag": (".parquet",),
    "lightrag": (".json",),
    "mcp-memory": (".jsonl", ".json"),
}
WORDS = """subject predicate object s p o text title uri statement weight confidence source status valid_from
is_value arxiv_id id abstract citations concepts authors name description papers academic_papers chunks entities
relationships content source_id entity_name entity_type src_id tgt_id keywords type entityType observations from
to relationType document_ids text_unit_ids target full_content""".split()
VALUES = ["entity", "relation", "Mara", "Acme", "2501.03236", "retracted", "conversation", "2024-01-01", "true"]
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(VALUES)
)
nested = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=8)
    ),
    max_leaves=12,
)


def shaped(*needed: str, **more: Any) -> st.SearchStrategy[Any]:
    """Objects that have what an importer needs, and perhaps anything else."""
    others = {name: nested for name in WORDS if name not in needed and name not in more}
    return st.fixed_dictionaries({**dict.fromkeys(needed, scalars), **more}, optional=others)


chunk, named = shaped("content", "source_id"), shaped("entity_name", "source_id")
related = shaped("src_id", "tgt_id", "source_id", "weight", "keywords")
rows = st.one_of(
    nested,
    shaped("s", "p", "o", "text", "uri"),
    shaped("title", "abstract", "arxiv_id", citations=st.lists(nested, max_size=3)),
    shaped("name", "entityType", type=st.just("entity"), observations=st.lists(scalars, max_size=3)),
    shaped("from", "relationType", "to", type=st.just("relation")),
    st.fixed_dictionaries(
        {"chunks": st.lists(chunk, max_size=2), "entities": st.lists(named), "relationships": st.lists(related)}
    ),
)
terms = st.sampled_from(
    ["<http://a/b>", "_:b", '"x"', '"y"@en', "<http://www.w3.org/2000/01/rdf-schema#label>", "."]
)
anything = st.one_of(
    st.binary(max_size=200),
    st.lists(rows, max_size=6).map(lambda values: lines(*map(json.dumps, values)).encode()),
    st.lists(rows, max_size=6).map(lambda values: json.dumps(values, indent=1).encode()),
    st.lists(st.lists(terms, max_size=4).map(lambda line: " ".join([*line, "."]))).map(
        lambda v: lines(*v).encode()
    ),
    st.lists(st.lists(st.text(max_size=4), min_size=3, max_size=4).map(",".join)).map(
        lambda v: lines("s,p,o", *v).encode("utf-8", "surrogatepass")
    ),
)
formats = st.sampled_from([(name, suffix) for name, suffixes in SUFFIXES.items() for suffix in suffixes])


def shown(path: Path) -> str:
    return read(path, "auto", FRAME)[0]


@pytest.mark.parametrize(
    ("name", "content", "format_"),
    [
        ("a.csv", "s,p,o\n", "triples"),
        ("a.TSV", "s\tp\to\n", "triples"),
        ("a.nt", "", "ntriples"),
        ("a.parquet", "", "graphrag"),
        ("a.jsonl", '["a", "b", "c"]', "triples"),
        ("a.ndjson", 'broken\n\n{"subject": "a", "predicate": "b"}', "triples"),
        ("a.json", '[\n{"s": "a", "p": "b", "o": "c"}]', "triples"),
        ("a.json", '{"type": "entity", "name": "a"}\n{"type": "relation", "from": "a"}', "mcp-memory"),
        ("a", '{"type": "relation", "from": "a", "to": "b"}', "mcp-memory"),
        ("a.json", '{"chunks": [], "entities": []}', "lightrag"),
        ("a.json", '{"academic_papers": []}', "research"),
        ("a.jsonl", '{"title": "a", "abstract": "b"}', "research"),
    ],
)
def test_a_format_shows_itself(name: str, content: str, format_: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert shown(tmp_path / name) == format_


@pytest.mark.parametrize("content", ["", "plain text", '{"a": 1}', "[1, 2]", "3"])
def test_a_format_that_does_not_show_is_asked_for(content: str, tmp_path: Path) -> None:
    found, refusals = imported(tmp_path / "a.jsonl", content)
    assert (found, list(refusals)) == ([], [""])
    assert refusals[""].endswith(f"pass format=, one of {', '.join(FORMATS)}")


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    assert "its format cannot be told" in imported(tmp_path)[1][""]
    assert "no table of GraphRAG's" in imported(tmp_path, format_="graphrag")[1][""]


def test_an_export_of_our_own_is_sent_to_its_own_verb(tmp_path: Path) -> None:
    _, refusals = imported(tmp_path / "a.jsonl", '{"waylore": 1, "model": null}\n')
    assert refusals == {"": "it is an export of Waylore's own: use import_"}


def test_a_wrong_format_lists_the_right_ones(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="use auto, triples, ntriples, research, graphrag, lightrag, mcp-memory"
    ):
        imported(tmp_path / "a.csv", "s,p,o", "turtle")
    with pytest.raises(ConfigError, match="nothing to import at"):
        imported(tmp_path / "missing.csv")


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyoxigraph", None)
    _, refusals = imported(tmp_path / "a.nt", "<http://a> <http://b> <http://c> .\n")
    assert refusals == {"": "pyoxigraph is not installed: run `pip install 'waylore[rdf]'`"}


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    for format_ in set(FORMATS) - {"graphrag"}:
        _, refusals = imported(tmp_path, format_=format_)
        assert refusals == {"": "it cannot be opened: Is a directory"}


# -- whatever a file holds -----------------------------------------------------------------------------


def written(path: Path, format_: str, store: SqliteStore) -> Imported:
    return dispatch.imported(store, None, path, format_, FRAME)


@settings(max_examples=100, deadline=None)
@given(chosen=formats, content=anything)
def test_nothing_in_a_file_is_fatal_and_importing_again_changes_nothing(
    chosen: tuple[str, str], content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / f"a{chosen[1]}"
    path.write_bytes(content)
    store = SqliteStore(folder / "memory.waylore")
    try:
        for format_ in (chosen[0], "auto"):
            first = written(path, format_, store)
            assert all(is_foreseen(refusal) for refusal in first.refusals), first.refusals
            assert written(path, format_, store) == Imported(**{**fields(first), "written": 0})
    finally:
        store.close()


def is_foreseen(refusal: Refusal) -> bool:
    """Whether an importer refused it, and not the last guard; a file may end within a character of UTF-16."""
    return "it cannot be read: " not in refusal.reason or "UnicodeDecodeError" in refusal.reason


def fields(of: Imported) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__slots__}


@settings(deadline=None)
@given(values=st.lists(rows, max_size=5), format_=st.sampled_from(["triples", "mcp-memory"]))
def test_each_line_is_imported_or_refused_whatever_stands_beside_it(
    values: list[Any], format_: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"

    def refused(*rows: Any) -> set[str]:
        found, refusals = imported(path, lines(*map(json.dumps, rows)), format_)
        assert found or refusals or not rows
        return set(refusals)

    alone = {f"#line={n}" for n, value in enumerate(values, start=1) if refused(value)}
    assert refused(*values) == alone


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    names = st.none() | st.sampled_from(["a", "b", "", "a,b"]) | st.text(max_size=3).filter(str.isprintable)
    cells = {
        "text_unit_ids": st.lists(names, max_size=3),
        "weight": st.none() | st.floats(),
        "level": st.integers(0, 9),
    }
    made = {}
    for table in draw(st.sets(st.sampled_from(sorted(COLUMNS)), min_size=1)):
        columns = draw(st.sets(st.sampled_from(COLUMNS[table]), min_size=1))
        row = st.fixed_dictionaries({column: cells.get(column, names) for column in sorted(columns)})
        made[table] = draw(st.lists(row, min_size=1, max_size=4))
    return made


@settings(deadline=None)
@given(made=tables())
def test_whatever_tables_hold_is_imported_or_refused(
    made: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    for table, rows in made.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{table}.parquet")
    store = SqliteStore(folder / "memory.waylore")
    try:
        first = written(folder, "auto", store)
        assert first.format == "graphrag"
        assert all(is_foreseen(refusal) for refusal in first.refusals), first.refusals
        assert written(folder, "auto", store).written == 0
    finally:
        store.close()


def test_refusals_are_counted_but_not_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(["a", "b", "c"], *["broken"] * 1_500, ["a", "b", "c"], ["a", "b", "d"]))
    store = SqliteStore(tmp_path / "memory.waylore")
    found = written(path, "triples", store)
    store.close()
    assert (found.documents, found.written, found.repeated, found.refused) == (2, 2, 1, 1_500)
    assert len(found.refusals) == 1_000


def test_limits_allow_more_than_a_file_that_is_read() -> None:
    assert LIMITS.bytes == 256_000_000
