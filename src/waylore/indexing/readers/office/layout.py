"""Find headings, paragraphs and running heads of a PDF by the size and position of its lines.

A heading is larger than most of the text, or bold and numbered. Lines at the top and bottom that repeat on many
pages, numbers of pages and dot leaders are left out. The module does not open the file: `pdf` extracts the lines.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from waylore.indexing.blocks import has_words, nest_heading
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.structure.rendering import TextWriter
from waylore.indexing.readers.structure.titles import is_dated

_LARGER = 1.15  # a heading has at least this multiple of the usual size
_PARAGRAPH_GAP = 1.25  # a paragraph begins after at least this multiple of the usual distance of lines
_USUAL_DISTANCE = 1.5  # default distance of baselines, in sizes
_MIN_DISTANCE, _MAX_DISTANCE = 0.8, 3.0
_MAX_HEADING = 200
_MAX_LEVELS = 4
_EDGE_LINES = 2  # lines at the top and at the bottom that may be running heads
_MIN_REPEATS = 3
_SAME_LINE = 0.3  # maximum distance of the baselines of texts on one line, in sizes
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\ufeff\xad"))
_PAGE_NUMBER = re.compile(r"\W*(?:page\s+)?(?:\d{1,4}|[ivxl]{1,6})(?:\s*(?:/|of)\s*\d{1,4})?\W*", re.IGNORECASE)
_LEADER = re.compile(r"\s*(?:\.\s?){4,}\s*\d{0,4}\s*$")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[^\W\d_]")
_DIGITS = re.compile(r"\d+")
_NO_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\S+\.(?:docx?|pdf|indd|qxd|pptx?|tex|dvi)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page; `size` is the height of its letters, `y` the height of its baseline."""

    text: str
    size: float = 0.0
    is_bold: bool = False
    y: float = 0.0


class LineCollector:
    """A visitor for pypdf: collects the lines of a page."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._pieces: list[str] = []
        self._place: Line | None = None

    def visit(self, text: str, cm: Sequence[float], tm: Sequence[float], font: object, size: float) -> None:
        """Add a piece of text, drawn with these matrices."""
        first, *others = text.split("\n")
        self._add(first, cm, tm, font, size)
        for each in others:
            self.end_line()
            self._add(each, cm, tm, font, size)

    def end_line(self) -> None:
        """Add the text since the last line end; text drawn beside the previous line belongs to that line."""
        text, place = make_storable("".join(self._pieces)).translate(_INVISIBLE).rstrip(), self._place
        last = self.lines[-1] if self.lines else None
        if last and last.size and place and abs(place.y - last.y) < _SAME_LINE * last.size:
            joined = f"{last.text} {text.lstrip()}".rstrip() if text.strip() else last.text
            self.lines[-1] = replace(last, text=joined)
        else:
            self.lines.append(replace(place, text=text) if place and text.strip() else Line(text))
        self._pieces, self._place = [], None

    def _add(self, text: str, cm: Sequence[float], tm: Sequence[float], font: object, size: float) -> None:
        self._pieces.append(text)
        if text and self._place is None:
            height = round(abs(size * (tm[3] or tm[1]) * (cm[3] or cm[1])), 1)
            name = str(font.get("/BaseFont", "")) if isinstance(font, dict) else ""
            self._place = Line("", height, "bold" in name.lower(), tm[5] * cm[3] + cm[5])


@dataclass(frozen=True, slots=True)
class _Layout:
    """The usual size of letters and distance of lines in a file (in sizes), and the larger sizes, in order."""

    size: float
    distance: float
    larger: list[float]

    def get_level(self, line: Line) -> int:
        """Return the level of a heading, or 0 for other lines."""
        text = line.text.strip()
        if not self.size or len(text) > _MAX_HEADING or not has_words(text) or _LEADER.search(text):
            return 0
        if line.size in self.larger:
            return self.larger.index(line.size) + 1
        if line.size >= _LARGER * self.size:
            return _MAX_LEVELS
        numbered = _NUMBERED.match(text) if line.is_bold and not is_dated(text) else None
        return len(self.larger) + numbered[1].count(".") + 1 if numbered else 0

    def is_apart(self, last: Line, line: Line) -> bool:
        """Return whether two lines belong to different paragraphs by their distance."""
        size = max(last.size, line.size)
        return bool(size) and abs(line.y - last.y) > _PARAGRAPH_GAP * self.distance * size


def write_pages(pages: list[list[Line]], writer: TextWriter) -> None:
    """Write the paragraphs and headings of all pages."""
    running = _find_running_heads(pages)
    layout = _measure(pages)
    path: list[tuple[int, str]] = []
    headings: tuple[str, ...] = ()
    for page in pages:
        for level, text in _split_paragraphs(_drop_edges(page, running), layout):
            if level:
                headings = nest_heading(path, level, " ".join(text.split()))
            writer.add("heading" if level else "paragraph", text, headings)


def _measure(pages: list[list[Line]]) -> _Layout:
    sizes = _count_sizes(pages)
    usual = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted((size for size in sizes if usual and size >= _LARGER * usual), reverse=True)[:_MAX_LEVELS]
    distances: Counter[float] = Counter()
    for page in pages:
        lines = [line for line in page if line.text.strip()]
        pairs = ((last, line) for last, line in pairwise(lines) if last.size == line.size == usual)
        distances.update(round(abs(line.y - last.y) / usual, 1) for last, line in pairs if usual)
    near = [distance for distance, _ in distances.most_common() if _MIN_DISTANCE <= distance <= _MAX_DISTANCE]
    return _Layout(usual, near[0] if near else _USUAL_DISTANCE, larger)


def choose_title(own: str, pages: list[list[Line]]) -> str:
    """Return the title of the metadata if it is usable, else the largest text of the first page, or nothing."""
    if own and not _NO_TITLE.match(own):
        return own
    sizes = _count_sizes(pages)
    lines = [line for line in (pages[0] if pages else []) if has_words(line.text)]
    largest = max((line.size for line in lines), default=0.0)
    if not sizes or largest < _LARGER * sizes.most_common(1)[0][0]:
        return ""
    title = " ".join(" ".join(line.text for line in lines if line.size == largest).split())
    return title if len(title) <= _MAX_HEADING else ""


def _count_sizes(pages: list[list[Line]]) -> Counter[float]:
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            if line.size:
                sizes[line.size] += len(line.text)
    return sizes


def _find_running_heads(pages: list[list[Line]]) -> set[str]:
    """Return the lines, with numbers replaced, that occur at the edge of many pages."""
    seen: Counter[str] = Counter()
    for page in pages:
        texts = [line for line in page if line.text.strip()]
        edges = [*texts[:_EDGE_LINES], *texts[_EDGE_LINES:][-_EDGE_LINES:]]
        seen.update({_make_key(line.text) for line in edges})
    least = max(_MIN_REPEATS, len(pages) // 3)
    return {text for text, count in seen.items() if count >= least}


def _make_key(text: str) -> str:
    return _DIGITS.sub("#", " ".join(text.split()).lower())


def _drop_edges(page: list[Line], running: set[str]) -> list[Line]:
    """Return the lines of a page without running heads and the number of the page."""
    numbers = [number for number, line in enumerate(page) if line.text.strip()]
    edges = {*numbers[:_EDGE_LINES], *numbers[-_EDGE_LINES:]} if len(numbers) > 1 else set()
    return [line for number, line in enumerate(page) if number not in edges or not _is_edge(line.text, running)]


def _is_edge(text: str, running: set[str]) -> bool:
    return _make_key(text) in running or bool(_PAGE_NUMBER.fullmatch(text.strip()))


def _split_paragraphs(lines: list[Line], layout: _Layout) -> Iterator[tuple[int, str]]:
    """Yield the level of a heading, or 0, and the text of each paragraph."""
    group: list[Line] = []
    level = 0
    for line in lines:
        if not line.text.strip():
            if group and not level:
                yield level, _join(group)
                group = []
            continue
        own = layout.get_level(line)
        if group and (own != level or layout.is_apart(group[-1], line)):
            yield level, _join(group)
            group = []
        group.append(line)
        level = own
    if group:
        yield level, _join(group)


def _join(group: list[Line]) -> str:
    return "\n".join(_LEADER.sub("", line.text) for line in group).strip()
