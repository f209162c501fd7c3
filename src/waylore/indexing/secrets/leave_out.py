"""Find the secrets of a text and replace each by a mark."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, zip_longest
from typing import NamedTuple

from waylore.deadline import check_deadline
from waylore.indexing.secrets.kinds import KINDS, Kind
from waylore.types.knowledge import IndexedDocument

PRIVATE = "private"  # the kind of a part between <private> and </private>
MAX_KEY_CHARACTERS = 20_000  # characters from the first line of a private key to its last
_HINTS = re.compile(
    "|".join(
        map(re.escape, ["<private", "private key", "putty-user-key", *(hint for kind in KINDS for hint in kind.hints)])
    )
)
_PRIVATE_TAG = re.compile(r"<(/?)private\s*>", re.IGNORECASE)
_KEY_LINE = re.compile(r"-{4,5} ?(BEGIN|END) (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{16}")
_KEY_LINES = re.compile(r"(?:[\s\"'+,>#*|]|\\[nr])*[A-Za-z0-9+/=]{40,}")
_PUTTY, _PUTTY_END = re.compile(r"PuTTY-User-Key-File-\d: "), re.compile(r"Private-MAC: [0-9a-f]{1,128}")


class Secret(NamedTuple):
    """A secret: its position in a text, and its kind."""

    start: int
    end: int
    kind: str

    @property
    def mark(self) -> str:
        """The text that replaces the secret."""
        return f"[left out: {self.kind}]"


@dataclass(frozen=True, slots=True)
class CleanText:
    """A text without secrets, and the secrets that the original had, in order."""

    text: str
    secrets: tuple[Secret, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The number of omitted secrets of each kind."""
        return dict(sorted(Counter(secret.kind for secret in self.secrets).items()))

    def restore_offsets(self, indexed: IndexedDocument, start: int = 0) -> IndexedDocument:
        """Return a document whose passages have offsets into the original, which begins at `start`."""
        if not self.secrets:
            return indexed
        restore = Offsets(self.secrets).restore
        passages = (
            replace(
                passage,
                start=start + restore(passage.start - start),
                end=start + restore(passage.end - start, is_end=True),
            )
            for passage in indexed.passages
        )
        return replace(indexed, passages=tuple(passages))


class Offsets:
    """Converts offsets of an original to offsets of the text without secrets, and back."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._secrets = secrets
        self._longer = list(accumulate((s.start - s.end + len(s.mark) for s in secrets), initial=0))
        self._starts = [secret.start for secret in secrets]
        self._marks = [secret.start + longer for secret, longer in zip(secrets, self._longer, strict=False)]

    def move(self, offset: int) -> int:
        """Return the new place of an offset of the original; the end of the mark if it is within a secret."""
        number = bisect_left(self._starts, offset)
        return max(offset, self._secrets[number - 1].end if number else 0) + self._longer[number]

    def restore(self, offset: int, *, is_end: bool = False) -> int:
        """Return the offset in the original; within a mark, the offset of the secret, or of its end for `is_end`."""
        number = bisect_left(self._marks, offset)
        last = self._secrets[number - 1] if number else None
        if last and offset < last.end + self._longer[number]:
            return last.end if is_end else last.start
        return offset - self._longer[number]


def leave_out(text: str) -> CleanText:
    """Return a text with a mark in place of each secret. Cleaning the result again changes nothing."""
    return replace_secrets(text, find_secrets(text))


def keep_all(text: str) -> CleanText:
    """Return a text unchanged."""
    return CleanText(text)


def replace_secrets(text: str, secrets: list[Secret]) -> CleanText:
    """Return a text with marks in place of secrets. The secrets must be in order and must not overlap."""
    if not secrets:
        return CleanText(text)
    pieces, last = list[str](), 0
    for secret in secrets:
        pieces += (text[last : secret.start], secret.mark)
        last = secret.end
    return CleanText("".join((*pieces, text[last:])), tuple(secrets))


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text in order; overlapping secrets are returned as one.

    A mark separates words, so the text with marks may contain secrets that did not match in the original, such as a
    token directly after a private key. So the text is searched until no secret is left.
    """
    secrets = _search(text)
    while secrets:
        check_deadline()
        restore = Offsets(secrets).restore
        more = [
            Secret(restore(each.start), restore(each.end, is_end=True), each.kind)
            for each in _search(replace_secrets(text, secrets).text)
        ]
        merged = merge_secrets([*secrets, *more])
        if merged == secrets:
            break
        secrets = merged
    return secrets


def _search(text: str) -> list[Secret]:
    """Return the secrets of a text that one search finds."""
    lowered = text.lower()
    kinds = [kind for kind in KINDS if not kind.hints]
    found: list[Secret] = []
    if _HINTS.search(lowered):  # because few texts have one
        found += (*_find_private(text), *_find_private_keys(text))
        kinds += [kind for kind in KINDS if any(hint in lowered for hint in kind.hints)]
    for kind in kinds:
        found += _match(kind, text)
    return merge_secrets(found)


def merge_secrets(found: list[Secret]) -> list[Secret]:
    """Return secrets in order, with overlapping ones merged."""
    merged: list[Secret] = []
    for secret in sorted(found, key=lambda each: (each.start, -each.end)):
        if merged and secret.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, secret.end))
        else:
            merged.append(secret)
    return merged


_compile = cache(re.compile)


def _match(kind: Kind, text: str) -> Iterator[Secret]:
    pattern = _compile(kind.pattern, kind.flags)
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(text):
        start = match.start(group)
        if length := kind.check(match[group]):
            yield Secret(start, start + length, kind.name)


def _find_private(text: str) -> Iterator[Secret]:
    """Yield the parts between the tags, without nested ones. A tag that is not closed has no effect."""
    depth, start, end = 0, 0, 0
    for tag in _PRIVATE_TAG.finditer(text):
        if tag[1]:
            depth, end = max(depth - 1, 0), tag.end() if depth else end
        else:
            start = start if depth else tag.start()
            depth += 1
        if tag[1] and not depth and end > start:
            yield Secret(start, end, PRIVATE)
    if depth and end > start:
        yield Secret(start, end, PRIVATE)


def _find_private_keys(text: str) -> Iterator[Secret]:
    """Yield private keys from their BEGIN line to their END line, or without it to the end of their lines."""
    if "PRIVATE KEY" in text:
        lines = list(_KEY_LINE.finditer(text))
        for line, following in zip_longest(lines, lines[1:]):
            yield from _take_key(text, line, following) if line[1] == "BEGIN" else ()
    for begin in _PUTTY.finditer(text) if "PuTTY-User-Key-File" in text else ():
        end = text.find("Private-MAC: ", begin.end(), begin.end() + MAX_KEY_CHARACTERS)
        if end >= 0 and (last := _PUTTY_END.match(text, end)):
            yield Secret(begin.start(), last.end(), "private key")


def _take_key(text: str, begin: re.Match[str], following: re.Match[str] | None) -> Iterator[Secret]:
    is_whole = following and following[1] == "END" and following.start() - begin.end() <= MAX_KEY_CHARACTERS
    if is_whole and following:
        if _KEY_BODY.search(text, begin.end(), following.start()):
            yield Secret(begin.start(), following.end(), "private key")
        return
    last = begin
    while lines := _KEY_LINES.match(text, last.end()):
        last = lines
    if last is not begin:
        yield Secret(begin.start(), last.end(), "private key")
