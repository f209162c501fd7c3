"""Each file gets the right importer, and no content stops an import or is lost without a report."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.indexing.importers.imports import FRAME, import_content, lines
from waylore.errors import ConfigError
from waylore.indexing.blocks import Skipped
from waylore.indexing.importers import dispatch
from waylore.indexing.importers.dispatch import FORMATS, IMPORT_LIMITS, ImportReport, read
from waylore.indexing.importers.graphrag import COLUMNS
from waylore.indexing.secrets.sieve import make_sieve
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER

SUFFIXES = {
    "triples": (".jsonl", ".json", ".csv", ".tsv"),
    "ntriples": (".nt",),
    "research": (".jsonl", ".json"),
    "graphrag": (".parquet",),
    "lightrag": (".json",),
    "mcp-memory": (".jsonl", ".json"),
    "mem0": (".jsonl", ".json"),
    "zep": (".jsonl", ".json"),
}
WORDS = """subject predicate object s p o text title uri statement weight confidence source status valid_from
is_value arxiv_id id abstract citations concepts authors name description papers academic_papers chunks entities
relationships content source_id entity_name entity_type src_id tgt_id keywords type entityType observations from
to relationType document_ids text_unit_ids target full_content memory results user_id run_id hash metadata role messages
edges nodes fact uuid source_node_uuid source_node_name target_node_name valid_at invalid_at created_at""".split()
VALUES = ["entity", "relation", "Mara", "Acme", "2501.03236", "retracted", "conversation", "2024-01-01", "true"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(VALUES)
nested = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=8)
    ),
    max_leaves=12,
)


def make_objects(*needed: str, **more: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for objects with the fields that an importer needs, and perhaps others."""
    others = {name: nested for name in WORDS if name not in needed and name not in more}
    return st.fixed_dictionaries({**dict.fromkeys(needed, scalars), **more}, optional=others)


chunk, named = make_objects("content", "source_id"), make_objects("entity_name", "source_id")
related = make_objects("src_id", "tgt_id", "source_id", "weight", "keywords")
rows = st.one_of(
    nested,
    make_objects("s", "p", "o", "text", "uri"),
    make_objects("title", "abstract", "arxiv_id", citations=st.lists(nested, max_size=3)),
    make_objects("name", "entityType", type=st.just("entity"), observations=st.lists(scalars, max_size=3)),
    make_objects("from", "relationType", "to", type=st.just("relation")),
    st.fixed_dictionaries(
        {"chunks": st.lists(chunk, max_size=2), "entities": st.lists(named), "relationships": st.lists(related)}
    ),
)
terms = st.sampled_from(["<http://a/b>", "_:b", '"x"', '"y"@en', "<http://www.w3.org/2000/01/rdf-schema#label>", "."])
anything = st.one_of(
    st.binary(max_size=200),
    st.lists(rows, max_size=6).map(lambda values: lines(*map(json.dumps, values)).encode()),
    st.lists(rows, max_size=6).map(lambda values: json.dumps(values, indent=1).encode()),
    st.lists(st.lists(terms, max_size=4).map(lambda line: " ".join([*line, "."]))).map(lambda v: lines(*v).encode()),
    st.lists(st.lists(st.text(max_size=4), min_size=3, max_size=4).map(",".join)).map(
        lambda v: lines("s,p,o", *v).encode("utf-8", "surrogatepass")
    ),
)
formats = st.sampled_from([(name, suffix) for name, suffixes in SUFFIXES.items() for suffix in suffixes])


def detect_format(path: Path) -> str:
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
        ("a.json", '{"results": [{"id": "1", "memory": "Likes tea", "user_id": "ann"}]}', "mem0"),
        ("a.jsonl", '{"memory": "Likes tea", "hash": "x"}\n', "mem0"),
        ("a.json", '{"messages": [{"uuid": "1", "role": "user", "content": "Hello"}], "user_id": "ann"}', "zep"),
        ("a.json", '[{"fact": "a b c", "name": "B", "source_node_uuid": "1", "target_node_uuid": "2"}]', "zep"),
        ("a.json", '{"chunks": [], "entities": []}', "lightrag"),
        ("a.json", '{"academic_papers": []}', "research"),
        ("a.jsonl", '{"title": "a", "abstract": "b"}', "research"),
    ],
)
def test_format_is_detected(name: str, content: str, format_: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert detect_format(tmp_path / name) == format_


@pytest.mark.parametrize("content", ["", "plain text", '{"a": 1}', "[1, 2]", "3"])
def test_undetected_format_is_skipped_with_remedy(content: str, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "a.jsonl", content)
    assert (found, list(skipped)) == ([], [""])
    assert skipped[""].endswith(f"name it, one of {', '.join(FORMATS)}")


def test_folder_without_tables_is_skipped(tmp_path: Path) -> None:
    assert "its format cannot be detected" in import_content(tmp_path)[1][""]
    assert "no GraphRAG table" in import_content(tmp_path, format_="graphrag")[1][""]


def test_export_is_skipped_with_remedy(tmp_path: Path) -> None:
    _, skipped = import_content(tmp_path / "a.jsonl", '{"waylore": 1, "model": null}\n')
    assert skipped == {"": "it is a Waylore export: import it with format='waylore'"}


def test_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="use auto, triples, ntriples, research, graphrag, lightrag, mcp-memory, mem0, zep"
    ):
        import_content(tmp_path / "a.csv", "s,p,o", "turtle")
    with pytest.raises(ConfigError, match="no file or folder"):
        import_content(tmp_path / "missing.csv")


def test_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyoxigraph", None)
    _, skipped = import_content(tmp_path / "a.nt", "<http://a> <http://b> <http://c> .\n")
    assert skipped == {"": "pyoxigraph is not installed: run `pip install 'waylore[rdf]'`"}


def test_folder_instead_of_file_is_skipped(tmp_path: Path) -> None:
    for format_ in set(FORMATS) - {"graphrag"}:
        _, skipped = import_content(tmp_path, format_=format_)
        assert skipped == {"": "it cannot be opened: Is a directory"}


# -- whatever a file holds -----------------------------------------------------------------------------


def import_into(path: Path, format_: str, store: SqliteStore) -> ImportReport:
    return dispatch.import_file(store, None, path, format_, FRAME, author=OWNER, sieve=make_sieve(scrub=True))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(chosen=formats, content=anything)
def test_any_file_is_imported_and_repeating_changes_nothing(
    chosen: tuple[str, str], content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / f"a{chosen[1]}"
    path.write_bytes(content)
    store = SqliteStore(folder / "memory.waylore")
    try:
        for format_ in (chosen[0], "auto"):
            first = import_into(path, format_, store)
            assert all(is_foreseen(item) for item in first.skipped), first.skipped
            assert import_into(path, format_, store) == ImportReport(**{**get_fields(first), "written": 0})
    finally:
        store.close()


def is_foreseen(item: Skipped) -> bool:
    """Return whether an importer skipped it itself; a file may end within a character of UTF-16."""
    return "it cannot be read: " not in item.reason or "UnicodeDecodeError" in item.reason


def get_fields(of: ImportReport) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__slots__}


@pytest.mark.slow
@pytest.mark.timeout(900)  # a busy machine takes minutes to draw the rows
@given(values=st.lists(rows, max_size=5), format_=st.sampled_from(["triples", "mcp-memory"]))
def test_lines_are_imported_independently(
    values: list[Any], format_: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"

    def list_skipped(*rows: Any) -> set[str]:
        found, skipped = import_content(path, lines(*map(json.dumps, rows)), format_)
        assert found or skipped or not rows
        return set(skipped)

    alone = {f"#line={n}" for n, value in enumerate(values, start=1) if list_skipped(value)}
    assert list_skipped(*values) == alone


@st.composite
def draw_tables(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
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


@pytest.mark.slow
@settings(deadline=None)
@given(made=draw_tables())
def test_any_tables_are_imported_or_skipped(
    made: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    for table, rows in made.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{table}.parquet")
    store = SqliteStore(folder / "memory.waylore")
    try:
        first = import_into(folder, "auto", store)
        assert first.format == "graphrag"
        assert all(is_foreseen(item) for item in first.skipped), first.skipped
        assert import_into(folder, "auto", store).written == 0
    finally:
        store.close()


def test_all_skipped_rows_are_counted_and_some_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(["a", "b", "c"], *["broken"] * 1_500, ["a", "b", "c"], ["a", "b", "d"]))
    store = SqliteStore(tmp_path / "memory.waylore")
    found = import_into(path, "triples", store)
    store.close()
    assert (found.documents, found.written, found.repeated, found.skipped_count) == (2, 2, 1, 1_500)
    assert len(found.skipped) == 1_000


def test_import_limits_exceed_reading_limits() -> None:
    assert IMPORT_LIMITS.bytes == 256_000_000
