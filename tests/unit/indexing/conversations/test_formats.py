"""Each export gives its messages, with speakers, times and ids, and without what people did not write."""

import json
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from unit.indexing.conversations.exports import (
    ANDROID,
    CHATGPT,
    CLAUDE,
    CLAUDE_CODE,
    DISCORD,
    IOS,
    MORNING,
    OPENAI,
    SLACK,
    TRANSCRIPT,
    at,
    node,
    nodes,
    read,
    write,
    write_folder,
    write_zip,
)
from waylore.errors import ArgumentError
from waylore.types.messages import Conversation, Message

# -- assistants ----------------------------------------------------------------------------------------


def test_chatgpt_follows_the_shown_branch(tmp_path: Path) -> None:
    conversations, skipped = read(write(tmp_path / "conversations.json", CHATGPT))
    assert skipped == {}
    assert conversations == [
        Conversation(
            "c1",
            "Boats",
            (
                Message("user", "Which boat is this? ⛵", at=at(5, 10), id="n2"),
                Message("assistant", 'search("boat")', at=at(5, 10, 0, 10), id="n3", is_tool=True),
                Message("tool", "A sloop has one mast.", "web.search", id="n4", is_tool=True),
                Message("assistant", "It is a sloop.", at=at(5, 10, 0, 20) + timedelta(seconds=0.5), id="n6"),
            ),
            at(5, 10),
        ),
        Conversation("c2", "", (Message("user", "Hello.", id="m1"), Message("assistant", "Hi.", id="m2"))),
    ]


def test_transcript_of_claude_code_has_what_was_said(tmp_path: Path) -> None:
    lines = [*map(json.dumps, CLAUDE_CODE), "{broken"]
    [found], skipped = read(write(tmp_path / "transcript.jsonl", "\n".join(lines)))
    assert list(skipped) == ["#line=11"]
    assert found == Conversation(
        "s1",
        "",
        (
            Message("user", "I moved to Bergen.", at=at(5, 10, 1), id="l1"),
            Message("assistant", 'Bash({"command": "curl wttr.in"})', "Bash", at(5, 10, 3), "l3#1", is_tool=True),
            Message("tool", "rain", at=at(5, 10, 4), id="l4#1", is_tool=True),
            Message("assistant", "Bergen is wet.", at=at(5, 10, 7), id="l7"),
        ),
        at(5, 10, 1),
    )


def test_chatgpt_messages_hidden_by_metadata_are_left_out(tmp_path: Path) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    mapping = nodes(
        node("n1", None, ["n2"], role="user", parts=["My instructions"], metadata=hidden),
        node("n2", "n1", [], role="user", parts=["Hello"]),
    )
    [found], _ = read(write(tmp_path / "c.json", [{"id": "c1", "current_node": "n2", "mapping": mapping}]))
    assert found.messages == (Message("user", "Hello", id="n2"),)


def test_chatgpt_skips_broken_nodes_and_ends_at_a_circle(tmp_path: Path) -> None:
    mapping = nodes(
        node("n1", "n4", ["n2"], role="user", parts=["Hello"]),
        node("n2", "n1", ["n3"], role="owner", parts=["Who?"]),
        node("n3", "n2", ["n4"], role="user", parts=["When?"], create_time="noon"),
        node("n4", "n3", ["n1"], role="assistant", parts=["Hi"]),
    )
    [found], skipped = read(write(tmp_path / "c.json", [{"id": "c1", "current_node": "n4", "mapping": mapping}]))
    assert [message.content for message in found.messages] == ["Hello", "Hi"]
    assert list(skipped) == ["#item=1#message=2", "#item=1#message=3"]
    assert skipped["#item=1#message=2"] == "its role 'owner' is unknown"


def test_chatgpt_exports_in_several_files_are_read_from_their_zip_file(tmp_path: Path) -> None:
    files = {
        "conversations-000.json": CHATGPT[:1],
        "conversations-001.json": {"conversations": CHATGPT[1:]},
        "__MACOSX/._conversations-000.json": b"\x00\x05",
        "user.json": {"id": "user-1"},
        "chat.html": "<html>",
    }
    conversations, skipped = read(write_zip(tmp_path / "export.zip", files))
    assert [conversation.id for conversation in conversations] == ["c1", "c2"]
    assert skipped == {}


def test_claude_messages_have_tools_before_text_and_are_in_order_of_time(tmp_path: Path) -> None:
    conversations, skipped = read(write(tmp_path / "conversations.json", CLAUDE))
    assert skipped == {"#item=2": "it has no messages"}
    assert conversations == [
        Conversation(
            "k1",
            "Moving",
            (
                Message("user", "I move to Bergen, æøå.", at=at(5, 10, 0, 30), id="k1m1"),
                Message("assistant", 'weather({"city": "Bergen"})', "weather", at(5, 10, 1), "k1m2#2", is_tool=True),
                Message("tool", "rain", "weather", at(5, 10, 1), "k1m2#3", is_tool=True),
                Message("assistant", "Bergen is wet.", at=at(5, 10, 1), id="k1m2"),
            ),
            at(5, 10),
        )
    ]


def test_claude_skips_messages_of_unknown_senders(tmp_path: Path) -> None:
    messages = [{"sender": "owner", "text": "Who?"}, "Hello", {"sender": "human", "text": "Hello"}]
    [found], skipped = read(write(tmp_path / "c.json", [{"uuid": "k1", "chat_messages": messages}]))
    assert found.messages == (Message("user", "Hello"),)
    assert skipped == {
        "#item=1#message=1": "its sender 'owner' is unknown",
        "#item=1#message=2": "it is not a JSON object",
    }


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_openai_messages_are_one_conversation(tmp_path: Path, suffix: str) -> None:
    content = OPENAI if suffix == ".json" else "\n".join(map(_dump, OPENAI))
    conversations, skipped = read(write(tmp_path / f"chat{suffix}", content))
    expected = (
        Message("user", "Where is the boat?", "Mara", at(5, 10), "m1"),
        Message("assistant", "find({})", is_tool=True),
        Message("tool", "harbour", at=at(5, 10, 1), is_tool=True),
        Message("assistant", "In the harbour.", at=at(5, 10, 2)),
    )
    assert conversations == [Conversation("chat", "", expected, at(5, 10))]
    [(place, reason)] = skipped.items()
    assert place in ("#item=4", "#line=4")
    assert reason.startswith("messages must have a role")


def test_openai_objects_with_messages_are_a_conversation_each(tmp_path: Path) -> None:
    first = {"id": "s1", "title": "Boats", "created_at": MORNING, "messages": OPENAI[:1]}
    lines = [_dump(first), "{broken", _dump({"messages": [{"role": "user", "content": "Hello"}]}), "7"]
    conversations, skipped = read(write(tmp_path / "chat.jsonl", "\n".join(lines)))
    assert [(c.id, c.title, c.at, len(c.messages)) for c in conversations] == [
        ("s1", "Boats", at(5, 10), 1),
        ("chat#line=3", "", None, 1),
    ]
    assert list(skipped) == ["#line=2", "#line=4"]
    assert skipped["#line=2"].startswith("it is not JSON")
    one, _ = read(write(tmp_path / "one.json", first))
    assert [c.id for c in one] == ["s1"]


def _dump(value: Any) -> str:
    return json.dumps(value)


# -- people --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zip", "folder", "zip of a folder"])
def test_slack_names_people_and_orders_threads_by_time(tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        path = write_folder(tmp_path / "export", SLACK)
    else:
        prefix = "export/" if kind == "zip of a folder" else ""
        path = write_zip(tmp_path / "export.zip", {prefix + name: content for name, content in SLACK.items()})
    conversations, skipped = read(path)
    assert {place.split("/")[-1]: reason for place, reason in skipped.items()} == {
        "2025-03-05.json#message=9": "its ts 'soon' is not a time in seconds"
    }
    tide = Message(
        "assistant", "@here high tide", "Tide", at(5, 11, 10) + timedelta(microseconds=500), "1741173000.0005"
    )
    boats = Conversation(
        "C1/2025-03-05",
        "#boats 2025-03-05",
        (
            Message("user", "A <new> mast, @Ben?", "Mara Lind", _after(at(5, 10), 200), "1741168800.000200"),
            Message(
                "user",
                "See the offer (https://example.org/mast) & https://example.org",
                "Mara Lind",
                _after(at(5, 10, 10), 400),
                "1741169400.000400",
            ),
            Message("user", "Later, in #boats.", "Ben", _after(at(5, 11), 300), "1741172400.000300"),
            tide,
            Message("user", "Hi", "Tom Berg", _after(at(5, 11, 20), 600), "1741173600.000600"),
        ),
        _after(at(5, 10), 200),
    )
    direct = Conversation(
        "D1/2025-03-06",
        "Mara Lind, Ben 2025-03-06",
        (Message("user", "Psst", "Ben", _after(at(6, 10), 100), "1741255200.000100"),),
        _after(at(6, 10), 100),
    )
    assert sorted(conversations, key=lambda c: c.id) == [boats, direct]


def _after(time: Any, microseconds: int) -> Any:
    return time + timedelta(microseconds=microseconds)


def test_slack_reads_the_other_days_if_a_file_is_broken(tmp_path: Path) -> None:
    files = {**SLACK, "users.json": "{", "boats/2025-03-05.json": '[{"type": "mess'}
    conversations, skipped = read(write_zip(tmp_path / "export.zip", files))
    assert [c.messages[0].name for c in conversations] == ["U2"]
    assert list(skipped) == ["/users.json", "/boats/2025-03-05.json"]
    assert all(reason.startswith("it is not JSON") for reason in skipped.values())


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<@U1|mara>", "@Mara Lind"),
        ("<@U9|tom>", "@tom"),
        ("<@U9>", "@U9"),
        ("<#C1>", "#boats"),
        ("<#C9|sails>", "#sails"),
        ("<!subteam^S1|@crew>", "@crew"),
        ("<!channel>", "@channel"),
        ("<!date^1741168800^{date}|5 March>", "5 March"),
        ("<mailto:m@example.org|m@example.org>", "m@example.org"),
        ("<http://example.org|example.org>", "example.org"),
        ("a < b &amp;lt; c", "a < b &lt; c"),
    ],
)
def test_slack_markup_becomes_text(tmp_path: Path, markup: str, text: str) -> None:
    day = [{"type": "message", "user": "U1", "text": markup, "ts": "1741168800.000200"}]
    [found], _ = read(
        write_zip(tmp_path / "export.zip", {**SLACK, "boats/2025-03-05.json": day, "D1/2025-03-06.json": []})
    )
    assert found.messages[0].content == text


def test_whatsapp_of_ios_joins_lines_and_leaves_out_media(tmp_path: Path) -> None:
    conversations, skipped = read(
        write_zip(tmp_path / "WhatsApp Chat - Boats.zip", {"_chat.txt": IOS, "a.jpg": b"\xff"})
    )
    assert skipped == {}
    name = "WhatsApp Chat - Boats"
    first = (
        Message("system", "Messages and calls are end-to-end encrypted.", at=at(5, 10, 14, 33)),
        Message("user", "The mast: it is\nbroken\n\n05/03 was a bad day", "Mara Lind", at(5, 10, 14, 40)),
        Message("user", "Oh", "Ben", at(5, 23)),
    )
    second = (Message("user", "Mended.", "Mara Lind", at(31, 9)),)
    assert conversations == [
        Conversation(f"{name}/2025-03-05", f"{name} 2025-03-05", first, at(5, 10, 14, 33)),
        Conversation(f"{name}/2025-03-31", f"{name} 2025-03-31", second, at(31, 9)),
    ]


def test_whatsapp_of_android_has_lines_of_the_program(tmp_path: Path) -> None:
    conversations, skipped = read(write(tmp_path / "WhatsApp-Chat mit Mara (1).txt", ANDROID))
    assert skipped == {}
    assert [(c.id, [(m.role, m.name, m.content) for m in c.messages]) for c in conversations] == [
        (
            "WhatsApp-Chat mit Mara/2016-04-15",
            [("system", "", 'Mara Lind created group "Boats: all"'), ("user", "Mara Lind", "Hello")],
        ),
        ("WhatsApp-Chat mit Mara/2016-04-16", [("user", "+49 151 0000000", "Who?")]),
    ]


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("3/31/25, 7:02\u202fPM - Mara: x", at(31, 19, 2)),
        ("3/31/25, 12:02 AM - Mara: x", at(31, 0, 2)),
        ("[2025/03/31, 15:50:46] Mara: x", at(31, 15, 50, 46)),
        ("2025-03-31 15:50 - Mara: x", at(31, 15, 50)),
        ("31/3/2025 8:28 p.\xa0m. - Mara: x", at(31, 20, 28)),
        ("[31.3.2025 klo 14.08.18] Mara: x", at(31, 14, 8, 18)),
        ("\u200f٣١\u200f/٣\u200f/٢٠٢٥، ٨:٢٨ م - Mara: x", at(31, 20, 28)),
    ],
)
def test_whatsapp_reads_dates_of_many_locales(tmp_path: Path, line: str, time: Any) -> None:
    [found], skipped = read(write(tmp_path / "chat.txt", line + "\n"))
    assert (found.messages, skipped) == ((Message("user", "x", "Mara", time),), {})


def test_whatsapp_asks_for_the_order_of_day_and_month(tmp_path: Path) -> None:
    path = write(tmp_path / "chat.txt", "05/03/2025, 10:14 - Mara: Hello\n")
    with pytest.raises(ArgumentError, match="day_first must be given"):
        read(path)
    for day_first, time in ((True, at(5, 10, 14)), (False, at(3, 10, 14, month=5))):
        [found], _ = read(path, day_first=day_first)
        assert found.messages[0].at == time
    same = write(tmp_path / "same.txt", "03/03/2025, 10:14 - Mara: Hello\n")
    assert read(same)[0][0].messages[0].at == at(3, 10, 14)


def test_whatsapp_believes_a_number_over_twelve_before_the_caller(tmp_path: Path) -> None:
    path = write(tmp_path / "chat.txt", "05/03/2025, 10:14 - Mara: Hello\n31/03/2025, 10:14 - Mara: Bye\n")
    conversations, skipped = read(path, day_first=False)
    assert [c.at for c in conversations] == [at(5, 10, 14), at(31, 10, 14)]
    assert skipped == {}


def test_whatsapp_skips_dates_that_do_not_exist(tmp_path: Path) -> None:
    text = "a line of another file\n31/03/2025, 10:14 - Mara: Hello\n31/02/2025, 10:14 - Mara: Bye\n"
    [found], skipped = read(write(tmp_path / "chat.txt", text))
    assert [m.content for m in found.messages] == ["Hello"]
    assert skipped == {
        "#line=1": "it is before the first line with a date",
        "#line=3": "its date and time do not exist: day is out of range for month",
    }


def test_discord_has_a_conversation_for_each_day_in_its_zone(tmp_path: Path) -> None:
    conversations, skipped = read(write(tmp_path / "boats.json", DISCORD))
    assert skipped == {"#message=5": "it has no timestamp"}
    evening = at(5, 22, 29)
    assert conversations == [
        Conversation(
            "77/2025-03-05",
            "Harbour #boats 2025-03-05",
            (
                Message("user", "Is the sloop mended?", "Mara", evening, "101"),
                Message("user", "Yes.", "Ben", at(5, 22, 30) + timedelta(microseconds=123456), "102"),
            ),
            evening,
        ),
        Conversation(
            "77/2025-03-06",
            "Harbour #boats 2025-03-06",
            (Message("assistant", "High tide.", "Tide", at(5, 23, 10), "104"),),
            at(5, 23, 10),
        ),
    ]
    zone = conversations[0].messages[0].at
    assert zone is not None
    assert zone.tzinfo == timezone(timedelta(hours=1))


# -- transcripts ---------------------------------------------------------------------------------------


def test_transcript_joins_lines_without_a_name(tmp_path: Path) -> None:
    [found], skipped = read(write(tmp_path / "meeting.txt", TRANSCRIPT), "transcript")
    assert skipped == {"#line=1": "it is before the first line with a name"}
    assert found == Conversation(
        "meeting",
        "meeting",
        (
            Message("user", "See https://example.org/mast", "Ben van der Berg", at(5, 9, 1)),
            Message("assistant", "A new one costs 400."),
            Message("user", "Fine", "Ben van der Berg"),
            Message("user", "The mast is broken.\nIt broke on Sunday:\n\n  near the harbour", "Mara Lind", at(5, 10)),
        ),
        at(5, 9, 1),
    )


@pytest.mark.parametrize(
    "line",
    [
        "So here is the thing: it broke",
        "https://example.org",
        "10:30 is fine",
        "[laughs] Mara: no",
        "one two three four five: six",
        "Mara:no space",
        " indented: text",
    ],
)
def test_transcript_lines_without_a_name_continue_the_message(tmp_path: Path, line: str) -> None:
    [found], _ = read(write(tmp_path / "meeting.txt", f"Mara: Hello\n{line}\n"), "transcript")
    assert found.messages == (Message("user", f"Hello\n{line}", "Mara"),)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("USER: Hello", Message("user", "Hello")),
        ("AI: Hello", Message("assistant", "Hello")),
        ("tool: Hello", Message("tool", "Hello", is_tool=True)),
        ("mara: Hello", Message("user", "Hello", "mara")),
        ("Dr. Mara Lind (she/her): Hello", Message("user", "Hello", "Dr. Mara Lind (she/her)")),
        ("马拉：你好", Message("user", "你好", "马拉")),
        ("Speaker 2 : Hello", Message("user", "Hello", "Speaker 2")),
        ("\ufeffMara: Hello", Message("user", "Hello", "Mara")),
    ],
)
def test_transcript_names_and_roles(tmp_path: Path, line: str, message: Message) -> None:
    [found], skipped = read(write(tmp_path / "meeting.txt", line), "transcript")
    assert (found.messages, skipped) == ((message,), {})
