"""Draw the recall of each peer on a set as bars with their intervals, as an SVG without any library."""

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.peers.environments import PEERS
from benchmarks.peers.scores import PeerScores

WIDTH, LEFT, RIGHT, ROW = 760, 300, 60, 30
TOP = 44
OURS, OTHERS, LINE = "#2f6f4f", "#8aa0b4", "#333"
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" '
    'role="img"><title>{title}</title><rect width="{width}" height="{height}" fill="#fff"/>'
    '<text x="16" y="24" font-size="15" fill="{line}">{title}</text>'
)


def draw_recall(name: str, rows: Sequence[PeerScores]) -> str:
    """Return a picture of the recall of peers on a set, best first."""
    ordered = sorted(rows, key=lambda row: -row.recall.mean)
    title = escape(f"R@5 on {name}, with 95 % intervals")
    head = HEAD.format(width=WIDTH, height=TOP + ROW * len(rows) + 12, title=title, line=LINE)
    return "\n".join([head, *(_draw_bar(place, row) for place, row in enumerate(ordered)), "</svg>\n"])


def _draw_bar(place: int, row: PeerScores) -> str:
    top = TOP + ROW * place
    middle = top + ROW / 2
    low, mean, high = (LEFT + (WIDTH - LEFT - RIGHT) * x for x in (row.recall.low, row.recall.mean, row.recall.high))
    colour = OURS if PEERS[row.peer].title.startswith("Waylore") else OTHERS
    parts = [
        f'<text x="{LEFT - 8}" y="{middle + 4:.0f}" text-anchor="end" fill="{LINE}">{escape(_shorten(row.peer))}</text>',
        f'<rect x="{LEFT}" y="{top + 5}" width="{mean - LEFT:.1f}" height="{ROW - 10}" fill="{colour}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="{LINE}" stroke-width="1.5"/>',
        f'<text x="{high + 6:.1f}" y="{middle + 4:.0f}" fill="{LINE}">{100 * row.recall.mean:.1f}</text>',
    ]
    return "".join(parts)


def _shorten(peer: str) -> str:
    """Return the title of a peer without what stands in parentheses."""
    return PEERS[peer].title.partition(" (")[0]


def write_picture(folder: Path, name: str, rows: Sequence[PeerScores]) -> Path:
    """Write the picture of a set, and return its file."""
    file = folder / f"peers-{name}.svg"
    file.write_text(draw_recall(name, rows), encoding="utf-8")
    return file
