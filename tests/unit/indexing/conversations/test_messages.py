"""Messages that a caller passes become messages with times and speakers, or an error that names the place."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.errors import ArgumentError
from waylore.indexing.conversations.messages import to_messages
from waylore.types.messages import ROLES, Conversation, Message

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = "role content name at created_at timestamp id tool_calls function arguments type text".split()
VALUES = ["user", "assistant", "tool", "developer", "text", "2026-03-01T12:00:00Z", "2026-13-01", "\ud800", "\x00"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(VALUES)
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=6,
)
likely = st.fixed_dictionaries(
    {"role": st.sampled_from([*ROLES, "developer", "human"]), "content": nested},
    optional={"name": scalars, "id": scalars, "at": scalars, "timestamp": scalars, "tool_calls": nested},
)


# -- the types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"role": "owner"}, "role must be one of user, assistant, system, tool, got 'owner'"),
        ({"content": " \n"}, "content must not be empty"),
        ({"content": 7}, "content must be a string, got int"),
        ({"name": None}, "name must be a string, got NoneType"),
        ({"id": 7}, "id must be a string, got int"),
        ({"at": "noon"}, "at must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z, got 'noon'"),
        ({"is_tool": 1}, "is_tool must be True or False, got 1"),
    ],
)
def test_message_checks_its_values(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        Message(**{"role": "user", "content": "Hello", **arguments})
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"id": ""}, "id must not be empty"),
        ({"title": 7}, "title must be a string, got int"),
        ({"messages": ["Hello"]}, "messages must be a tuple of Message; make them with to_messages(…)"),
        ({"messages": ("Hello",)}, "messages must be a tuple of Message; make them with to_messages(…)"),
        ({"at": 7}, "at must be a datetime, a date or ISO 8601 text, got int"),
    ],
)
def test_conversation_checks_its_values(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        Conversation(**{"id": "c1", **arguments})
    assert str(raised.value) == reason


def test_a_time_without_a_zone_is_utc() -> None:
    assert Message("user", "Hello", at=datetime(2026, 3, 1, 12)).at == NOON
    assert Conversation("c1", at=datetime(2026, 3, 1, 12)).at == NOON


# -- messages of a caller ------------------------------------------------------------------------------


def test_a_string_is_a_message_of_the_user() -> None:
    assert to_messages(" I moved to Bergen.\n") == (Message("user", "I moved to Bergen."),)


def test_messages_keep_order_speaker_time_and_id() -> None:
    given_messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hello", "name": "Mara", "at": "2026-03-01T13:00:00+01:00", "id": "m1"},
        {"role": "assistant", "content": "Hi", "created_at": NOON, "id": 2},
        {"role": "developer", "content": "Be brief.", "timestamp": NOON.timestamp(), "name": None},
        {"role": "Human", "content": "Bye", "at": None, "created_at": "2026-03-01"},
    ]
    assert to_messages(given_messages) == (
        Message("user", "Hello", "Mara", NOON, "m1"),
        Message("assistant", "Hi", at=NOON, id="2"),
        Message("system", "Be brief.", at=NOON),
        Message("user", "Bye", at=datetime(2026, 3, 1, tzinfo=UTC)),
    )


def test_the_zone_of_a_time_is_kept() -> None:
    [message] = to_messages({"role": "user", "content": "Hello", "at": "2026-03-01T13:00:00+01:00"})
    assert message.at is not None
    assert message.at.tzinfo == timezone(timedelta(hours=1))


def test_only_parts_with_text_count() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:"}, "text": "no"},
        {"type": "text", "text": "a boat"},
    ]
    assert to_messages({"role": "user", "content": parts}) == (Message("user", "Look:\n\na boat"),)


def test_messages_without_text_are_left_out() -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
    empty = {"role": "assistant", "content": None}
    assert to_messages([picture, empty, {"role": "user", "content": " "}]) == ()
    assert to_messages([]) == ()


def test_calls_and_results_of_tools_are_marked() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"q": "boats"}'}}
    assert to_messages(
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "assistant", "tool_calls": [call, {"function": 7}, 7]},
            {"role": "tool", "content": "three boats", "tool_call_id": "call_1"},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        ]
    ) == (
        Message("assistant", 'find({"q": "boats"})', is_tool=True),
        Message("assistant", 'find({"q": "boats"})', is_tool=True),
        Message("tool", "three boats", is_tool=True),
        Message("assistant", "I look."),
    )


def test_characters_that_no_store_takes_are_replaced() -> None:
    [message] = to_messages({"role": "user", "content": "a\x00b\ud800", "name": "M\x00", "id": "\ud800"})
    assert (message.content, message.name, message.id) == ("a\ufffdb\ufffd", "M\ufffd", "\ufffd")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (None, "got NoneType"),
        (7, "got int"),
        (b"Hello", "got bytes"),
        (["Hello"], "messages[0] is of type str"),
        ([{"role": "user", "content": "Hello"}, None], "messages[1] is of type NoneType"),
    ],
)
def test_other_values_are_refused_with_what_to_pass(wrong: Any, reason: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        to_messages(wrong)
    assert str(raised.value).startswith(
        "messages must be a string, a dict with role and content, or a list of such dicts"
    )
    assert str(raised.value).endswith(reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"role": "owner"}, "must have a role, one of user, assistant, system, tool, got 'owner'"),
        ({"content": 7}, "must have content, a string or a list of parts with type and text, got int"),
        ({"name": ["Mara"]}, "must have a string as name, got list"),
        ({"id": True}, "must have a string as id, got bool"),
        ({"at": 1.7e15}, "at must be Unix time in seconds, got 1700000000000000.0"),
        ({"at": float("nan")}, "at must be Unix time in seconds, got nan"),
        ({"created_at": "noon"}, "created_at must be a date such as"),
        ({"timestamp": [1]}, "timestamp must be a datetime, ISO 8601 text or Unix seconds, got list"),
    ],
)
def test_wrong_fields_are_refused_with_their_place(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        to_messages([{"role": "user", "content": "Hello"}, {"role": "user", "content": "Hello", **fields}])
    assert str(raised.value).startswith("messages[1]")
    assert reason in str(raised.value)


def test_a_message_needs_content() -> None:
    with pytest.raises(ArgumentError, match="messages must have content"):
        to_messages({"role": "user"})


@given(nested | likely | st.lists(likely, max_size=3))
def test_any_json_value_gives_messages_or_an_argument_error(value: Any) -> None:
    messages: tuple[Message, ...] = ()
    with suppress(ArgumentError):
        messages = to_messages(json.loads(json.dumps(value)))
    assert all(message.content.strip() for message in messages)
