"""SQL lives in its files: every query is used, every name used exists, and the schema is its migrations."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import weft
from weft.store.queries import migrations, queries

SOURCE = Path(weft.__file__).parent
SQL_FOLDER = SOURCE / "store" / "sql" / "sqlite"
MODULES = sorted(SOURCE.rglob("*.py"))
KEPT = SOURCE / "providers" / "kept.py"  # excused: its files may be deleted at any time
SINGULAR = ("passage", "entity", "fact")
PLURAL = ("passages", "entities", "facts")
STATEMENT = re.compile(
    r"\b(SELECT\s+[\w*]+[\s,]|INSERT\s+(OR|INTO)\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b"
    r"|CREATE\s+(TABLE|INDEX|VIRTUAL|UNIQUE)\b|PRAGMA\s+\w|BEGIN\s+IMMEDIATE\b)"
    r"|\b(insert into|delete from|select .* from \w+ where)\b"
)


def asked_for() -> Iterator[ast.expr]:
    """Whatever stands for a query's name: SQL[…], and the second argument of by_ids and by_rows."""
    for path in sorted((SOURCE / "store").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Subscript(value=ast.Name("SQL"), slice=name):
                    yield name
                case ast.Call(func=ast.Name("by_ids" | "by_rows"), args=[_, name, *_]):
                    yield name


def expanded(pattern: ast.JoinedStr) -> list[set[str]]:
    """The names an f-string may stand for, those of a kind together."""
    pieces = [part.value if isinstance(part, ast.Constant) else "{}" for part in pattern.values]
    text = "".join(map(str, pieces))
    return [{text.format(one), text.format(many)} for one, many in zip(SINGULAR, PLURAL, strict=True)]


DEFINED = set(queries("sqlite"))
PLAIN = {name.value for name in asked_for() if isinstance(name, ast.Constant)}
PATTERNS = [expanded(name) for name in asked_for() if isinstance(name, ast.JoinedStr)]


def test_the_scan_sees_both_ways_to_ask() -> None:
    assert {"begin", "digests", "delete_passages"} <= PLAIN
    assert len(PATTERNS) > 5


def test_every_query_is_used() -> None:
    assert not DEFINED - PLAIN - {name for kinds in PATTERNS for names in kinds for name in names}


def test_every_name_used_exists() -> None:
    assert not PLAIN - DEFINED
    assert [kinds for kinds in PATTERNS if not all(names & DEFINED for names in kinds[:2])] == []


def test_no_query_is_there_twice() -> None:
    text = (SQL_FOLDER / "queries.sql").read_text("utf-8")
    assert sorted(DEFINED) == sorted(re.findall(r"^--\s*name:\s*(\S+)", text, re.MULTILINE))
    bodies = Counter(plain(sql) for sql in queries("sqlite").values())
    assert [body for body, count in bodies.items() if count > 1] == []
    assert "" not in bodies


@pytest.mark.parametrize(
    "path", [m for m in MODULES if m != KEPT], ids=lambda path: str(path.relative_to(SOURCE))
)
def test_python_holds_no_sql(path: Path) -> None:
    assert [m.group() for m in STATEMENT.finditer(path.read_text("utf-8"))] == []


def test_the_schema_is_the_sum_of_its_migrations() -> None:
    schema = (SQL_FOLDER / "schema.sql").read_text("utf-8")
    assert built(schema) == built(*(sql for _, _, sql in migrations("sqlite")))


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in migrations("sqlite")]
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
