"""Small exports of made-up people, one for each format, each with the traps of its format."""

import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from waylore.indexing.blocks import Skipped
from waylore.indexing.conversations.dispatch import read_conversations
from waylore.types.messages import Conversation


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0, month: int = 3) -> datetime:
    """Return a time in 2025, in UTC."""
    return datetime(2025, month, day, hour, minute, second, tzinfo=UTC)


def read(path: Path, format_: str = "auto", **options: Any) -> tuple[list[Conversation], dict[str, str]]:
    """Return the conversations of an export, and the reasons for skipped parts by place."""
    every = list(read_conversations(path, format_, **options))
    skipped = {item.uri.removeprefix(path.as_posix()): item.reason for item in every if isinstance(item, Skipped)}
    return [item for item in every if isinstance(item, Conversation)], skipped


def write(path: Path, content: str | bytes | Any) -> Path:
    """Write text, bytes or JSON to a file."""
    if not isinstance(content, str | bytes):
        content = json.dumps(content, ensure_ascii=False)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_zip(path: Path, files: Mapping[str, Any]) -> Path:
    """Write a zip file of texts, bytes and JSON."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


def write_folder(path: Path, files: Mapping[str, Any]) -> Path:
    """Write a folder of texts, bytes and JSON."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        write(path / name, content)
    return path


def node(id_: str, parent: str | None, children: list[str], **message: Any) -> dict[str, Any]:
    """Return a node of a ChatGPT conversation; without a role it has no message."""
    if not message:
        return {"id": id_, "parent": parent, "children": children, "message": None}
    role, parts = message.pop("role"), message.pop("parts", None)
    content = message.pop("content", {"content_type": "text", "parts": parts})
    author = {"role": role, "name": message.pop("name", None), "metadata": {}}
    shown = {"weight": 1.0, "recipient": "all", "metadata": {}, "create_time": None, **message}
    return {
        "id": id_,
        "parent": parent,
        "children": children,
        "message": {"id": id_, "author": author, "content": content, **shown},
    }


def nodes(*each: dict[str, Any]) -> dict[str, Any]:
    """Return nodes by id."""
    return {one["id"]: one for one in each}


MORNING = at(5, 10).timestamp()
PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 8}
CHATGPT = [
    {
        "id": "c1",
        "conversation_id": "c1",
        "title": "Boats",
        "create_time": MORNING,
        "current_node": "n6",
        "mapping": nodes(
            node("n0", None, ["n1"]),
            node("n1", "n0", ["n2"], role="system", parts=["You are a helpful model."], weight=0),
            node(
                "n2", "n1", ["n3", "n3b"], role="user", parts=[PICTURE, "Which boat is this? ⛵"], create_time=MORNING
            ),
            node("n3b", "n2", [], role="assistant", parts=["The answer that was repeated."], create_time=MORNING + 5),
            node(
                "n3",
                "n2",
                ["n4"],
                role="assistant",
                content={"content_type": "code", "language": "unknown", "text": 'search("boat")'},
                recipient="web.search",
                create_time=MORNING + 10,
            ),
            node("n4", "n3", ["n5"], role="tool", name="web.search", parts=["A sloop has one mast."]),
            node(
                "n5",
                "n4",
                ["n6"],
                role="assistant",
                content={"content_type": "thoughts", "thoughts": [{"summary": "Hm", "content": "One mast?"}]},
            ),
            node("n6", "n5", [], role="assistant", parts=["It is a sloop."], create_time=MORNING + 20.5),
        ),
    },
    {
        "conversation_id": "c2",
        "title": None,
        "create_time": None,
        "current_node": None,
        "mapping": nodes(
            node("m1", None, ["m2"], role="user", parts=[{"content_type": "audio_transcription", "text": "Hello."}]),
            node("m2", "m1", [], role="assistant", parts=["Hi."]),
        ),
    },
]

CLAUDE_CODE = [
    {"type": "summary", "summary": "Moving", "leafUuid": "l4"},
    {"type": "file-history-snapshot", "messageId": "l1", "snapshot": {}},
    *(
        {"type": kind, "uuid": f"l{number}", "sessionId": "s1", "timestamp": f"2025-03-05T10:0{number}:00.000Z"}
        | {"message": {"role": kind, "content": content}, **fields}
        for number, (kind, content, fields) in enumerate(
            [
                ("user", "<command-name>/clear</command-name>", {}),
                ("user", "I moved to Bergen.<system-reminder>Be brief.</system-reminder>", {}),
                ("assistant", [{"type": "thinking", "thinking": "Where is it?"}], {}),
                ("assistant", [{"type": "tool_use", "name": "Bash", "input": {"command": "curl wttr.in"}}], {}),
                ("user", [{"type": "tool_result", "content": "rain"}], {}),
                ("user", "Look up Bergen.", {"isSidechain": True}),
                ("user", "Caveat", {"isMeta": True}),
                ("assistant", [{"type": "text", "text": "Bergen is wet."}], {}),
            ]
        )
    ),
]
CLAUDE = [
    {
        "uuid": "k1",
        "name": "Moving",
        "created_at": "2025-03-05T10:00:00.000000Z",
        "updated_at": "2025-03-05T11:00:00.000000Z",
        "account": {"uuid": "a1"},
        "chat_messages": [
            {
                "uuid": "k1m2",
                "sender": "assistant",
                "text": "Bergen is wet.\n```\nThis block is not supported\n```",
                "created_at": "2025-03-05T10:01:00.000000Z",
                "content": [
                    {"type": "thinking", "thinking": "Where is Bergen?"},
                    {"type": "tool_use", "name": "weather", "input": {"city": "Bergen"}},
                    {"type": "tool_result", "name": "weather", "content": [{"type": "text", "text": "rain"}]},
                    {"type": "text", "text": "Bergen is wet."},
                ],
                "attachments": [],
                "files": [],
            },
            {
                "uuid": "k1m1",
                "sender": "human",
                "text": "I move to Bergen, æøå.",
                "created_at": "2025-03-05T10:00:30.000000Z",
                "content": [],
                "attachments": [{"file_name": "plan.txt", "extracted_content": "Pack."}],
                "files": [],
            },
        ],
    },
    {"uuid": "k2", "name": "", "created_at": "2025-03-06T10:00:00Z", "chat_messages": []},
]


def said(ts: str, user: str, text: str, subtype: str = "", **fields: Any) -> dict[str, Any]:
    """Return a message of a Slack export."""
    return {
        "type": "message",
        **({"subtype": subtype} if subtype else {}),
        "user": user,
        "text": text,
        "ts": ts,
        **fields,
    }


OFFER = "See <https://example.org/mast|the offer> &amp; <https://example.org>"
SLACK: dict[str, Any] = {
    "users.json": [
        {"id": "U1", "name": "mara", "real_name": "Mara Lind", "profile": {"display_name": "mara"}},
        {"id": "U2", "name": "ben", "profile": {"real_name": "", "display_name": "Ben"}},
    ],
    "channels.json": [{"id": "C1", "name": "boats", "members": ["U1", "U2"]}],
    "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
    "boats/2025-03-05.json": [
        said("1741168000.000100", "U2", "<@U2> has joined the channel", "channel_join"),
        said("1741168800.000200", "U1", "A &lt;new&gt; mast, <@U2>?"),
        said("1741172400.000300", "U2", "Later, in <#C1|>."),
        said("1741169400.000400", "U1", OFFER, thread_ts="1741168800.000200"),
        said("1741173000.0005", "", "<!here> high tide", "bot_message", username="Tide"),
        said("1741172400.000300", "U2", "Later, in <#C1|>.", "thread_broadcast"),
        said("1741173600.000600", "U9", "Hi", user_profile={"real_name": "Tom Berg"}),
        said("1741173700.000700", "U1", "", files=[{"id": "F1"}]),
        said("soon", "U1", "No time"),
    ],
    "boats/2025-03-06.json": [said("1741255200.000100", "U2", "set the topic", "channel_topic")],
    "D1/2025-03-06.json": [said("1741255200.000100", "U2", "Psst")],
    "integration_logs.json": [],
}

IOS = (
    "[05/03/2025, 10:14:33] Boat club: \u200eMessages and calls are end-to-end encrypted.\r\n"
    "[05/03/2025, 10:14:40] Mara Lind: The mast: it is\r\nbroken\r\n\r\n05/03 was a bad day\r\n"
    "\u200e[05/03/2025, 10:15:02] Mara Lind: \u200eimage omitted\r\n"
    "[05/03/2025, 11:00:00\u202fPM] ~\u202fBen: Oh \u200e<This message was edited>\r\n"
    "[31/03/2025, 09:00:00] \u2068Mara Lind\u2069: Mended.\r\n"
)
ANDROID = (
    '15.04.2016, 15:04 - Mara Lind created group "Boats: all"\n'
    "15.04.2016, 15:05 - Mara Lind: Hello\n"
    "15.04.2016, 15:06 - Ben: <Medien ausgeschlossen>\n"
    "16.04.2016, 09:00 - +49 151 0000000: Who?\n"
)

DISCORD = {
    "guild": {"id": "1", "name": "Harbour", "iconUrl": ""},
    "channel": {"id": "77", "type": "GuildTextChat", "category": "Talk", "name": "boats", "topic": None},
    "dateRange": {"after": None, "before": None},
    "messages": [
        {
            "id": "102",
            "type": "Reply",
            "timestamp": "2025-03-05T23:30:00.1234567+01:00",
            "timestampEdited": None,
            "content": "Yes.",
            "author": {"id": "9", "name": "ben", "nickname": "Ben", "isBot": False},
            "attachments": [],
            "reference": {"messageId": "101"},
        },
        {
            "id": "101",
            "type": "Default",
            "timestamp": "2025-03-05T23:29:00+01:00",
            "content": "Is the sloop mended?",
            "author": {"id": "8", "name": "mara_l", "nickname": "Mara", "isBot": False},
        },
        {
            "id": "103",
            "type": "GuildMemberJoin",
            "timestamp": "2025-03-05T23:31:00+01:00",
            "content": "Joined the server.",
            "author": {"id": "7", "name": "tom"},
        },
        {
            "id": "104",
            "type": "Default",
            "timestamp": "2025-03-06T00:10:00+01:00",
            "content": "High tide.",
            "author": {"id": "6", "name": "Tide", "isBot": True},
        },
        {"id": "105", "type": "Default", "content": "Without a time", "author": {"name": "ben"}},
        {"id": "106", "type": "Default", "timestamp": "2025-03-06T00:11:00+01:00", "content": "", "attachments": [{}]},
    ],
    "messageCount": 6,
}

TRANSCRIPT = """\
Meeting about the boat

[2025-03-05 10:00] Mara Lind: The mast is broken.
It broke on Sunday:

  near the harbour
[2025-03-05T10:01:00+01:00] Ben van der Berg: See https://example.org/mast
[10:02] assistant: A new one costs 400.
Ben van der Berg: Fine
"""

OPENAI = [
    {"role": "user", "content": "Where is the boat?", "name": "Mara", "created_at": "2025-03-05T10:00:00Z", "id": "m1"},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]},
    {"role": "tool", "content": "harbour", "at": 1741168860},
    {"role": "owner", "content": "Who am I?"},
    {"role": "assistant", "content": [{"type": "text", "text": "In the harbour."}], "at": "2025-03-05T10:02:00Z"},
]
