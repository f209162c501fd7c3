"""Find the named statements that modules run."""

import ast
from pathlib import Path
from types import ModuleType


def asked_for(queries: str, verb: str, *modules: ModuleType) -> set[str]:
    """Return the names of statements, taken from `queries` (or `sql`), or passed to the method `verb` or to `run`."""
    trees = [ast.parse(Path(str(module.__file__)).read_text("utf-8")) for module in modules]
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Subscript(value=ast.Name(id_), slice=ast.Constant(str(name))) if id_ in (queries, "sql"):
                found.add(name)
            case ast.Call(func=ast.Attribute(attr=attribute), args=[ast.Constant(str(name)), *_]) if attribute == verb:
                found.add(name)
            case ast.Call(func=ast.Name("run" | "_run"), args=[*_, ast.Constant(str(name))]):
                found.add(name)
    return found
