"""Find the author's marks in a block of Markdown, at their offsets in the file.

markdown-it-py gives inline tokens without offsets. Tokens are verbatim pieces of the file in their order, so each token
is searched for after the previous one. Everything between visible pieces is markup. A token with another spelling in
the file, such as a pipe in a table, is skipped.
"""

import re
from typing import Any

from waylore.indexing.blocks import Mark, MarkKind
from waylore.indexing.encoding import LINE_END

_WINDOW = 2_000  # the next token is searched for in this many characters, so the time is linear
_KINDS: dict[str, MarkKind] = {"link": "link", "strong": "strong", "em": "emphasis"}
_NOT_BLANK = re.compile(r"\S(?:.*\S)?", re.DOTALL)
_NOT_PIPES = re.compile(r"[^\s|](?:[^|]*[^\s|])?")
_TARGET = re.compile(r"\](?:\((?:[^()\\]|\\.|\([^()]*\))*\)|\[[^\]]*\])?")
_IMAGE = re.compile(r"!\[[^\]]*\](?:\((?:[^()\\]|\\.|\([^()]*\))*\)|\[[^\]]*\])?")
_LIQUID = re.compile(r"\{%.*?%\}|(?<!\$)\{\{.*?\}\}|\[![A-Z]{3,12}\](?=\s|$)|\{[#.:][^{}\n]*\}\s*$")


class MarkFinder:
    """Finds the marks of one block, from the first to the last of its inline tokens.

    `words` is the visible text, and `removed` are the spans of comments and templates.
    """

    def __init__(self, text: str, start: int, end: int, *, is_row: bool = False) -> None:
        self._is_row = is_row  # in a row, the pipes between the cells stay visible
        self.words: list[str] = []
        self.removed: list[tuple[int, int]] = []
        self._text, self._end = text, end
        self._cursor = self._seen = start
        self._marks: list[Mark] = []
        self._open: list[tuple[str, str, int]] = []  # kind, target, place in `_starts`
        self._starts: list[int | None] = []

    def add_tokens(self, tokens: list[Any]) -> None:
        """Look up the tokens of one inline text."""
        for token in tokens:
            handle = getattr(self, f"_add_{token.type}", None)
            if handle is not None:
                handle(token)
            elif token.type.endswith("_open"):
                self._begin(token)
            elif token.type.endswith("_close"):
                self._close(token)
        if self.words and self.words[-1] != " ":
            self.words.append(" ")

    def finish(self) -> tuple[Mark, ...]:
        """Return the marks in order of their start."""
        self._add_markup(self._seen, self._end)
        return tuple(sorted(self._marks, key=lambda mark: (mark.start, -mark.end)))

    @property
    def plain(self) -> str:
        """The visible text on one line; the text of a cell keeps the line breaks of its author."""
        lines = "".join(self.words).split("\n") if self._is_row else ["".join(self.words)]
        return "\n".join(" ".join(line.split()) for line in lines if line.strip())

    def _find(self, piece: str) -> int:
        return self._text.find(piece, self._cursor, min(self._end, self._cursor + _WINDOW + len(piece)))

    def _show(self, start: int, end: int) -> None:
        """Record a visible piece; the text between it and the previous piece is markup."""
        self._add_markup(self._seen, start)
        self._starts = [start if each is None else each for each in self._starts]
        self._cursor = self._seen = end

    def _add_markup(self, start: int, end: int) -> None:
        for piece in (_NOT_PIPES if self._is_row else _NOT_BLANK).finditer(self._text, start, end):
            self._marks.append(Mark("markup", piece.start(), piece.end()))

    def _remove(self, start: int, end: int) -> None:
        self.removed.append((start, end))

    def _begin(self, token: Any) -> None:
        kind = token.type.removesuffix("_open")
        self._open.append((kind, str((token.attrs or {}).get("href", "")), len(self._starts)))
        self._starts.append(None)

    def _close(self, token: Any) -> None:
        if not self._open:
            return
        kind, target, place = self._open.pop()
        start = self._starts[place]
        self._starts = self._starts[:place]
        if kind in _KINDS and start is not None and start < self._seen:
            self._marks.append(Mark(_KINDS[kind], start, self._seen, target))
        if kind == "link" and token.info != "auto" and (match := _TARGET.match(self._text, self._cursor, self._end)):
            self._cursor = match.end()

    def _add_text(self, token: Any) -> None:
        start, at = self._find(token.content), 0
        for match in _LIQUID.finditer(token.content):
            self._add_piece(token.content[at : match.start()], start + at if start >= 0 else -1)
            if start >= 0:
                self._remove(start + match.start(), start + match.end())
                self._cursor = start + match.end()
            at = match.end()
        self._add_piece(token.content[at:], start + at if start >= 0 else -1)

    def _add_piece(self, piece: str, start: int) -> None:
        self.words.append(piece)
        if start >= 0 and (piece.strip() or (piece and start - self._cursor <= 3)):
            self._show(start, start + len(piece))

    def _add_text_special(self, token: Any) -> None:
        self.words.append(token.content)
        if (start := self._find(token.markup)) >= 0:
            self._show(start + token.markup.startswith("\\"), start + len(token.markup))

    def _add_softbreak(self, _: Any) -> None:
        self.words.append(" ")
        if match := LINE_END.search(self._text, self._cursor, self._end):
            self._cursor = match.end()

    _add_hardbreak = _add_softbreak

    def _add_code_inline(self, token: Any) -> None:
        self.words.append(token.content)
        opened = self._find(token.markup)
        if opened < 0:
            return
        start = opened + len(token.markup)
        end = self._text.find(token.markup, max(start + len(token.content), start), self._end)
        if start < end:
            self._show(start, end)
            self._marks.append(Mark("code", start, end))
            self._cursor = end + len(token.markup)

    def _add_myst_role(self, token: Any) -> None:
        shown, _, _ = token.content.partition(" <")
        self.words.append(shown.lstrip("~."))
        start = self._find(token.content)
        if start >= 0 and token.content:
            first = start + len(shown) - len(shown.lstrip("~."))
            self._show(first, start + len(shown))
            self._marks.append(Mark("role", first, start + len(shown), token.meta["name"]))
            self._cursor = start + len(token.content) + 1

    def _add_image(self, _: Any) -> None:
        if match := _IMAGE.search(self._text, self._cursor, min(self._end, self._cursor + _WINDOW)):
            self._cursor = match.end()

    def _add_html_inline(self, token: Any) -> None:
        if (start := self._find(token.content)) >= 0:
            self._cursor = start + len(token.content)
            if token.content.startswith("<!--"):
                self._remove(start, self._cursor)
        if self._is_row and token.content.startswith("<br"):
            self.words.append("\n")
