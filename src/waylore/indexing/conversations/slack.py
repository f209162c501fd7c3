"""Read a Slack export, a zip file or its unpacked folder: one conversation for each channel and day.

Ids of people and channels are replaced by names, also within texts. Notices, such as joins, are left out. Replies in
threads are placed by time, so a thread of several days is part of several conversations. Attached files and reactions
are not read.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from waylore.indexing.blocks import ReadError, Skipped
from waylore.indexing.conversations.assembly import (
    Heading,
    build_conversation,
    convert_messages,
    get_object,
    name_day,
    number_messages,
    sort_by_time,
)
from waylore.indexing.conversations.export import Export
from waylore.indexing.conversations.items import parse_json
from waylore.indexing.conversations.messages import Fields, get_text, to_time
from waylore.types.messages import Conversation, Message

CHANNEL_LISTS = ("channels.json", "groups.json", "mpims.json", "dms.json")
_USERS = "users.json"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
# Subtypes of messages that people and programs write; all others are notices of Slack.
_WRITTEN = ("", "bot_message", "me_message", "thread_broadcast", "reply_broadcast", "file_share", "file_comment")
_MARKUP = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


@dataclass(frozen=True, slots=True)
class SlackNames:
    """The names of people and of channels by id, and the headings of channels by the name of their folder."""

    people: dict[str, str] = field(default_factory=dict)
    channels: dict[str, str] = field(default_factory=dict)
    headings: dict[str, Heading] = field(default_factory=dict)


def is_slack(export: Export) -> bool:
    """Return whether the files are a Slack export."""
    return not export.is_file and any(posixpath.basename(name) in CHANNEL_LISTS for name in export.names)


def read_slack(export: Export) -> Iterator[Conversation | Skipped]:
    """Yield each day of each channel. Raise ReadError if the files are not a Slack export."""
    if not is_slack(export):
        raise ReadError(f"it has none of {', '.join(CHANNEL_LISTS)}: pass the zip file of the export, or its folder")
    names = SlackNames()
    yield from _read_names(export, names)
    for name in export.names:
        folder, file = posixpath.split(name)
        if folder and _DAY.fullmatch(file):
            yield from _read_day(export, name, names)


def _read_names(export: Export, names: SlackNames) -> Iterator[Skipped]:
    """Fill in the names of people, then of channels; a list that cannot be read is skipped."""
    for file in (_USERS, *CHANNEL_LISTS):
        for name in export.names:
            if posixpath.basename(name) == file:
                try:
                    _add_names(names, _load_list(export, name), is_people=file == _USERS)
                except ReadError as error:
                    yield Skipped(export.get_uri(name), str(error))


def _add_names(names: SlackNames, values: list[Any], *, is_people: bool) -> None:
    for value in values:
        if not isinstance(value, Mapping) or not (id_ := get_text(value, "id")):
            continue
        if is_people:
            names.people[id_] = _get_person(value) or id_
        else:
            names.channels[id_] = get_text(value, "name") or id_
            names.headings[names.channels[id_]] = Heading("", id_, _get_title(value, names))


def _get_person(user: Fields) -> str:
    profile = user.get("profile")
    profile = profile if isinstance(profile, Mapping) else {}
    full = get_text(profile, "real_name") or get_text(user, "real_name")
    return full or get_text(profile, "display_name") or get_text(user, "name")


def _get_title(channel: Fields, names: SlackNames) -> str:
    """Return the name of a channel; for a direct conversation, the names of its members."""
    if name := get_text(channel, "name"):
        return f"#{name}"
    members = channel.get("members")
    members = members if isinstance(members, list) else []
    return ", ".join(names.people.get(member, member) for member in members if isinstance(member, str))


def _read_day(export: Export, name: str, names: SlackNames) -> Iterator[Conversation | Skipped]:
    folder, file = posixpath.split(name)
    uri, channel = export.get_uri(name), posixpath.basename(folder)
    try:
        values = _load_list(export, name)
    except ReadError as error:
        yield Skipped(uri, str(error))
        return
    heading = names.headings.get(channel, Heading("", channel, f"#{channel}"))._replace(uri=uri)
    messages, skipped = convert_messages(number_messages(uri, values), partial(_read_message, names))
    day = posixpath.splitext(file)[0]
    if messages or skipped:  # days with only joins are usual
        yield from build_conversation(name_day(heading, day), sort_by_time(messages), skipped)


def _load_list(export: Export, name: str) -> list[Any]:
    value = parse_json(export.read_text(name).text)
    if not isinstance(value, list):
        raise ReadError("it must be a JSON list")
    return value


def _read_message(names: SlackNames, value: Fields) -> Iterator[Message]:
    text = _replace_markup(get_text(value, "text"), names)
    if not text or get_text(value, "type") not in ("", "message") or get_text(value, "subtype") not in _WRITTEN:
        return
    is_bot = get_text(value, "subtype") == "bot_message" or bool(get_text(value, "bot_id"))
    at, id_ = _get_time(value), get_text(value, "ts")
    yield Message("assistant" if is_bot else "user", text, _get_speaker(value, names), at, id_)


def _get_time(value: Fields) -> datetime | None:
    ts = get_text(value, "ts")
    try:
        return to_time(float(ts), "ts")
    except ValueError as error:
        raise ReadError(f"its ts {ts!r:.40} is not a time in seconds") from error


def _get_speaker(value: Fields, names: SlackNames) -> str:
    user = get_text(value, "user")
    if user in names.people:
        return names.people[user]
    profile = get_object(value, "user_profile") or get_object(value, "bot_profile")
    return get_text(profile, "real_name", "display_name", "name") or get_text(value, "username") or user


def _replace_markup(text: str, names: SlackNames) -> str:
    """Return a text with names and addresses in place of Slack's markup."""
    text = _MARKUP.sub(lambda match: _name_mention(match[1], match[2] or "", names), text)
    for escaped, character in _ESCAPES:
        text = text.replace(escaped, character)
    return text.strip()


def _name_mention(target: str, label: str, names: SlackNames) -> str:
    """Return the name of a person, a channel or a group, or a link as `text (address)`."""
    kind, rest = target[0], target[1:]
    if kind == "@":
        return f"@{names.people.get(rest, label or rest)}"
    if kind == "#":
        return f"#{label or names.channels.get(rest, rest)}"
    if kind == "!":
        return label or f"@{rest.split('^')[0]}"
    address = target.removeprefix("mailto:")
    return address if not label or label == address else label if address.endswith(label) else f"{label} ({address})"
