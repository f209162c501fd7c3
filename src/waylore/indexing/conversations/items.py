"""Read the values of a JSON text one at a time: items of a list, lines of JSON, or a single object.

A list is decoded item by item, so only one item is held as objects, and the items before a damaged one are read. An
object with `conversations` stands for that list. The module does not interpret values; the readers do.
"""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from waylore.indexing.blocks import ReadError, Skipped
from waylore.indexing.conversations.export import ExportText, split_lines

MAX_REASON_CHARACTERS = 300
SAMPLED_LINES = 3  # lines that are read to distinguish JSON Lines from one object; the first may be damaged
_SPACE = re.compile(r"\s*")
_LIST_START = re.compile(r"\s*(?:\{\s*\"conversations\"\s*:\s*)?\[")
_DECODER = json.JSONDecoder()


class ExportItem(NamedTuple):
    """One value of an export, with its address."""

    uri: str
    value: Any


def read_items(file: ExportText) -> Iterator[ExportItem | Skipped]:
    """Yield each value of a text, and a `Skipped` for each value that is not JSON."""
    if start := _LIST_START.match(file.text):
        yield from _read_list(file, start.end())
    elif is_json_lines(file.text):
        yield from _read_lines(file)
    else:
        yield ExportItem(file.uri, parse_json(file.text))


def is_json_lines(text: str) -> bool:
    """Return whether there are several lines, and one of the first is a complete JSON object."""
    first = [line for _, line in islice(_split_lines(text), SAMPLED_LINES)]
    return len(first) > 1 and any(line.startswith("{") and _is_json(line) for line in first)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raise ReadError if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReadError(_describe_json_error(error)) from error


def sample_values(file: ExportText, number: int) -> Iterator[Any]:
    """Yield up to `number` of the first values of a text; none if it is not JSON."""
    try:
        for item in islice(read_items(file), number):
            if isinstance(item, ExportItem):
                yield item.value
    except ReadError:
        return


def _read_list(file: ExportText, position: int) -> Iterator[ExportItem | Skipped]:
    """Yield the items of a list that begins at a position; a damaged item and the rest after it are skipped."""
    number, mark = 0, ","
    position = _skip_space(file.text, position)
    while mark == "," and not file.text.startswith("]", position):
        number += 1
        uri = f"{file.uri}#item={number}"
        try:
            value, position = _DECODER.raw_decode(file.text, position)
        except (ValueError, RecursionError) as error:
            yield Skipped(uri, _describe_json_error(error))
            return
        yield ExportItem(uri, value)
        position = _skip_space(file.text, position)
        mark = file.text[position : position + 1]
        position = _skip_space(file.text, position + (mark == ","))
    if mark not in (",", "]"):
        yield Skipped(file.uri, f"it is not JSON after item {number}: it may be cut; the items before were read")


def _read_lines(file: ExportText) -> Iterator[ExportItem | Skipped]:
    for number, line in _split_lines(file.text):
        uri = f"{file.uri}#line={number}"
        try:
            yield ExportItem(uri, parse_json(line))
        except ReadError as error:
            yield Skipped(uri, str(error))


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is not blank."""
    return ((number, line) for number, line in split_lines(text) if line.strip())


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ReadError:
        return False
    return True


def _describe_json_error(error: Exception) -> str:
    place = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
    return f"it is not JSON: {place}"[:MAX_REASON_CHARACTERS]
