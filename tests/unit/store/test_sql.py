"""Named SQL: every query is used, every used name exists, and the schema equals its migrations."""

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
DIALECTS = ("sqlite", "postgres")
ONLY_SQLITE = {
    "the pool rolls back": {"rollback"},
    "settings and checks of a file": {
        *(
            "file_settings",
            "data_version",
            "integrity_check",
            "create_instances",
            "schema_names",
            "add_checksum",
        ),
    },
    "row-level security hides other collections": {"collections"},
    "rows have a number beside their id": {
        *("collection_row", "joined_passage_ids", "joined_entity_ids"),
        "visible_passages",  # whose vectors and terms a connection keeps by row
    },
    "bits replace an index of vectors": {
        *("new_block", "blocks", "resize_blocks", "all_blocks", "joined_passage_vectors", "visible_entities"),
        *("collection_passage_vectors", "collection_entity_vectors", "joined_entity_vectors", "expired_passages"),
        "blocks_by_row",
    },
    "FTS5 is a separate table and needs the text that it deletes": {
        *(
            "insert_words",
            "delete_words",
            "joined_passage_terms",
            "passage_rows_of_documents",
            "tags_of_documents",
        ),
    },
    "PostgreSQL returns deleted rows and adds negative counts": {
        *("document_accesses", "profiles_of_documents"),
        *("remove_name", "remove_key"),
    },
    "files from before keys": {"fill_keys"},
    "staged vectors are stored in the same form": {"adopt_passage", "adopt_entity"},
    "facts have a key of 64 bits": {"known_facts"},
    "SQLite reads in two steps, because it has no round trips": {
        *(
            "count_between",
            "turn_rows",
            "names",
            "visible_entity_counts",
            "packs",
            "retracted_facts",
            "uses_of_facts",
            "vectors_of_passage_rows",
            "packs_with_pairs",
        ),
        "staged_passages",
    },
}
ONLY_POSTGRES = {
    "nothing is kept by row": {"vectors_of_passages", "terms_of_passages"},
    "extensions, roles and locks of a server": {
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
        *("tables", "available_textsearch", "textsearch", "create_textsearch", "data_checksums"),
        *("amcheck", "relations", "check_heap", "check_btree", "check_gin"),
    },
    "pg_textsearch": {"add_ranked", "match_ranked", "unsorted_settings"},
    "an index of vectors": {
        *(
            "index_passage_vectors",
            "index_entity_vectors",
            "drop_index",
            "indexes",
            "unfinished_indexes",
            "try_building",
            "search_settings",
        ),
        *("building_settings", "vector_tables", "create_own_passage_vectors", "create_own_entity_vectors"),
        *("protect_own_vectors", "drop_own_vectors", "fill_own_vectors", "inherit_vectors", "analyze_vectors"),
        *("drop_changed_vectors", "empty_shared_vectors", "use_own_vectors"),
        *("exact_settings", "planned_settings"),
        *("nearest_passages", "nearest_passages_exactly", "nearest_tagged_passages"),
        *("nearest_entities", "nearest_entities_exactly"),
    },
    "vectors of statements are stored in one row": {"set_statement_vectors"},
    "staged vectors are stored in another form": {"staged_vectors"},
    "PostgreSQL reads dependent rows in the same round trip": {
        *("profiles_by_names", "profiles_by_keys", "nearby", "facts_of_passages", "pairs_of_entities"),
    },
    "the store numbers permissions itself": {"known_accesses"},
    "SQLite reports writes of other connections itself": {"version"},
    "a snapshot of several statements": {"begin_reading"},
    "facts have an id of 128 bits": {"fact_rows"},
    "an index on a Qdrant cluster": {
        *("vectors_of_candidates", "terms_of_candidates", "codes_of_candidates", "has_full_outbox"),
        *("queue_changes", "next_changes", "changes_of_items", "confirm_changes", "count_pending"),
        *("lock_feed", "lock_feed_soon", "points_of_passages", "points_of_entities"),
        *("passages_to_index", "entities_to_index", "build_progress", "set_build_progress"),
        *("add_index", "restart_index", "drop_index_rows"),
    },
}
MODULES = sorted(SOURCE.rglob("*.py"))
DISK_CACHE = SOURCE / "providers" / "disk_cache.py"  # exempt: its files can be deleted at any time
SINGULAR = ("passage", "entity", "fact")
PLURAL = ("passages", "entities", "facts")
STATEMENT = re.compile(
    r"\b(SELECT\s+[\w*]+[\s,]|INSERT\s+(OR|INTO)\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b"
    r"|CREATE\s+(TABLE|INDEX|VIRTUAL|UNIQUE)\b|PRAGMA\s+\w|BEGIN\s+(IMMEDIATE|ISOLATION)\b|SET\s+LOCAL\b)"
    r"|\b(insert into|delete from|select .* from \w+ where)\b"
)


def find_query_names(dialect: str) -> Iterator[ast.expr]:
    """Yield the expressions that name a query: SQL[…], and arguments of the functions that run one."""
    for path in sorted((SOURCE / "store" / dialect).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Subscript(value=ast.Name("SQL" | "sql"), slice=name):
                    yield name
                case ast.Call(
                    func=ast.Name(
                        "run_by_ids"
                        | "run_by_rows"
                        | "run_by_facts"
                        | "read_joined"
                        | "run"
                        | "run_many"
                        | "run_without_rows"
                        | "insert_vectors"
                    ),
                    args=[_, name, *_],
                ):
                    yield name
                case ast.Call(func=ast.Name("read_rows" | "make_statement_by_ids" | "make_statement"), args=[name, *_]):
                    yield name


def list_strings(dialect: str) -> set[str]:
    """Return the plain strings of a dialect's modules, because some queries are named by a variable."""
    texts = [path.read_text("utf-8") for path in sorted((SOURCE / "store" / dialect).rglob("*.py"))]
    return {node.value for text in texts for node in ast.walk(ast.parse(text)) if _is_text(node)}  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def expand_pattern(pattern: ast.JoinedStr) -> list[set[str]]:
    """Return the names that an f-string can have, grouped by kind."""
    pieces = [part.value if isinstance(part, ast.Constant) else "{}" for part in pattern.values]
    text = "".join(map(str, pieces))
    return [{text.format(one), text.format(many)} for one, many in zip(SINGULAR, PLURAL, strict=True)]


def list_defined(dialect: str) -> set[str]:
    return set(load_queries(f"waylore.store.{dialect}"))


def list_plain_names(dialect: str) -> set[str]:
    return {name.value for name in find_query_names(dialect) if isinstance(name, ast.Constant)}  # type: ignore[misc]


def list_patterns(dialect: str) -> list[list[set[str]]]:
    return [expand_pattern(name) for name in find_query_names(dialect) if isinstance(name, ast.JoinedStr)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_scan_finds_queries_of_every_form(dialect: str) -> None:
    assert {"digests", "delete_passages", "ensure_collection"} <= list_plain_names(dialect)
    assert len(list_patterns(dialect)) > 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_used(dialect: str) -> None:
    used = list_plain_names(dialect) | {name for kinds in list_patterns(dialect) for names in kinds for name in names}
    if dialect == "postgres":  # some queries are named by a variable
        used |= list_strings(dialect)
    assert not list_defined(dialect) - used


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_name_used_exists(dialect: str) -> None:
    assert not list_plain_names(dialect) - list_defined(dialect)
    assert [
        kinds for kinds in list_patterns(dialect) if not all(names & list_defined(dialect) for names in kinds[:2])
    ] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_query_is_defined_twice(dialect: str) -> None:
    text = (SOURCE / "store" / dialect / "sql" / "queries.sql").read_text("utf-8")
    assert sorted(list_defined(dialect)) == sorted(re.findall(r"^--\s*name:\s*(\S+)", text, re.MULTILINE))
    bodies = Counter(normalise_sql(sql) for sql in load_queries(f"waylore.store.{dialect}").values())
    assert [body for body, count in bodies.items() if count > 1] == []
    assert "" not in bodies


def test_dialects_differ_only_by_listed_queries() -> None:
    assert list_defined("sqlite") - list_defined("postgres") == {
        name for names in ONLY_SQLITE.values() for name in names
    }
    assert list_defined("postgres") - list_defined("sqlite") == {
        name for names in ONLY_POSTGRES.values() for name in names
    }


@pytest.mark.parametrize(
    "path", [m for m in MODULES if m != DISK_CACHE], ids=lambda path: str(path.relative_to(SOURCE))
)
def test_python_modules_contain_no_sql(path: Path) -> None:
    assert [m.group() for m in STATEMENT.finditer(path.read_text("utf-8"))] == []


def test_schema_equals_sum_of_migrations() -> None:
    schema = (SOURCE / "store" / "sqlite" / "sql" / "schema.sql").read_text("utf-8")
    assert build_schema(schema) == build_schema(*(sql for _, _, sql in load_migrations("waylore.store.sqlite")))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_without_gaps(dialect: str) -> None:
    numbers = [number for number, _, _ in load_migrations(f"waylore.store.{dialect}")]
    assert numbers == [*range(1, len(numbers) + 1)]


def build_schema(*scripts: str) -> dict[str, str]:
    """Return the contents of a database that these scripts create."""
    db = apsw.Connection(":memory:")
    try:
        for script in scripts:
            db.execute(script)
        rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
        return {f"{kind} {name} of {table}": normalise_sql(sql or "") for kind, name, table, sql in rows}
    finally:
        db.close()


def normalise_sql(sql: str) -> str:
    """Return SQL without comments, line breaks, and blanks beside brackets and commas."""
    return re.sub(r" ?([(),]) ?", r"\1", " ".join(re.sub(r"--.*", "", sql).split()))
