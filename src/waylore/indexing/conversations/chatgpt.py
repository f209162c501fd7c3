"""Read `conversations.json` of a ChatGPT export.

The messages of a conversation are a tree, because a question can be edited and an answer repeated. Only the shown
branch is read: from `current_node` along `parent`. Hidden messages (`weight` 0) and notes of the program, such as its
reasoning, are left out. Images and files are not read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from waylore.indexing.blocks import ReadError, Skipped
from waylore.indexing.conversations.assembly import (
    Heading,
    build_conversation,
    convert_items,
    convert_messages,
    get_object,
    number_messages,
)
from waylore.indexing.conversations.export import ExportText
from waylore.indexing.conversations.items import ExportItem, read_items
from waylore.indexing.conversations.messages import ROLE_NAMES, Fields, get_text, join_text, to_time
from waylore.types.messages import Conversation, Message

_CODE = ("code", "execution_output")  # content types of a tool's call and result
_TO_EVERYONE = ("", "all")  # recipients of a message that calls no tool


def read_chatgpt(file: ExportText) -> Iterator[Conversation | Skipped]:
    """Yield each conversation of the file."""
    return convert_items(read_items(file), _read_conversation)


def _read_conversation(item: ExportItem) -> Iterator[Conversation | Skipped]:
    nodes = get_object(item.value, "mapping")
    id_ = get_text(item.value, "conversation_id", "id") or item.uri
    at = to_time(item.value.get("create_time"), "create_time")
    heading = Heading(item.uri, id_, get_text(item.value, "title"), at)
    branch = number_messages(item.uri, _follow_parents(item.value, nodes))
    yield from build_conversation(heading, *convert_messages(branch, _read_node))


def _follow_parents(conversation: Fields, nodes: Fields) -> list[Any]:
    """Return the nodes of the shown branch, the first message first."""
    id_ = conversation.get("current_node") or _find_last_leaf(nodes)
    branch = dict[str, Any]()
    while isinstance(id_, str) and id_ in nodes and id_ not in branch:
        node = branch[id_] = nodes[id_]
        id_ = node.get("parent") if isinstance(node, Mapping) else None
    return list(reversed(branch.values()))


def _find_last_leaf(nodes: Fields) -> str:
    """Return the last node without children, for exports without `current_node`."""
    leaves = [id_ for id_, node in nodes.items() if isinstance(node, Mapping) and not node.get("children")]
    return leaves[-1] if leaves else ""


def _read_node(node: Fields) -> Iterator[Message]:
    message = get_object(node, "message")
    content = get_object(message, "content")
    text = _get_text(content)
    if not text or _is_hidden(message):
        return
    author = get_object(message, "author")
    role = get_text(author, "role")
    if role not in ROLE_NAMES:
        raise ReadError(f"its role {role!r:.40} is unknown")
    is_call = get_text(message, "recipient") not in _TO_EVERYONE or content.get("content_type") in _CODE
    at = to_time(message.get("create_time"), "create_time")
    id_ = get_text(message, "id") or get_text(node, "id")
    yield Message(ROLE_NAMES[role], text, get_text(author, "name"), at, id_, is_tool=is_call or role == "tool")


def _is_hidden(message: Fields) -> bool:
    metadata = get_object(message, "metadata")
    return message.get("weight") == 0 or bool(metadata.get("is_visually_hidden_from_conversation"))


def _get_text(content: Fields) -> str:
    """Return the text of a content: its parts that are strings or have a text, such as spoken words, else its text."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return join_text(content.get("text"))
    return join_text([part.get("text") if isinstance(part, Mapping) else part for part in parts])
