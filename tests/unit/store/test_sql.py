"""SQL lives in its files: every query is used, every name used exists, and the schema is its migrations."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import waylore
from waylore.store.sql import load_migrations, load_queries

SOURCE = Path(waylore.__file__).parent
SQL_FOLDER = SOURCE / "store" / "sql"
DIALECTS = ("sqlite", "postgres")
ONLY_SQLITE = {
    "the pool says it": {"rollback"},
    "settings and checks of a file": {
        *("file_settings", "data_version", "integrity_check", "create_instances", "count_tables"),
    },
    "a row has another key than its identity": {"collection_row", "passage_ids", "entity_ids"},
    "its bits stand in for an index of vectors": {
        *("new_block", "blocks", "resize_blocks", "all_blocks", "passage_vectors", "visible_entities"),
        *("collection_passage_vectors", "collection_entity_vectors"),
    },
    "FTS5 is a table apart, and must be told what it forgets": {
        *("insert_words", "delete_words", "passage_terms", "passage_rows_of_documents", "tags_of_documents"),
    },
    "PostgreSQL tells what it deletes, and adds less than nothing": {
        *("document_accesses", "mention_counts", "profiles_of_documents", "edge_keys", "delete_edge"),
        *("remove_name", "remove_key"),
    },
    "there were no keys once": {"fill_keys"},
    "what is found is asked for afterwards, for that costs no round trip": {"names"},
}
ONLY_POSTGRES = {
    "a server has extensions, roles and locks": {
        *(
            "extension",
            "available_extension",
            "create_extension",
            "standing",
            "search_path",
            "lock_migrations",
            "lock",
            "lock_shared",
        ),
        *("tables", "available_textsearch", "textsearch", "create_textsearch"),
    },
    "pg_textsearch": {"add_ranked", "match_ranked", "unsorted_settings"},
    "an index of vectors": {
        *("create_index", "drop_index", "indexes", "unfinished_indexes", "try_building", "search_settings"),
        *("exact_settings", "planned_settings"),
        *("nearest_passages", "nearest_passages_exactly", "nearest_tagged_passages"),
        *("nearest_entities", "nearest_entities_exactly"),
    },
    "what depends on an answer is asked with it, in one round trip": {
        *("profiles_by_names", "profiles_by_keys", "nearby"),
    },
    "numbers are handed out by us": {"known_accesses"},
    "SQLite tells by itself that someone wrote": {"version"},
    "a snapshot of several statements": {"begin_reading"},
    "it has an index by fact": {"delete_edges"},
}
MODULES = sorted(SOURCE.rglob("*.py"))
KEPT = SOURCE / "providers" / "kept.py"  # excused: its files may be deleted at any time
SINGULAR = ("passage", "entity", "fact")
PLURAL = ("passages", "entities", "facts")
STATEMENT = re.compile(
    r"\b(SELECT\s+[\w*]+[\s,]|INSERT\s+(OR|INTO)\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b"
    r"|CREATE\s+(TABLE|INDEX|VIRTUAL|UNIQUE)\b|PRAGMA\s+\w|BEGIN\s+(IMMEDIATE|ISOLATION)\b|SET\s+LOCAL\b)"
    r"|\b(insert into|delete from|select .* from \w+ where)\b"
)


def asked_for(dialect: str) -> Iterator[ast.expr]:
    """Whatever stands for a query's name: SQL[…], and what a query is run by its name with."""
    for path in sorted((SOURCE / "store").glob(f"{dialect}*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Subscript(value=ast.Name("SQL"), slice=name):
                    yield name
                case ast.Call(
                    func=ast.Name("by_ids" | "by_rows" | "run" | "many" | "delete"), args=[_, name, *_]
                ):
                    yield name
                case ast.Call(func=ast.Name("rows" | "of_ids" | "statement"), args=[name, *_]):
                    yield name


def spelled_out(dialect: str) -> set[str]:
    """Names that stand in a module as plain strings, to be run by a variable."""
    texts = [path.read_text("utf-8") for path in sorted((SOURCE / "store").glob(f"{dialect}*.py"))]
    return {node.value for text in texts for node in ast.walk(ast.parse(text)) if _is_text(node)}  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def expanded(pattern: ast.JoinedStr) -> list[set[str]]:
    """The names an f-string may stand for, those of a kind together."""
    pieces = [part.value if isinstance(part, ast.Constant) else "{}" for part in pattern.values]
    text = "".join(map(str, pieces))
    return [{text.format(one), text.format(many)} for one, many in zip(SINGULAR, PLURAL, strict=True)]


def defined(dialect: str) -> set[str]:
    return set(load_queries(f"waylore.store.{dialect}"))


def plainly(dialect: str) -> set[str]:
    return {name.value for name in asked_for(dialect) if isinstance(name, ast.Constant)}  # type: ignore[misc]


def patterns(dialect: str) -> list[list[set[str]]]:
    return [expanded(name) for name in asked_for(dialect) if isinstance(name, ast.JoinedStr)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_scan_sees_every_way_to_ask(dialect: str) -> None:
    assert {"digests", "delete_passages", "ensure_collection"} <= plainly(dialect)
    assert len(patterns(dialect)) > 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_used(dialect: str) -> None:
    used = plainly(dialect) | {name for kinds in patterns(dialect) for names in kinds for name in names}
    if dialect == "postgres":  # some are run by a variable
        used |= spelled_out(dialect)
    assert not defined(dialect) - used


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_name_used_exists(dialect: str) -> None:
    assert not plainly(dialect) - defined(dialect)
    assert [
        kinds for kinds in patterns(dialect) if not all(names & defined(dialect) for names in kinds[:2])
    ] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_query_is_there_twice(dialect: str) -> None:
    text = (SQL_FOLDER / dialect / "queries.sql").read_text("utf-8")
    assert sorted(defined(dialect)) == sorted(re.findall(r"^--\s*name:\s*(\S+)", text, re.MULTILINE))
    bodies = Counter(plain(sql) for sql in load_queries(f"waylore.store.{dialect}").values())
    assert [body for body, count in bodies.items() if count > 1] == []
    assert "" not in bodies


def test_both_dialects_have_the_same_queries_but_for_a_reason() -> None:
    assert defined("sqlite") - defined("postgres") == {name for names in ONLY_SQLITE.values() for name in names}
    assert defined("postgres") - defined("sqlite") == {
        name for names in ONLY_POSTGRES.values() for name in names
    }


@pytest.mark.parametrize(
    "path", [m for m in MODULES if m != KEPT], ids=lambda path: str(path.relative_to(SOURCE))
)
def test_python_holds_no_sql(path: Path) -> None:
    assert [m.group() for m in STATEMENT.finditer(path.read_text("utf-8"))] == []


def test_the_schema_is_the_sum_of_its_migrations() -> None:
    schema = (SQL_FOLDER / "sqlite" / "schema.sql").read_text("utf-8")
    assert built(schema) == built(*(sql for _, _, sql in load_migrations("waylore.store.sqlite")))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_without_gaps(dialect: str) -> None:
    numbers = [number for number, _, _ in load_migrations(f"waylore.store.{dialect}")]
    assert numbers == [*range(1, len(numbers) + 1)]


def built(*scripts: str) -> dict[str, str]:
    """What a database made by these scripts holds."""
    db = apsw.Connection(":memory:")
    try:
        for script in scripts:
            db.execute(script)
        rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
        return {f"{kind} {name} of {table}": plain(sql or "") for kind, name, table, sql in rows}
    finally:
        db.close()


def plain(sql: str) -> str:
    """SQL without comments and line breaks."""
    return " ".join(re.sub(r"--.*", "", sql).split())
