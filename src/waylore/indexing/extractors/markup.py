"""Remove markup from text and keep what its author marked: code, strong words, links and roles.

Passages are stored as their file has them. The patterns cover the inline syntax of Markdown, MyST and
reStructuredText, so that text which was added without a reader is understood too. Markup that is cut off at the
end of a passage stays as it is. The module finds no names.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from waylore.indexing.blocks import Block, BlockKind, Mark, Reading

SentenceKind = Literal["sentence", "heading", "item"]
_TITLES = "Mr Mrs Ms Dr St Jr Sr Prof Gen Col Capt Lt Rev Mt Ft"
_FINISHED = "".join(rf"(?<!\b{word}\.)" for word in ["[A-Z]", *_TITLES.split(), "vs", "No", "Vol"])
_NEXT = r"[\"'”’)\]]*\s+(?=[\"'“‘`(\[]*[^\W_a-z])"
# Each alternative begins with one character, so that the engine skips all others quickly.
_SENTENCES = re.compile(rf"\.{_FINISHED}{_NEXT}|!{_NEXT}|\?{_NEXT}|。|！|？|\n\s*\n|\n(?=\s*[-*+#>|])")
_HEADING = re.compile(r"\s*#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s")
_LEADING = re.compile(r"^(?:[-+*>|]\s|#{1,6}\s|\d{1,3}[.)]\s|\s)+")
_CODE_BLOCK = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|\{%.*?%\}|\{\{.*?\}\}|^\.\. [^\n]*$|^[=~^\"'+#*-]{3,}[ \t]*$", re.DOTALL | re.MULTILINE
)
_HAS_HIDDEN = re.compile(r"<!--|\{[%{]|^\.\. |^([=~^\"'+#*-])\1\1", re.MULTILINE)
_REFERENCE = re.compile(r"^ {0,3}\[([^\[\]]{1,100})\]:[ \t]*<?([^\s<>()]{1,500})>?.*$", re.MULTILINE)
_REFERENCE_LINK = re.compile(r"(?<![\]!\\])\[([^\[\]]{1,200})\](?:\[([^\[\]]{0,100})\])?(?![(:\[])")
_SPACES = re.compile(r"\s+")
_KINDS: dict[BlockKind, SentenceKind] = {"heading": "heading", "item": "item", "term": "item"}
_WIKI_LINK = r"\[\[(?P<page>[^\[\]|#]{1,200})(?:#[^\]|]{0,200})?(?:\|(?P<alias>[^\]]{1,200}))?\]\]"
_PAGE = re.compile(_WIKI_LINK)
_HAS_MARKS = re.compile(r"[`*_<\[]|://")
_MARKS = re.compile(
    r"(?:\{(?P<myst>[\w:+-]{1,40})\}|:(?P<rst>[\w:+-]{1,40}):)`(?P<role>[^`]{1,200})`"
    r"|`(?P<shown>[^`<>]{1,200}?)\s*<(?P<address>[^`<>\s]{1,500})>`_{1,2}"
    r"|(?P<ticks>`{1,2})(?!`)\s?(?P<code>[^`]{1,200}?)\s?(?P=ticks)(?!`)"
    r"|!\[[^\[\]]{0,200}\]\([^()]{0,500}\)"
    rf"|{_WIKI_LINK}"
    r"|\[(?P<link>(?:[^\[\]`]|`[^`]{1,100}`){1,200})\](?:\(<?(?P<target>(?:[^()\s<>]|\([^()\s<>]{0,200}\)){0,500})>?(?:\s[^()]{0,200})?\)|\[[^\[\]]{0,100}\])"
    r"|(?P<stars>\*\*|__)(?=\S)(?P<strong>[^\n]{1,200}?)(?<=\S)(?P=stars)"
    r"|(?<![*\w])\*(?=[^\s*])(?P<emphasis>[^*\n]{1,200}?)\*(?![*\w])"
    r"|<https?://[^<>\s]{1,500}>|</?[A-Za-z][^<>]{0,300}>"
    r"|\b[a-z][a-z+]{1,9}://[^\s<>\"`|]{1,2000}"
)


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A sentence as a reader of the page sees it, with marks at their offsets in it."""

    text: str
    marks: tuple[Mark, ...] = ()
    kind: SentenceKind = "sentence"

    def blank_code(self) -> str:
        """Return the text with spaces in place of code and roles, which say nothing of how prose writes words."""
        text = self.text
        for mark in self.marks:
            if mark.kind in {"code", "role"}:
                text = text[: mark.start] + " " * (mark.end - mark.start) + text[mark.end :]
        return text


@lru_cache(maxsize=64)  # rules and definitions split the same passages
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, each on one line."""
    lines = (" ".join(piece.split()) for piece in cut_sentences(text))
    return tuple(line.lstrip("-*+#>| ") for line in lines if any(map(str.isalnum, line)))


def find_references(text: str) -> dict[str, str]:
    """Return the addresses of reference links that a text defines (`[label]: address`), by their labels."""
    return {match[1].casefold(): match[2] for match in _REFERENCE.finditer(text)} if "]:" in text else {}


def use_references(text: str, references: Mapping[str, str]) -> str:
    """Replace reference links by links with their addresses, and remove the definitions."""

    def link(match: re.Match[str]) -> str:
        address = references.get((match[2] or match[1]).casefold())
        return f"[{match[1]}]({address})" if address else match[0]

    return _REFERENCE_LINK.sub(link, _REFERENCE.sub("", text)) if references else text


def read_sentences(text: str, headings: frozenset[str] = frozenset()) -> list[MarkedSentence]:
    """Return the sentences of a text without markup; `headings` are lines that are known to be headings."""
    found = []
    for piece in cut_sentences(text):
        line = " ".join(piece.split())
        sentence = read_marks(_LEADING.sub("", line))
        if any(map(str.isalnum, sentence.text)):
            is_heading = bool(_HEADING.match(piece)) or sentence.text in headings
            kind: SentenceKind = "heading" if is_heading else "item" if _ITEM.match(piece) else "sentence"
            found.append(replace(sentence, kind=kind) if kind != "sentence" else sentence)
    return found


def read_block(reading: Reading, block: Block) -> MarkedSentence:
    """Return the text of a block without markup, on one line, with its marks."""
    text, marks = reading.strip_markup(block)
    leading = _LEADING.match(text)
    skipped = leading.end() if leading else 0
    joined = " ".join(text[skipped:].split())
    if not marks or joined == text[skipped:]:
        moved = [replace(m, start=m.start - skipped, end=m.end - skipped) for m in marks if m.start >= skipped]
    else:
        starts = (len(_SPACES.sub(" ", text[skipped : m.start])) for m in marks if m.start >= skipped)
        shown = (" ".join(text[m.start : m.end].split()) for m in marks if m.start >= skipped)
        kept = (m for m in marks if m.start >= skipped)
        moved = [replace(m, start=at, end=at + len(words)) for m, at, words in zip(kept, starts, shown, strict=True)]
    read = MarkedSentence(joined, tuple(moved), _KINDS.get(block.kind, "sentence"))
    return _read_pages(read) if "[[" in joined else read


def _read_pages(sentence: MarkedSentence) -> MarkedSentence:
    """Return a sentence in which wiki links, which readers keep as text, are marked too."""
    text, marks, last = "", list[Mark](), 0
    for match in _PAGE.finditer(sentence.text):
        shown, [link] = _read_page(match)
        text += sentence.text[last : match.start()]
        shift = len(text) - match.start()
        marks += [replace(link, start=len(text), end=len(text) + len(shown))]
        moved = (m for m in sentence.marks if last <= m.start and m.end <= match.start())
        marks += [replace(m, start=m.start + shift, end=m.end + shift) for m in moved]
        text, last = text + shown, match.end()
    shift = len(text) - last
    marks += [replace(m, start=m.start + shift, end=m.end + shift) for m in sentence.marks if m.start >= last]
    return MarkedSentence(text + sentence.text[last:], tuple(marks), sentence.kind)


def cut_block(block: MarkedSentence) -> list[MarkedSentence]:
    """Return the sentences of a block, each with its own marks. No sentence ends inside the text of a link."""
    found, start = [], 0
    links = [(mark.start, mark.end) for mark in block.marks if mark.kind == "link"]
    cuts = (cut.end() for cut in _SENTENCES.finditer(block.text))
    for end in [*(cut for cut in cuts if not any(s < cut < e for s, e in links)), len(block.text)]:
        text = block.text[start:end].rstrip()
        if any(map(str.isalnum, text)):
            inside = (m for m in block.marks if start <= m.start and m.end <= end)
            marks = tuple(replace(m, start=m.start - start, end=m.end - start) for m in inside)
            found.append(MarkedSentence(text, marks, block.kind))
        start = end
    return found


def remove_blocks(text: str) -> tuple[str, str]:
    """Return a text without blocks of code, comments and directives, and the text of its blocks of code."""
    code = ""
    if "```" in text or "~~~" in text:
        code = "\n".join(match[2] for match in _CODE_BLOCK.finditer(text))
        text = _CODE_BLOCK.sub("\n\n", text)
    return (_HIDDEN.sub("\n\n", text) if _HAS_HIDDEN.search(text) else text), code


def read_marks(sentence: str) -> MarkedSentence:
    """Return a sentence without markup, with its marks."""
    if not _HAS_MARKS.search(sentence):
        return MarkedSentence(sentence)
    text, marks, last = "", list[Mark](), 0
    for match in _MARKS.finditer(sentence):
        text += sentence[last : match.start()]
        last = match.end()
        inner, found = _read_mark(match)
        marks += [replace(mark, start=mark.start + len(text), end=mark.end + len(text)) for mark in found]
        text += inner
    return MarkedSentence(text + sentence[last:], tuple(marks))


def _read_mark(match: re.Match[str]) -> tuple[str, list[Mark]]:
    """Return the visible text of a match, and its marks with offsets into that text."""
    read = next((read for group, read in _READERS.items() if match[group]), None)
    return read(match) if read else (" ", [])


def _read_role(match: re.Match[str]) -> tuple[str, list[Mark]]:
    shown = match["role"].partition(" <")[0].lstrip("~.!")
    name = match["myst"] or match["rst"]
    text = f"{name.upper()} {shown}" if name in {"pep", "rfc"} and shown.isdigit() else shown
    return text, [Mark("role", 0, len(text), name)]


def _read_nested(
    kind: Literal["link", "strong", "emphasis"], group: str, address: str = ""
) -> Callable[[re.Match[str]], tuple[str, list[Mark]]]:
    def read(match: re.Match[str]) -> tuple[str, list[Mark]]:
        inner = read_marks(match[group])
        target = (match[address] or "") if address else ""
        return inner.text, [Mark(kind, 0, len(inner.text), target), *inner.marks]

    return read


def _read_page(match: re.Match[str]) -> tuple[str, list[Mark]]:
    shown = (match["alias"] or match["page"]).strip()
    return shown, [Mark("link", 0, len(shown), f"[[{match['page'].strip()}]]")]


def _read_code(match: re.Match[str]) -> tuple[str, list[Mark]]:
    return match["code"], [Mark("code", 0, len(match["code"]))]


_READERS: dict[str, Callable[[re.Match[str]], tuple[str, list[Mark]]]] = {
    "role": _read_role,
    "shown": _read_nested("link", "shown", "address"),
    "code": _read_code,
    "page": _read_page,
    "link": _read_nested("link", "link", "target"),
    "strong": _read_nested("strong", "strong"),
    "emphasis": _read_nested("emphasis", "emphasis"),
}


def cut_sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text; together they are the text."""
    start = 0
    for cut in _SENTENCES.finditer(text):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]
