"""Reads source code: what it defines and what it imports, in the file's own text.

Python is read with its own `ast`; other languages, and Python that does not parse, by the patterns of their
definitions. It resolves no names: an import's target is what the code calls it.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from weft.indexing.blocks import Block, Link, Reading, Source
from weft.indexing.decoding import decoded, line_starts

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
_IMPORT = re.compile(
    r"^[ \t]*(?:#[ \t]*include[ \t]*[<\"](?P<header>[^>\"\r\n]{1,200})[>\"]"
    r"|(?:import|export)\b[^'\"\r\n;]{0,300}?(?:from[ \t]*)?['\"](?P<quoted>[^'\"\r\n]{1,300})['\"]"
    r"|(?:const|let|var)[ \t][^=\r\n]{1,200}=[ \t]*require\(['\"](?P<required>[^'\"\r\n]{1,300})['\"]"
    r"|(?:import|using|use)[ \t]+(?:static[ \t]+)?(?P<dotted>[A-Za-z_][\w.:\\]{0,200})"
    r"|from[ \t]+(?P<origin>[\w.]{1,200})[ \t]+import\b)",
    re.MULTILINE,
)


def code(source: Source) -> Iterator[Reading]:
    """A source file as one document."""
    written = decoded(source.content(), source.limits)
    starts = line_starts(written, source.limits.blocks)
    tree = _tree(written) if source.path.suffix in (".py", ".pyi") else None
    found = list(_python(tree, written, starts)) if tree else list(_by_pattern(written))
    definitions = [part for part in found if isinstance(part, Block)]
    every = _between(definitions, 0, len(written), ())
    blocks = tuple(block for block in every if not written[block.start : block.end].isspace())
    links = tuple(part for part in found if isinstance(part, Link))
    yield Reading(source.uri, source.uri.rsplit("/", 1)[-1], written, blocks, {}, links)


def _tree(written: str) -> ast.Module | None:
    if len(written) > _LONGEST_TREE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd in a file that is read is not ours to warn of
            return ast.parse(written)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _python(tree: ast.Module, written: str, starts: list[int]) -> Iterator[Block | Link]:
    yield from _python_blocks(tree, (), written, starts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            place = _place(node, written, starts)
            yield from (Link(*place, target, written[slice(*place)], "import") for target in _imported(node))


def _python_blocks(
    parent: ast.Module | ast.ClassDef, path: tuple[str, ...], written: str, starts: list[int]
) -> Iterator[Block | Link]:
    """Definitions, a class in the pieces between its methods; what lies between them is filled in later."""
    for node in parent.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        start, end = _place(node, written, starts)
        inner = (*path, node.name)
        yield Link(start, end, ".".join(inner), node.name, "defines")
        if not isinstance(node, ast.ClassDef):
            yield Block("code", start, end, inner)
            continue
        parts = list(_python_blocks(node, inner, written, starts))
        yield from (part for part in parts if isinstance(part, Link))
        yield from _between([part for part in parts if isinstance(part, Block)], start, end, inner)


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


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    origin = "." * node.level + (node.module or "")
    for alias in node.names:
        yield origin if alias.name == "*" else f"{origin}{'' if origin.endswith('.') else '.'}{alias.name}"


def _by_pattern(written: str) -> Iterator[Block | Link]:
    """A block from each definition that is not indented to the next one."""
    tops = [found for found in _DEFINITION.finditer(written) if not found["indent"]]
    starts = [*(found.start() for found in tops), len(written)]
    for found, end in zip(tops, starts[1:], strict=True):
        yield Block("code", found.start(), end, (found["name"],))
    for found in _DEFINITION.finditer(written):
        yield Link(*found.span(), found["name"], found["name"], "defines")
    for found in _IMPORT.finditer(written):
        target = next(group for group in found.groups() if group)
        yield Link(*found.span(), target, found[0].strip(), "import")
