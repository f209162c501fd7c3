"""Read conversations from an export: choose the reader by name or by content.

A reader yields conversations, and a `Skipped` with place and reason for each part that it cannot read; a broken message
never stops the rest. A zip file or folder is read like the files in it. Nothing is written to a store.
"""

import posixpath
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeAlias

from waylore.errors import ConfigError
from waylore.indexing.blocks import Limits, ReadError, Skipped, Source, catch_read_errors, describe_open_error
from waylore.indexing.conversations.chatgpt import read_chatgpt
from waylore.indexing.conversations.claude import read_claude, read_claude_code
from waylore.indexing.conversations.detect import detect_format
from waylore.indexing.conversations.discord import read_discord
from waylore.indexing.conversations.export import Export, ExportText, open_export
from waylore.indexing.conversations.openai import read_openai
from waylore.indexing.conversations.slack import is_slack, read_slack
from waylore.indexing.conversations.transcript import read_transcript
from waylore.indexing.conversations.whatsapp import decide_day_first, read_whatsapp
from waylore.types.messages import Conversation

Reader: TypeAlias = Callable[[ExportText], Iterator[Conversation | Skipped]]
CONVERSATION_LIMITS = Limits(bytes=256_000_000, unpacked_bytes=1_000_000_000)
AUTO = "auto"
SLACK, WHATSAPP = "slack", "whatsapp"
READERS: dict[str, Reader] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "claude-code": read_claude_code,
    "discord": read_discord,
    "openai": read_openai,
    "transcript": read_transcript,
    WHATSAPP: read_whatsapp,
}
FORMATS = (*READERS, SLACK)
# Patterns of the files to read in a folder or zip file: the first pattern with a match is used.
_PATTERNS = (("conversations*.json",), ("_chat.txt", "*whatsapp*.txt"), ("*.json", "*.jsonl", "*.ndjson", "*.txt"))


def read_conversations(
    path: str | Path,
    format: str = AUTO,  # noqa: A002
    *,
    day_first: bool | None = None,
    uri: str = "",
    limits: Limits = CONVERSATION_LIMITS,
) -> Iterator[Conversation | Skipped]:
    """Return the conversations of an export, and a `Skipped` for each part that cannot be read.

    path: a file, a folder or a zip file, as the other program exported it.
    format: auto, chatgpt, claude, claude-code, discord, openai, slack, transcript or whatsapp.
    day_first: whether 1/2 is 1 February, for chats of WhatsApp without a date that shows it.
    uri: the name of the export in the addresses of skipped parts.
    limits: the size of files that are read.
    """
    if format not in (AUTO, *FORMATS):
        raise ConfigError(f"unknown format {format!r}: use {AUTO}, {', '.join(FORMATS)}")
    path = Path(path)
    if not path.exists():
        raise ConfigError(f"no file or folder {path}: check the path")
    source = Source(path, uri or path.as_posix().encode("utf-8", "backslashreplace").decode(), limits)
    try:
        name, day_first = _choose_format(source, format, day_first)
    except ReadError as error:
        return iter([Skipped(source.uri, str(error))])
    except OSError as error:
        return iter([Skipped(source.uri, describe_open_error(error))])
    return catch_read_errors(source.uri, lambda: _read_export(source, name, day_first))


def _choose_format(source: Source, format_: str, day_first: bool | None) -> tuple[str, bool | None]:
    """Return the format of an export, and for WhatsApp the order of day and month in all of its chats."""
    with open_export(source) as export:
        name = _detect(export) if format_ == AUTO else format_
        if not name:
            raise ConfigError(f"the format of {source.uri} cannot be detected: name it, one of {', '.join(FORMATS)}")
        if name == WHATSAPP:
            day_first = decide_day_first(_read_texts(export), day_first=day_first)
        return name, day_first


def _detect(export: Export) -> str:
    if is_slack(export):
        return SLACK
    return next(filter(None, map(detect_format, _read_texts(export))), "")


def _read_texts(export: Export) -> Iterator[ExportText]:
    """Yield the texts of an export. If a file of a folder or zip file cannot be read, the reader reports it."""
    for name in _list_files(export):
        try:
            yield export.read_text(name)
        except ReadError:
            if export.is_file:
                raise


def _read_export(source: Source, format_: str, day_first: bool | None) -> Iterator[Conversation | Skipped]:
    with open_export(source) as export:
        if format_ == SLACK:
            yield from read_slack(export)
            return
        read = partial(read_whatsapp, day_first=day_first) if format_ == WHATSAPP else READERS[format_]
        names = _list_files(export)
        if not names:
            raise ReadError("it has no JSON or text files: pass the export as it was downloaded")
        for name in names:
            yield from catch_read_errors(export.get_uri(name), partial(_read_file, export, name, read))


def _read_file(export: Export, name: str, read: Reader) -> Iterator[Conversation | Skipped]:
    return read(export.read_text(name))


def _list_files(export: Export) -> list[str]:
    """Return the names of the files to read: the file itself, or files of a folder or zip file."""
    if export.is_file:
        return list(export.names)
    for patterns in _PATTERNS:
        found = [name for name in export.names if _matches(name, patterns)]
        if found:
            return found
    return []


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(posixpath.basename(name).lower(), pattern) for pattern in patterns)
