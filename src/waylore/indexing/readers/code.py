"""Read source code: one block for each definition, with offsets into the file.

Python is parsed with `ast`. Other languages, and Python that does not parse, are matched by patterns of definitions.
The title of a Python module is its import name. `extractors.structure` extracts imports and names.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from waylore.indexing.blocks import Block, ReadError, Reading, Source
from waylore.indexing.encoding import decode_text, find_line_starts

_MAX_TREE_CHARACTERS = 1_000_000  # a syntax tree takes a hundred times the memory of its text
_MINIFIABLE = (".js", ".mjs", ".cjs", ".css")
_MINIFIED = 1_000  # characters of a line on average, from which on nobody wrote it
_WORDS = (
    "def|class|function|func|fn|struct|enum|trait|interface|type|impl|module|namespace|protocol|extension|object|record"
)
_DEFINITION = re.compile(
    rf"^(?P<indent>[ \t]*)(?:(?:export|default|public|private|protected|internal|static|final|abstract|async"
    rf"|pub(?:\([a-z]{{1,10}}\))?|const|unsafe|virtual|override|sealed|open|data|partial)[ \t]+){{0,6}}"
    rf"(?:{_WORDS})[ \t]+(?:\([^()\r\n]{{0,100}}\)[ \t]*)?(?P<name>[A-Za-z_$][\w$.:]{{0,99}})",
    re.MULTILINE,
)


def read_code(source: Source) -> Iterator[Reading]:
    """Read a source file as one document."""
    text = decode_text(source.read_bytes(), source.limits)
    if source.path.suffix.lower() in _MINIFIABLE and len(text) > _MINIFIED * len(text.splitlines()):
        raise ReadError("it is minified or generated; add what it was made from")
    starts = find_line_starts(text, source.limits.blocks)
    is_python = source.path.suffix in (".py", ".pyi")
    tree = _parse(text) if is_python else None
    definitions = list(_find_definitions(tree, (), text, starts) if tree else _match_definitions(text))
    every = _fill_gaps(definitions, 0, len(text), ())
    blocks = tuple(block for block in every if not text[block.start : block.end].isspace())
    title = _get_module_name(source.path) if is_python else source.uri.rsplit("/", 1)[-1]
    yield Reading(source.uri, title, text, blocks)


def _get_module_name(path: Path) -> str:
    """Return the import name of a module of a package; outside of packages, the file name."""
    names = [] if path.stem == "__init__" else [path.stem]
    folder = path.resolve().parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names) if len(names) > 1 or path.stem == "__init__" else path.name


def _parse(text: str) -> ast.Module | None:
    if len(text) > _MAX_TREE_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # syntax warnings of the file do not concern the caller
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_definitions(
    parent: ast.Module | ast.ClassDef, path: tuple[str, ...], text: str, starts: list[int]
) -> Iterator[Block]:
    """Yield a block for each function and method, and for each piece of a class between its methods."""
    for node in parent.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        start, end = _find_span(node, text, starts)
        inner = (*path, node.name)
        if isinstance(node, ast.ClassDef):
            yield from _fill_gaps(list(_find_definitions(node, inner, text, starts)), start, end, inner)
        else:
            yield Block("code", start, end, inner)


def _fill_gaps(blocks: list[Block], start: int, end: int, path: tuple[str, ...]) -> Iterator[Block]:
    for block in blocks:
        if start < block.start:
            yield Block("code", start, block.start, path)
        yield block
        start = block.end
    if start < end:
        yield Block("code", start, end, path)


def _find_span(node: ast.stmt, text: str, starts: list[int]) -> tuple[int, int]:
    """Return the offsets of a statement with its decorators, from the beginning of its line."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    last = starts[(node.end_lineno or node.lineno) - 1]
    line = text[last : starts[node.end_lineno or node.lineno]]
    column = len(line.encode()[: node.end_col_offset].decode(errors="ignore"))
    return starts[first - 1], last + column


def _match_definitions(text: str) -> Iterator[Block]:
    """Yield a block for each definition that is not indented, up to the next one."""
    definitions = [match for match in _DEFINITION.finditer(text) if not match["indent"]]
    starts = [*(match.start() for match in definitions), len(text)]
    for match, end in zip(definitions, starts[1:], strict=True):
        yield Block("code", match.start(), end, (match["name"],))
