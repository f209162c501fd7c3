"""Read the modules of a source tree: functions, classes, docstrings and comments. It computes no figure."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

PRAGMA = re.compile(r"#\s*(noqa|type:|pragma|pylint|fmt:|mypy|pyright|isort|nosec|ruff|!|-\*-)", re.IGNORECASE)


@dataclass(frozen=True)
class Module:
    """One source file, parsed. `folder` is relative to the root of the tree."""

    path: Path
    folder: str
    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.text.splitlines())

    @cached_property
    def functions(self) -> list[Function]:
        """Every function at any depth, without `@overload` stubs."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, Function)]
        return [function for function in found if "overload" not in decorators(function)]

    @cached_property
    def classes(self) -> list[str]:
        """The names of public classes at any depth."""
        names = [node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]
        return [name for name in names if not name.startswith("_")]

    @cached_property
    def comments(self) -> list[str]:
        """Every comment that is not a pragma."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
        return [comment.lstrip("# ") for comment in comments if not PRAGMA.match(comment)]

    @cached_property
    def prose(self) -> list[str]:
        """Every docstring and every comment."""
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, documented)]
        return [text for text in (*map(ast.get_docstring, nodes), *self.comments) if text]


def read_tree(root: Path) -> list[Module]:
    """Read every Python file below `root`; stop with a message if one cannot be parsed."""
    return [_read_module(root, path) for path in sorted(root.rglob("*.py")) if "__pycache__" not in path.parts]


def _read_module(root: Path, path: Path) -> Module:
    place = path.relative_to(root)
    parts = [root.name, *place.with_suffix("").parts]
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text("utf-8")
    try:
        return Module(path, place.parent.as_posix(), name, text, ast.parse(text))
    except SyntaxError as error:
        raise SystemExit(f"{path}:{error.lineno}: cannot be parsed, {error.msg}") from error


def decorators(function: Function) -> set[str]:
    """Return the last part of the name of each decorator."""
    return set(map(_last_name, function.decorator_list))


def _last_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def is_property(function: Function) -> bool:
    """Return whether a function is a property, which may have a noun as name and docstring."""
    return not {"property", "cached_property", "setter"}.isdisjoint(decorators(function))


def is_typed(function: Function) -> bool:
    """Return whether every parameter and the return value are annotated."""
    every = function.args
    parameters = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    checked = [one for one in parameters if one is not None and one.arg not in ("self", "cls", "_")]
    has_return = function.returns is not None or function.name == "__init__"
    return has_return and all(one.annotation is not None for one in checked)


def count_lines(function: Function) -> int:
    """Count the lines of a function without its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def find_imports(module: Module, names: set[str], *, at_load: bool) -> set[str]:
    """Return which modules of `names` a module imports; with `at_load` only when it is loaded."""
    found: set[str] = set()
    for node in _import_nodes(module.tree, at_load=at_load):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            base = _base_of(module, node)
            inner = {alias.name: f"{base}.{alias.name}" for alias in node.names}
            found |= {full if full in names else base for full in inner.values()}
    return (found & names) - {module.name}


def _base_of(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = module.path.name == "__init__.py"
    above = module.name.split(".")[: None if is_package and node.level == 1 else is_package - node.level]
    return ".".join([*above, node.module] if node.module else above)


def _import_nodes(tree: ast.AST, *, at_load: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (at_load and isinstance(node, Function)):
            is_guarded = at_load and _is_type_checking(node)
            yield from _import_nodes(_else_of(node) if is_guarded else node, at_load=at_load)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _else_of(node: ast.AST) -> ast.Module:
    return ast.Module(getattr(node, "orelse", []), [])
