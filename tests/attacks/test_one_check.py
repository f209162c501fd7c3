"""There is one check for writes, in the store: no route, job, importer, tool or command calls a store itself."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import waylore

SOURCE = Path(waylore.__file__).parent
WRITES_AS_OWNER = re.compile(r"\bOWNER\b")
VERBS = {"write", "forget", "stage_vectors", "set_weights", "activate_model"}
CALLERS = {  # they pass on the author that they are given
    "cells/store.py",
    "cells/sync.py",
    "engine/quarantine.py",
    "engine/transfer.py",
    "engine/waylore.py",
    "indexing/enrichment.py",
    "indexing/files/add.py",
    "indexing/files/write.py",
    "indexing/importers/dispatch.py",
    "indexing/memory/repeats.py",
    "indexing/memory/turns.py",
    "indexing/pipeline.py",
    "indexing/redaction.py",
    "service/salvage.py",
    "evaluation/conversations/measure.py",
    "evaluation/index.py",
    "evaluation/tune.py",
}


def list_calls(path: Path) -> Iterator[ast.Call]:
    """Yield the calls of writing verbs that name an author."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and any(keyword.arg == "author" for keyword in node.keywords):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in VERBS:
                yield node


def test_only_engine_and_indexing_call_a_store() -> None:
    parts = [p for p in SOURCE.rglob("*.py") if p.relative_to(SOURCE).parts[0] not in ("store", "testing")]
    found = {p.relative_to(SOURCE).as_posix() for p in parts if any(list_calls(p))}
    assert found == CALLERS


def test_owner_writes_only_for_moves_repairs_tuning_and_benchmark_sets() -> None:
    """Code that writes as the owner, and not as its caller, is none that a caller can reach. A load is the owner's."""
    named = {
        p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py") if WRITES_AS_OWNER.search(p.read_text("utf-8"))
    }
    parts = {name for name in named if not name.startswith(("testing/", "types/"))}
    evaluation = {"evaluation/conversations/measure.py", "evaluation/index.py", "evaluation/tune.py"}
    assert parts == {"cells/sync.py", "engine/waylore.py", "service/salvage.py", "surfaces/cli/load.py", *evaluation}
