"""Read e-mail with Python's `email` and `mailbox`: header fields and the text of each message.

The plain text of a message is read, or its HTML if it has no plain text. Attachments are not read. Each message of an
mbox file is a document with its `Message-ID` in the address, so it stays if other messages are removed.
"""

import email
import email.policy
import mailbox
from collections.abc import Iterator
from email.message import EmailMessage, Message
from functools import partial
from urllib.parse import quote

from waylore.indexing.blocks import ReadError, Reading, Skipped, Source, catch_read_errors
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.markup.html import write_html
from waylore.indexing.readers.structure.keyed import classify_item, find_field_lines
from waylore.indexing.readers.structure.rendering import TextWriter
from waylore.indexing.readers.structure.titles import name_file

_FIELDS = ("From", "To", "Cc", "Date", "Subject")


def read_message(source: Source) -> Iterator[Reading]:
    """Read a file with one message."""
    yield _build_reading(source, source.uri, _parse(source.read_bytes()))


def read_mailbox(source: Source) -> Iterator[Reading | Skipped]:
    """Read each message of an mbox file as a document."""
    box = mailbox.mbox(source.path, create=False)
    is_empty = True
    for number, key in enumerate(box.iterkeys(), start=1):
        is_empty = False
        content = box.get_bytes(key)
        if len(content) > source.limits.bytes:
            yield Skipped(f"{source.uri}#message={number}", "the message is too large")
            continue
        yield from catch_read_errors(f"{source.uri}#message={number}", partial(_read_part, source, number, content))
    if is_empty:
        raise ReadError("it has no messages")


def _read_part(source: Source, number: int, content: bytes) -> Iterator[Reading]:
    message = _parse(content)
    name = _get_field(message, "Message-ID").strip("<>") or str(number)
    yield _build_reading(source, f"{source.uri}#message={quote(name, safe='@.+-_')}", message)


def _parse(content: bytes) -> Message:
    try:
        return email.message_from_bytes(content, policy=email.policy.default)
    except RecursionError as error:
        raise ReadError("its parts are nested too deep") from error


def _build_reading(source: Source, uri: str, message: Message) -> Reading:
    writer = TextWriter(source.limits.blocks)
    fields = {name: value for name in _FIELDS if (value := _get_field(message, name))}
    for name, value in fields.items():
        writer.add("field", f"{name}: {value}", key=name, cells=((name, value),))
    kind, text = _get_body(message)
    if kind == "html":
        write_html(text, writer, source.limits)
    else:
        for paragraph in text.replace("\r\n", "\n").split("\n\n"):
            _add_paragraph(writer, paragraph.strip("\n"))
    if not writer.blocks:
        raise ReadError("it has no text")
    title = fields.get("Subject") or name_file(source)
    return Reading(uri, make_storable(title), writer.text, tuple(writer.blocks), fields)


def _add_paragraph(writer: TextWriter, text: str) -> None:
    """Add a paragraph, or each of its lines if they are fields."""
    lines = find_field_lines(text)
    for start, end in lines:
        kind, key, cells = classify_item(text[start:end], ())
        writer.add(kind, text[start:end], key=key, cells=cells)
    if not lines:
        writer.add("paragraph", text)


def _get_field(message: Message, name: str) -> str:
    """Return a field of the header in one line; a broken one is empty."""
    try:
        return make_storable(" ".join(str(message.get(name) or "").split()))
    except Exception:  # noqa: BLE001 (Python's parser raises many errors for broken headers)
        return ""


def _get_body(message: Message) -> tuple[str, str]:
    """Return the kind and the text of the body of a message."""
    try:
        body = message.get_body(("plain", "html")) if isinstance(message, EmailMessage) else None
        if body is None:
            return "plain", ""
        return body.get_content_subtype(), make_storable(str(body.get_content()))
    except (LookupError, ValueError, AttributeError, RecursionError) as error:
        raise ReadError(f"its text cannot be decoded: {error}"[:300]) from error
