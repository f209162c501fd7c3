"""Each export gets the right reader, and no content raises a raw error or takes more than the limits."""

import json
import tempfile
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.indexing.conversations.exports import (
    ANDROID,
    CHATGPT,
    CLAUDE,
    CLAUDE_CODE,
    DISCORD,
    IOS,
    OPENAI,
    SLACK,
    TRANSCRIPT,
    read,
    write,
    write_folder,
    write_zip,
)
from waylore.errors import ArgumentError, ConfigError
from waylore.indexing.blocks import Limits, Skipped
from waylore.indexing.conversations.dispatch import CONVERSATION_LIMITS, FORMATS, read_conversations
from waylore.types.messages import ROLES, Conversation, Message, Role

SPOKEN = TRANSCRIPT.split("\n", 2)[2]  # without the heading, which is no line with a name
SAMPLES: dict[str, tuple[str, str, str | Any]] = {
    "chatgpt": ("chatgpt", "conversations.json", CHATGPT),
    "claude": ("claude", "conversations.json", CLAUDE),
    "claude, indented": ("claude", "conversations.json", json.dumps(CLAUDE, indent=2, ensure_ascii=False)),
    "claude-code": ("claude-code", "s1.jsonl", "\n".join(map(json.dumps, CLAUDE_CODE))),
    "discord": ("discord", "boats.json", json.dumps(DISCORD, indent=2)),
    "openai": ("openai", "chat.json", OPENAI),
    "openai, lines": ("openai", "chat.jsonl", "\n".join(map(json.dumps, OPENAI))),
    "ios": ("whatsapp", "_chat.txt", IOS),
    "android": ("whatsapp", "chat.txt", ANDROID),
    "transcript": ("transcript", "meeting.txt", SPOKEN),
}


def write_sample(folder: Path, sample: str) -> tuple[str, Path]:
    """Write a sample; return its format and path."""
    format_, name, content = SAMPLES[sample]
    return format_, write(folder / name, content)


# -- detection -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES)
def test_format_is_detected_by_content(tmp_path: Path, sample: str) -> None:
    format_, path = write_sample(tmp_path, sample)
    renamed = path.rename(tmp_path / "export.dat")
    detected, named = list(read_conversations(renamed)), list(read_conversations(renamed, format_))
    assert detected == named
    assert any(isinstance(item, Conversation) for item in detected)


@pytest.mark.parametrize("sample", SAMPLES)
def test_folder_and_zip_file_give_the_same_as_the_file(tmp_path: Path, sample: str) -> None:
    format_, name, content = SAMPLES[sample]
    folder = write_folder(tmp_path / "export", {name: content})
    archive = write_zip(tmp_path / "export.zip", {name: content})
    expected = read(folder / name)[0]
    assert expected
    for path in (folder, archive):
        assert read(path)[0] == expected
        assert read(path, format_)[0] == expected


@pytest.mark.parametrize(
    "content",
    [
        "Waylore is a library.\nIt searches.\n",
        "title: Boats\nauthor: Mara\ndate: 2025\n",
        "[1, 2, 3]",
        '{"a": 1}',
        '[{"name": "Mara", "age": 7}]',
        "[2025-03-05] no name here",
        "7",
    ],
)
def test_other_files_are_refused_with_the_list_of_formats(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "file.txt", content)
    with pytest.raises(ConfigError) as raised:
        read_conversations(path)
    assert str(raised.value).endswith(f"cannot be detected: name it, one of {', '.join(FORMATS)}")


def test_unknown_formats_and_paths_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown format 'icq': use auto, chatgpt, claude, claude-code, discord"):
        read_conversations(write(tmp_path / "a.txt", "Mara: Hello"), "icq")
    with pytest.raises(ConfigError, match="no file or folder"):
        read_conversations(tmp_path / "none.txt")
    with pytest.raises(ConfigError, match="cannot be detected"):
        read_conversations(write_folder(tmp_path / "folder", {"a.pdf": b"%PDF"}))


def test_two_lines_of_a_transcript_are_enough_if_a_name_repeats(tmp_path: Path) -> None:
    [found], _ = read(write(tmp_path / "a.txt", "Mara: Hello\nMara: Are you there?"))
    assert [message.name for message in found.messages] == ["Mara", "Mara"]


def test_the_given_address_names_skipped_parts(tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", [{"uuid": "k1", "chat_messages": [7]}])
    places = [item.uri for item in read_conversations(path, uri="upload.json") if isinstance(item, Skipped)]
    assert places == ["upload.json#item=1#message=1", "upload.json#item=1"]


# -- damage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES)
def test_cut_files_give_messages_reasons_or_our_errors(tmp_path: Path, sample: str) -> None:
    format_, path = write_sample(tmp_path, sample)
    content = path.read_bytes()
    for end in range(0, len(content), 10):
        cut = write(tmp_path / "cut.dat", content[:end])
        assert list(read_conversations(cut, format_, day_first=True))
        try_detected(cut)


def try_detected(path: Path) -> None:
    """Read an export of unknown format; errors of ours may be raised, but only at once."""
    try:
        items = read_conversations(path)
    except (ConfigError, ArgumentError):
        return
    assert all(isinstance(item, Conversation | Skipped) for item in items)


def test_cut_zip_files_give_reasons(tmp_path: Path) -> None:
    content = write_zip(tmp_path / "export.zip", SLACK).read_bytes()
    for end in range(0, len(content), 10):
        path = write(tmp_path / "cut.zip", content[:end])
        assert all(isinstance(item, Skipped) for item in read_conversations(path, "slack"))
        try_detected(path)


def test_zip_files_with_changed_bytes_give_reasons_or_our_errors(tmp_path: Path) -> None:
    content = write_zip(tmp_path / "export.zip", SLACK).read_bytes()
    for place in range(0, len(content), 10):
        try_detected(write(tmp_path / "changed.zip", content[:place] + b"\xff" + content[place + 1 :]))


def test_conversations_before_the_damage_are_read(tmp_path: Path) -> None:
    whole = json.dumps(CHATGPT)
    conversations, skipped = read(write(tmp_path / "c.json", whole[:-40]))
    assert [conversation.id for conversation in conversations] == ["c1"]
    assert list(skipped) == ["#item=2"]
    conversations, skipped = read(write(tmp_path / "c.json", whole[:-1]))
    assert [conversation.id for conversation in conversations] == ["c1", "c2"]
    assert skipped == {"": "it is not JSON after item 2: it may be cut; the items before were read"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it has no text"),
        (b"\xff\x00 and more", "it is not UTF-8: save the file as UTF-8"),
        (b"Mara: caf\xe9, and some more words", "it is not UTF-8: save the file as UTF-8"),
        (b"PK\x03\x04 and no more", "it is a zip file that is damaged or cut: download it again"),
    ],
)
def test_unreadable_files_are_skipped_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    assert read(write(tmp_path / "file", content)) == ([], {"": reason})


def test_exports_without_files_of_the_format_are_skipped(tmp_path: Path) -> None:
    _, skipped = read(write(tmp_path / "a.txt", "Mara: Hello"), "slack")
    assert skipped[""].startswith("it has none of channels.json, groups.json")
    _, skipped = read(write_folder(tmp_path / "folder", {"a.pdf": b"%PDF"}), "discord")
    assert skipped == {"": "it has no JSON or text files: pass the export as it was downloaded"}


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["transcript", "whatsapp", "slack"])
@pytest.mark.parametrize("start", ["", "[", "M", "<"])
@pytest.mark.parametrize("part", ["1", " ", "M ", "\u200e<", "<a|", "\u200e"])
def test_long_lines_take_linear_time(tmp_path: Path, format_: str, start: str, part: str) -> None:
    line = f"{start}{part * 50_000}."  # a minute, if a pattern takes quadratic time
    if format_ == "slack":
        day = [{"type": "message", "user": "U1", "text": line, "ts": "1741168800.000200"}]
        path = write_zip(tmp_path / "export.zip", {"channels.json": [], "boats/2025-03-05.json": day})
    else:
        first = "Mara: " if format_ == "transcript" else "31/03/2025, 10:14 - Mara: "
        path = write(tmp_path / "chat.txt", f"{first}{line}\n{line}")
    before = time.process_time()
    assert list(read_conversations(path, format_))
    assert time.process_time() - before < 5


def test_deep_json_is_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", '[{"uuid": "k1", "chat_messages": []},' + "[" * 100_000)
    conversations, skipped = read(path, "claude")
    assert conversations == []
    assert skipped["#item=2"].startswith("it is not JSON")


WORDS = """id title mapping current_node parent children message author role content parts weight create_time metadata
recipient uuid name created_at chat_messages sender text type input guild channel messages timestamp isBot user ts
subtype user_profile thread_ts tool_calls function""".split()
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["n1", *ROLES])
)
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=20,
)
likely: dict[str, Callable[[Any], Any]] = {
    "chatgpt": lambda value: [
        {"mapping": {"n1": {"parent": value, "message": value}, "n2": value}, "current_node": "n1"}
    ],
    "claude": lambda value: [{"chat_messages": [value, {"sender": "human", "content": value}]}],
    "claude-code": lambda value: [
        {"type": "user", "message": {"content": value}, "uuid": value, "timestamp": value, "sessionId": value},
        {"type": value, "message": value},
        {"type": "assistant", "message": {"content": [value, {"type": "tool_result", "content": value}]}},
    ],
    "discord": lambda value: {"channel": {}, "messages": [value, {"content": "Hello", "author": value}]},
    "openai": lambda value: [value, {"messages": [value]}],
    "slack": lambda value: value,
    "whatsapp": lambda value: value,
    "transcript": lambda value: value,
}


@given(nested, st.sampled_from(FORMATS))
@settings(deadline=None)
def test_no_json_value_stops_a_reader(value: Any, format_: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if format_ == "slack":
            files = {name: [value, value] for name in ("users.json", "channels.json", "boats/2025-03-05.json")}
            path = write_zip(Path(folder, "export.zip"), files)
        else:
            path = write(Path(folder, "export.json"), likely[format_](value))
        items = list(read_conversations(path, format_, day_first=True))
    assert all(isinstance(item, Conversation | Skipped) for item in items)


@given(st.text(), st.sampled_from(FORMATS))
@settings(deadline=None)
def test_no_text_stops_a_reader(text: str, format_: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder, "export.txt"), text.encode("utf-8", "replace"))
        items = list(read_conversations(path, format_, day_first=True))
    assert all(isinstance(item, Conversation | Skipped) for item in items)


# -- limits --------------------------------------------------------------------------------------------


def test_long_files_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "Mara: Hello\n" * 100)
    assert read(path, limits=Limits(bytes=1_000)) == (
        [],
        {"": "it has more than 1,000 bytes: split it, or raise the limit `bytes`"},
    )


def test_zip_bombs_are_refused_whatever_size_they_state(tmp_path: Path) -> None:
    bomb = b"[" + b" " * 20_000_000 + b"]"
    path = write_zip(tmp_path / "bomb.zip", {**SLACK, "boats/2025-03-05.json": bomb})
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("boats/2025-03-05.json").file_size.to_bytes(4, "little")
    path.write_bytes(content.replace(size, (100).to_bytes(4, "little")))
    conversations, skipped = read(path, limits=Limits(bytes=1_000_000))
    assert [conversation.id for conversation in conversations] == ["D1/2025-03-06"]
    assert list(skipped) == ["/boats/2025-03-05.json"]
    honest = write_zip(tmp_path / "honest.zip", {**SLACK, "boats/2025-03-05.json": bomb})
    _, skipped = read(honest, limits=Limits(bytes=1_000_000))
    assert skipped == {
        "/boats/2025-03-05.json": "it has more than 1,000,000 bytes: split it, or raise the limit `bytes`"
    }


def test_all_parts_of_a_zip_file_share_one_limit(tmp_path: Path) -> None:
    days = {f"boats/2025-03-{day:02}.json": b"[" + b" " * 900 + b"]" for day in range(1, 29)}
    path = write_zip(tmp_path / "export.zip", {"channels.json": [], **days})
    _, skipped = read(path, limits=Limits(bytes=1_000, unpacked_bytes=10_000))
    assert len(skipped) == 17  # eleven files of 902 bytes fit
    assert set(skipped.values()) == {
        "it has more than 10,000 unpacked bytes: split it, or raise the limit `unpacked_bytes`"
    }


def test_encrypted_parts_are_skipped(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "export.zip", {"conversations.json": CHATGPT})
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert read(path, "chatgpt") == ([], {"/conversations.json": "it is encrypted: save it without a password"})


def test_links_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret.json", CLAUDE)
    folder = write_folder(tmp_path / "export", {"readme.md": "x"})
    (folder / "conversations.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(ConfigError, match="cannot be detected"):
        read_conversations(folder)


def test_default_limits_allow_large_exports() -> None:
    assert CONVERSATION_LIMITS.bytes == 256_000_000
    assert CONVERSATION_LIMITS.unpacked_bytes == 1_000_000_000


# -- transcripts ---------------------------------------------------------------------------------------

letters = st.characters(codec="utf-8", categories=("Lu", "Ll", "Lo", "Nd"))
words = st.text(letters, min_size=1, max_size=8)
first_lines = st.lists(
    words | st.sampled_from([":", "a:b", "[x]", "https://example.org", "10:30"]), min_size=1, max_size=5
)
later_lines = st.lists(words | st.just("-"), max_size=5)
contents = st.builds(
    lambda first, later: "\n".join([" ".join(first), *map(" ".join, later)]).strip(),
    first_lines,
    st.lists(later_lines, max_size=3),
)
names = st.lists(st.text(letters, min_size=1, max_size=8).map(lambda word: "M" + word), min_size=1, max_size=4)
times = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))


@st.composite
def spoken_messages(draw: st.DrawFn) -> list[Message]:
    """Return messages in order of time, by people and by roles."""
    number = draw(st.integers(1, 5))
    at = sorted(draw(st.lists(times, min_size=number, max_size=number)))
    role: st.SearchStrategy[tuple[Role, str]] = st.sampled_from(ROLES).map(lambda role: (role, ""))
    person: st.SearchStrategy[tuple[Role, str]] = names.map(lambda words: ("user", " ".join(words)))
    speakers = [draw(role | person) for _ in range(number)]
    return [
        Message(role, draw(contents), name, time if draw(st.booleans()) else None, is_tool=role == "tool")
        for (role, name), time in zip(speakers, at, strict=True)
    ]


def write_transcript(messages: list[Message]) -> str:
    """Return messages as lines with name and time."""
    prefixes = (f"[{message.at.isoformat()}] " if message.at else "" for message in messages)
    return "".join(
        f"{prefix}{message.name or message.role}: {message.content}\n"
        for prefix, message in zip(prefixes, messages, strict=True)
    )


@given(spoken_messages())
@settings(deadline=None)
def test_a_written_transcript_gives_the_same_messages(messages: list[Message]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder, "chat.txt"), write_transcript(messages))
        [found], skipped = read(path, "transcript")
    assert list(found.messages) == messages
    assert skipped == {}
