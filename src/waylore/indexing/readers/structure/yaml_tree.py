"""Parse YAML into nested lists of keys and values with their offsets, from the events of PyYAML.

No object is constructed: a scalar stays as it is written, without its quotes. An alias stays a name and is not
expanded, so that a small file cannot become a large one, and depth and size are limited. Tags are ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from waylore.indexing.blocks import ReadError, require_library

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value with its offsets; a plain value is written without quotes."""

    text: str
    start: int
    end: int
    is_plain: bool = True


@dataclass(slots=True)
class Sequence:
    """The items of a list."""

    items: list["Node"] = field(default_factory=list)


@dataclass(slots=True)
class Mapping:
    """The keys and values of a mapping, in their order."""

    pairs: list[tuple[Scalar, "Node"]] = field(default_factory=list)


Node: TypeAlias = Scalar | Sequence | Mapping


def parse_yaml(text: str, max_nodes: int) -> list[Node]:
    """Return the documents of a text. Raise ReadError if it is not YAML, or too deep or too large."""
    yaml = require_library("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = Sequence()
    try:
        for number, event in enumerate(_check_depth(yaml.parse(text, Loader=loader))):
            if number > 2 * max_nodes:
                raise ReadError(f"it has more than {max_nodes:,} values")
            if number == 0:
                builder = _TreeBuilder(documents)
            builder.add(event)
    except yaml.YAMLError as error:
        raise ReadError(f"it is not YAML: {error}"[:300]) from error
    return documents.items


def _check_depth(events: Iterator[Any]) -> Iterator[Any]:
    """Yield the events until they are nested too deep: the parser takes quadratic time for deep nesting."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > MAX_DEPTH:
            raise ReadError(f"it has more than {MAX_DEPTH} levels of nested values")
        yield event


class _TreeBuilder:
    """Builds nodes from events. The stack holds the open nodes; keys wait in `_keys` for their values."""

    def __init__(self, documents: Sequence) -> None:
        self._open: list[Sequence | Mapping] = [documents]
        self._keys: list[Scalar | None] = [None]

    def add(self, event: Any) -> None:
        """Add the node of an event, or close the node that ends."""
        match type(event).__name__:
            case "ScalarEvent":
                is_plain = not event.style or event.style in "|>"
                self._put(Scalar(event.value, event.start_mark.index, event.end_mark.index, is_plain))
            case "AliasEvent":
                self._put(Scalar(f"*{event.anchor}", event.start_mark.index, event.end_mark.index))
            case "SequenceStartEvent":
                self._begin(Sequence())
            case "MappingStartEvent":
                self._begin(Mapping())
            case "SequenceEndEvent" | "MappingEndEvent":
                self._open.pop()
                self._keys.pop()

    def _begin(self, node: Sequence | Mapping) -> None:
        self._put(node)
        self._open.append(node)
        self._keys.append(None)

    def _put(self, node: Node) -> None:
        parent = self._open[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif (key := self._keys[-1]) is None:
            self._keys[-1] = node if isinstance(node, Scalar) else Scalar("", 0, 0)
        else:
            parent.pairs.append((key, node))
            self._keys[-1] = None
