"""Front matter: `key: value` lines between two `---` at the top of a file, as metadata.

Scalars, `[a, b]` and lists of `- item` lines are read; what is nested deeper is left out. It is not a YAML
parser: no aliases, no tags, nothing that can grow.
"""

import re
from collections.abc import Iterator

from waylore.types.knowledge import Metadata, Scalar

_FRONT = re.compile(r"---[ \t]*(?:\r\n?|\n)(.*?)(?<=[\r\n])---[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL)
_PAIR = re.compile(r"([A-Za-z_][\w .-]{0,99}):(?:[ \t]+(.*)|[ \t]*)$")
_ITEM = re.compile(r"\s*-[ \t]+(\S.*)$")
_LONGEST = 100_000


def front_matter(text: str) -> tuple[Metadata, int]:
    """What the front matter says, and where the text goes on after it."""
    found = _FRONT.match(text, 0, _LONGEST)
    if found is None:
        return {}, 0
    return dict(_pairs(found[1])), found.end()


def _pairs(lines: str) -> Iterator[tuple[str, Scalar | list[Scalar]]]:
    open_key, items = "", list[Scalar]()
    for line in lines.splitlines():
        if open_key and (item := _ITEM.match(line)):
            items.append(_scalar(item[1]))
        elif pair := _PAIR.match(line):
            if items:
                yield open_key, items
            open_key, items = ("", []) if pair[2] else (pair[1].strip(), [])
            if pair[2]:
                yield pair[1].strip(), _value(pair[2].strip())
    if items:
        yield open_key, items


def _value(written: str) -> Scalar | list[Scalar]:
    if written.startswith("[") and written.endswith("]"):
        return [_scalar(part) for part in written[1:-1].split(",") if part.strip()]
    return _scalar(written)


def _scalar(written: str) -> Scalar:
    written = written.strip()
    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
        return written[1:-1]
    if written.lower() in ("true", "false"):
        return written.lower() == "true"
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", written):
        return int(written)
    if re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", written):
        return float(written)
    return written
