"""Read YAML, TOML and JSON as structure: every value is a field under the path of its keys.

An entry of a list is a section that begins with its name, so that its values stay with it. An entry of a mapping is
such a section too if all values of the mapping are mappings with a common key. A field is about its entry. The text of
the document is the text of its fields. Comments of YAML and TOML are paragraphs. A file that cannot be parsed, or has
too many values, is read as text.
"""

import re
import tomllib
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from waylore.indexing.blocks import Block, ReadError, Reading, Source
from waylore.indexing.encoding import decode_text
from waylore.indexing.readers.code import read_code
from waylore.indexing.readers.plain import read_text
from waylore.indexing.readers.structure.rendering import TextWriter
from waylore.indexing.readers.structure.titles import get_own_title, name_file
from waylore.indexing.readers.structure.yaml_tree import MAX_DEPTH, Mapping, Node, Scalar, Sequence, parse_yaml

_NAMES = ("name", "title", "id", "label", "term", "word", "slug", "key")
_OWN_NAMES = ("name", "title")
_NAME_ENDS = ("name", "title", "id")
_MAX_NAME = 100
_REPEAT_PATH = 400  # a heading repeats the whole path after this many characters, less than half a passage
_COMMENT = re.compile(r"^[ \t]*#[ \t]?(.*)$", re.MULTILINE)
_YAML_LINE = re.compile(r"""\s*(?:#.*|-\s.*|(?:-\s+)?(?:"[^"]*"|'[^']*'|[\w./-]+):(?:\s.*)?)?""")
_NESTED = re.compile(r"^(?:[ ]+\S|-\s)", re.MULTILINE)
_MAX_UNNAMED = 100_000  # bytes of a file without a suffix that may be YAML
_TOML_KEY = re.compile(r"[\s\[]*([\w.\"'-]+)")


def read_yaml(source: Source) -> Iterator[Reading]:
    """Read a YAML file as one document; its comments keep their places."""
    text = decode_text(source.read_bytes(), source.limits)
    try:
        documents = parse_yaml(text, source.limits.blocks)
        yield build_reading(source, documents, [(m.start(), m[1]) for m in _COMMENT.finditer(text)])
    except ReadError:
        yield from read_code(source)


def read_unnamed(source: Source) -> Iterator[Reading]:
    """Read a file without a suffix: as YAML if it is that, such as `OWNERS`, otherwise as plain text."""
    if source.path.stat().st_size > _MAX_UNNAMED:
        return read_text(source)
    try:
        is_yaml = _is_yaml(decode_text(source.read_bytes(), source.limits), source.limits.blocks)
    except ReadError:
        is_yaml = False  # plain text says what is wrong
    return read_yaml(source) if is_yaml else read_text(source)


def _is_yaml(text: str, max_nodes: int) -> bool:
    """Return whether each line of a text is a key, an item or a comment, some below others, and can be parsed."""
    if not (_NESTED.search(text) and all(map(_YAML_LINE.fullmatch, text.splitlines()))):
        return False
    return all(isinstance(node, Mapping) for node in parse_yaml(text, max_nodes))


def read_toml(source: Source) -> Iterator[Reading]:
    """Read a TOML file as one document; a comment is put before the first key of the name below it."""
    text = decode_text(source.read_bytes(), source.limits)
    try:
        node = to_node(tomllib.loads(text.replace("\r\n", "\n"), parse_float=str))
        yield build_reading(source, [node], [], _find_toml_comments(text))
    except (ValueError, RecursionError, ReadError):
        yield from read_code(source)


def to_node(value: Any, depth: int = 0) -> Node:
    """Return a parsed value as a node. Raise ReadError if it is nested too deep."""
    if depth > MAX_DEPTH:
        raise ReadError(f"it has more than {MAX_DEPTH} levels of nested values")
    if isinstance(value, dict):
        return Mapping([(Scalar(str(key), 0, 0), to_node(each, depth + 1)) for key, each in value.items()])
    if isinstance(value, list):
        return Sequence([to_node(each, depth + 1) for each in value])
    return Scalar("" if value is None else str(value).lower() if isinstance(value, bool) else str(value), 0, 0)


def build_reading(
    source: Source,
    documents: list[Node],
    comments: list[tuple[int, str]],
    above: dict[str, deque[str]] | None = None,
) -> Reading:
    """Return the fields of a file. `comments` have offsets; comments in `above` belong to the key below them."""
    writer = _FieldWriter(source.limits.blocks, deque(comments), above or {})
    for node in documents:
        writer.add_node("", node, ())
    writer.add_comments(None)
    if not writer.blocks:
        raise ReadError("it has no text")
    top = documents[0].pairs if documents and isinstance(documents[0], Mapping) else []
    title = get_own_title({key.text: node.text for key, node in top if isinstance(node, Scalar)})
    return Reading(source.uri, title or _name_data(source), writer.text, tuple(writer.blocks))


def _name_data(source: Source) -> str:
    """Return the name of a file with its suffix, because there is often a page with the same name."""
    return name_file(source) + PurePosixPath(source.uri).suffix


def _find_toml_comments(text: str) -> dict[str, deque[str]]:
    """Return comments by the last part of the key that follows them."""
    found: dict[str, deque[str]] = {}
    waiting: list[str] = []
    for line in text.splitlines():
        if match := _COMMENT.match(line):
            waiting.append(match[1])
        elif waiting and (key := _TOML_KEY.match(line)):
            found.setdefault(key[1].strip("\"'").rpartition(".")[2], deque()).append("\n".join(waiting))
            waiting = []
    return found


class _FieldWriter(TextWriter):
    """Writes nodes as headings, fields and items."""

    def __init__(self, max_blocks: int, comments: deque[tuple[int, str]], above: dict[str, deque[str]]) -> None:
        super().__init__(max_blocks)
        self._comments, self._above = comments, above
        self._since_path = 0
        self._entry = ""  # entry of the next fields

    def add_node(self, key: str, node: Node, path: tuple[str, ...]) -> None:
        """Add a node under its key, and everything below it."""
        if isinstance(node, Scalar):
            self._add_field(key, [node], path)
        elif isinstance(node, Mapping):
            self._add_mapping(key, node, path)
        elif node.items and all(isinstance(item, Scalar) for item in node.items):
            self._add_field(key, [item for item in node.items if isinstance(item, Scalar)], path)
        else:
            inner = self._add_heading(key, key, path) if key else path
            for item in node.items:
                if isinstance(item, Mapping):
                    self._add_entry(item, inner, key)
                else:
                    self.add_node("", item, inner)

    def add_comments(self, before: int | None) -> None:
        """Add the comments before an offset, or all remaining ones, as one paragraph."""
        lines = []
        while self._comments and (before is None or self._comments[0][0] < before):
            lines.append(self._comments.popleft()[1])
        self._add_comment("\n".join(lines))

    def _add_comment(self, text: str) -> None:
        self.add("paragraph", text.strip(), self.blocks[-1].headings if self.blocks else ())

    def _add_mapping(self, key: str, node: Mapping, path: tuple[str, ...]) -> None:
        inner = self._add_heading(key, key, path) if key else path
        if self._entry and has_own_name(node):
            self._add_entry(node, inner, key)
            return
        if self._entry or not has_keyed_entries(node):
            self._add_pairs(node.pairs, inner)
            return
        for name, entry in node.pairs:
            self._announce(name)
            below = self._add_heading(name.text, name.text, inner)
            with self._begin_entry(name.text):
                self._add_pairs(entry.pairs if isinstance(entry, Mapping) else [], below)

    @contextmanager
    def _begin_entry(self, name: str) -> Iterator[None]:
        """Let the fields that are added in the context belong to an entry."""
        outer, self._entry = self._entry, name
        yield
        self._entry = outer

    def _add_entry(self, node: Mapping, path: tuple[str, ...], relation: str) -> None:
        """Add an entry of a list: its name is a heading, its other values are fields below.

        `relation` is the key of the list; it relates the entry to the entry around it.
        """
        named = find_name(node)
        if named is None:
            self._add_pairs(node.pairs, path)
            return
        key, value = named
        if node.pairs:
            self._announce(node.pairs[0][0])
        name = value.text.strip()
        inner = self._add_heading(f"{key.text}: {name}", name, path, key.text, [(relation, name)])
        with self._begin_entry(name):
            self._add_pairs([pair for pair in node.pairs if pair[0] is not key], inner)

    def _add_pairs(self, pairs: list[tuple[Scalar, Node]], path: tuple[str, ...]) -> None:
        for key, node in pairs:
            self._announce(key)
            self.add_node(key.text, node, path)

    def _announce(self, key: Scalar) -> None:
        """Add the comments above a key."""
        if key.end:
            self.add_comments(key.start)
        elif queue := self._above.get(key.text):
            self._add_comment(queue.popleft())

    def _add_heading(
        self, text: str, name: str, path: tuple[str, ...], key: str = "", cells: list[tuple[str, str]] | None = None
    ) -> tuple[str, ...]:
        """Add a heading and return the path below it; after a while, it repeats the path above."""
        shown = text
        if self._since_path > _REPEAT_PATH and path:
            shown = f"{' / '.join(path)} / {text}"
            self._since_path = 0
        inner = (*path, name)
        self.add("heading", shown, inner, key=key, cells=cells if cells and self._entry else (), about=self._entry)
        self._since_path += len(shown)
        return inner

    def _add_field(self, key: str, values: list[Scalar], path: tuple[str, ...]) -> None:
        texts = [value.text.strip() for value in values if value.text.strip()]
        text = ", ".join(texts)
        if not key:
            for each in texts:
                self.add("item", each, path)
        elif text:
            self.add("field", f"{key}: {text}", path, key=key, cells=[(key, each) for each in texts], about=self._entry)
        self._since_path += len(key) + len(text) + 2
        self._skip_comments(values)

    def _skip_comments(self, values: list[Scalar]) -> None:
        """Drop text inside of values that looks like a comment, such as in a script of several lines."""
        for value in values:
            while self._comments and value.start <= self._comments[0][0] < value.end:
                self._comments.popleft()


def has_keyed_entries(node: Mapping) -> bool:
    """Return whether all values of a mapping are mappings, and two of them have a common key."""
    entries = [value for _, value in node.pairs if isinstance(value, Mapping)]
    keys = Counter(key for entry in entries for key in {key.text for key, _ in entry.pairs})
    return len(entries) == len(node.pairs) and max(keys.values(), default=0) > 1


def has_own_name(node: Mapping) -> bool:
    """Return whether a mapping has a field with its name."""
    return any(key.text.lower() in _OWN_NAMES and isinstance(value, Scalar) for key, value in node.pairs)


def find_name(node: Mapping) -> tuple[Scalar, Scalar] | None:
    """Return the key and the value of an entry's name: its name, title or id, else its first value if short."""
    scalars = [(key, value) for key, value in node.pairs if isinstance(value, Scalar) and is_name(value.text)]
    keyed = {key.text.lower(): (key, value) for key, value in reversed(scalars)}
    for name in _NAMES:
        if name in keyed:
            return keyed[name]
    ending = (pair for pair in scalars if pair[0].text.lower().endswith(_NAME_ENDS))
    return next(ending, scalars[0] if scalars and node.pairs[0][0] is scalars[0][0] else None)


def is_name(text: str) -> bool:
    """Return whether a value can be a name: short, and on one line."""
    bare = text.strip()
    return 0 < len(bare) <= _MAX_NAME and "\n" not in bare


def read_value(source: Source, text: str, value: Any) -> Reading:
    """Return a parsed JSON value as fields, or its text as one block if it is too large or too deep."""
    try:
        return build_reading(source, [to_node(value)], [])
    except (ReadError, RecursionError):
        return Reading(source.uri, _name_data(source), text, (Block("code", 0, len(text)),))
