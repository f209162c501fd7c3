"""Reads source code: a block for each definition, in the file's own text.

Python is read with its own `ast`; other languages, and Python that does not parse, by the patterns of their
definitions. A module of Python is titled with the name that others import it by. What code imports and defines
is `structure`'s business.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from waylore.indexing.blocks import Block, Reading, Source
from waylore.indexing.encoding import decoded, line_starts

_LONGEST_TREE = 1_000_000  # characters; a syntax tree takes a hundred times the memory of its text
_WORDS = (
    "def|class|function|func|fn|struct|enum|trait|interface|type|impl|module|namespace|protocol|extension|object"
    "|record"
)
_DEFINITION = re.compile(
    rf"^(?P<indent>[ \t]*)(?:(?:export|default|public|private|protected|internal|static|final|abstract|async"
    rf"|pub(?:\([a-z]{{1,10}}\))?|const|unsafe|virtual|override|sealed|open|data|partial)[ \t]+){{0,6}}"
    rf"(?:{_WORDS})[ \t]+(?:\([^()\r\n]{{0,100}}\)[ \t]*)?(?P<name>[A-Za-z_$][\w$.:]{{0,99}})",
    re.MULTILINE,
)


def code(source: Source) -> Iterator[Reading]:
    """A source file as one document."""
    written = decoded(source.content(), source.limits)
    starts = line_starts(written, source.limits.blocks)
    is_python = source.path.suffix in (".py", ".pyi")
    tree = _tree(written) if is_python else None
    definitions = list(_python(tree, (), written, starts) if tree else _by_pattern(written))
    every = _between(definitions, 0, len(written), ())
    blocks = tuple(block for block in every if not written[block.start : block.end].isspace())
    title = _module(source.path) if is_python else source.uri.rsplit("/", 1)[-1]
    yield Reading(source.uri, title, written, blocks)


def _module(path: Path) -> str:
    """The name by which Python imports a file of a package; the file's own name outside of packages."""
    names = [] if path.stem == "__init__" else [path.stem]
    folder = path.resolve().parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names) if len(names) > 1 or path.stem == "__init__" else path.name


def _tree(written: str) -> ast.Module | None:
    if len(written) > _LONGEST_TREE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd in a file that is read is not ours to warn of
            return ast.parse(written)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _python(
    parent: ast.Module | ast.ClassDef, path: tuple[str, ...], written: str, starts: list[int]
) -> Iterator[Block]:
    """Definitions, a class in the pieces between its methods; what lies between them is filled in later."""
    for node in parent.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        start, end = _place(node, written, starts)
        inner = (*path, node.name)
        if isinstance(node, ast.ClassDef):
            yield from _between(list(_python(node, inner, written, starts)), start, end, inner)
        else:
            yield Block("code", start, end, inner)


def _between(blocks: list[Block], start: int, end: int, path: tuple[str, ...]) -> Iterator[Block]:
    for block in blocks:
        if start < block.start:
            yield Block("code", start, block.start, path)
        yield block
        start = block.end
    if start < end:
        yield Block("code", start, end, path)


def _place(node: ast.stmt, written: str, starts: list[int]) -> tuple[int, int]:
    """Offsets of a statement, its decorators with it, from the beginning of its line."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    last = starts[(node.end_lineno or node.lineno) - 1]
    line = written[last : starts[node.end_lineno or node.lineno]]
    column = len(line.encode()[: node.end_col_offset].decode(errors="ignore"))
    return starts[first - 1], last + column


def _by_pattern(written: str) -> Iterator[Block]:
    """A block from each definition that is not indented to the next one."""
    tops = [found for found in _DEFINITION.finditer(written) if not found["indent"]]
    starts = [*(found.start() for found in tops), len(written)]
    for found, end in zip(tops, starts[1:], strict=True):
        yield Block("code", found.start(), end, (found["name"],))
